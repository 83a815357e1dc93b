//! Builds provider components: the providers of this repository, and the ones for tests that misbehave.

pub mod names;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::run::progress;
use crate::{debian, tools, workspace};

/// Names the folder with built components, for tests that `cargo xtask test` starts: they then build none.
pub const PREBUILT: &str = "CLOUDWIT_GUESTS";

/// The providers of this repository.
pub const PROVIDERS: [&str; 14] = [
    "sim",
    "alibaba",
    "aws",
    "azure",
    "baidu",
    "cloudstack",
    "gce",
    "mesos",
    "openstack",
    "ovirt",
    "photon",
    "rackspace",
    "rancher",
    "vsphere",
];

/// Largest size of a provider's component in bytes, packed as `.wasm.zst`: two of them fit into one ConfigMap. `vsphere` has three APIs (vCenter's, NSX's and
/// that of volumes), where others have one; `azure` has four ways to get a token, machines of three kinds, and every interface that Kubernetes' own provider had.
pub fn packed_limit(provider: &str) -> u64 {
    let kib = match provider {
        "azure" | "vsphere" => 480,
        _ => 400,
    };
    kib * 1024
}

/// Builds the provider of that name (`providers/NAME`). Gives the component.
pub fn provider(name: &str) -> Result<PathBuf> {
    let folder = built(&["--package", &format!("cloudwit-provider-{name}"), "--lib"])?;
    let file = existing(folder.join(format!("{}.wasm", name.replace('-', "_"))))?;
    names::drop_from(&file)?;
    Ok(file)
}

/// Builds all test guests (`tests/guests/examples`). Gives the folder with `NAME.wasm` for each of them.
pub fn test_guests() -> Result<PathBuf> {
    Ok(built(&["--package", "cloudwit-test-guests", "--examples"])?.join("examples"))
}

/// A component as `zstd -19` packs it.
pub fn packed(file: &Path) -> Result<Vec<u8>> {
    if tools::find("zstd").is_none() && !debian::install(&["zstd"])? {
        bail!("zstd is missing: install it with your package manager");
    }
    let packed = Command::new("zstd")
        .args(["-19", "--stdout", "--quiet"])
        .arg(file)
        .output()
        .context("starting zstd")?;
    if !packed.status.success() {
        bail!(
            "packing {}: {}",
            file.display(),
            String::from_utf8_lossy(&packed.stderr)
        );
    }
    Ok(packed.stdout)
}

/// The size of a component in bytes when `zstd -19` has packed it.
///
/// # Errors
///
/// As [`packed`].
pub fn packed_size(file: &Path) -> Result<u64> {
    Ok(packed(file)?.len().try_into()?)
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
