//! Builds provider components: the providers of this repository, and the ones for tests that misbehave.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{component_names, progress, tools, workspace};

/// Names the folder with built components, for tests that `cargo xtask test` starts: they then build none.
pub const PREBUILT: &str = "CLOUDWIT_GUESTS";

/// The providers of this repository, with the largest size of each component in bytes: a twentieth above what it is, so that growth is noticed.
/// The goal is 120 KiB for `sim` and 300 for a real cloud.
pub const PROVIDERS: [(&str, u64); 4] = [
    ("sim", 174_300),
    ("aws", 400_000),
    ("openstack", 341_400),
    ("vsphere", 231_500),
];

/// Builds the provider of that name (`providers/NAME`). Gives the component.
pub fn provider(name: &str) -> Result<PathBuf> {
    let folder = built(&["--package", &format!("cloudwit-provider-{name}"), "--lib"])?;
    let file = existing(folder.join(format!("{}.wasm", name.replace('-', "_"))))?;
    component_names::drop_from(&file)?;
    Ok(file)
}

/// Builds all test guests (`tests/guests/examples`). Gives the folder with `NAME.wasm` for each of them.
pub fn test_guests() -> Result<PathBuf> {
    Ok(built(&["--package", "cloudwit-test-guests", "--examples"])?.join("examples"))
}

/// All components in a folder, by name.
pub fn components(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    // Beside `spins.wasm` cargo leaves `spins-0123456789abcdef.wasm`.
    found.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".wasm") && !name.contains('-')
    });
    found.sort();
    Ok(found)
}

/// Each package is built on its own: features of one must not end up in the component of another.
fn built(packages: &[&str]) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(PREBUILT) {
        return Ok(folder.into());
    }
    tools::require_wasm_target()?;
    let target = workspace::target();
    fs::create_dir_all(&target).with_context(|| format!("making {}", target.display()))?;
    // Cargo has a lock of its own; this one keeps its "Blocking waiting for file lock" out of the tests' output.
    let lock = File::create(target.join("guests.lock")).context("making the lock of the guests' build")?;
    lock.lock().context("waiting for another process that builds guests")?;
    let how = ["--target", tools::WASM_TARGET, "--profile", "guest"];
    progress::cargo_build(&[&how, packages].concat(), "building components").context("guests could not be built")?;
    Ok(target.join(tools::WASM_TARGET).join("guest"))
}

fn existing(file: PathBuf) -> Result<PathBuf> {
    if !file.is_file() {
        bail!(
            "there is no component {}; is its crate a cdylib, and {PREBUILT} right if it is set?",
            file.display()
        );
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_listed_without_what_cargo_leaves_beside_them() {
        // The folder's own name has dashes, as `wasm32-wasip2` has.
        let folder = std::env::temp_dir().join(format!("cloudwit-components-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for name in ["spins.wasm", "spins-0123456789abcdef.wasm", "spins.d", "grows.wasm"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let found = components(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            found.unwrap(),
            ["grows.wasm", "spins.wasm"].map(|name| folder.join(name))
        );
    }
}
