//! `cargo xtask fuzz`: runs the targets of `tests/fuzz` with cargo-fuzz.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cli::FuzzArgs;
use crate::run::steps::shown;
use crate::{tools, workspace};

/// A workspace of its own: its programs are built with sanitizers, by nightly.
const FOLDER: &str = "tests/fuzz";

/// Runs all targets in turn, or one.
///
/// # Errors
///
/// When nightly or cargo-fuzz is missing, there is no such target, or one found something.
pub fn run(args: &FuzzArgs) -> Result<()> {
    require()?;
    let targets = targets()?;
    if let Some(target) = &args.target {
        ensure!(
            targets.contains(target),
            "there is no target {target}; there are {}",
            targets.join(", ")
        );
    }
    for target in targets
        .iter()
        .filter(|one| args.target.as_ref().is_none_or(|only| only == *one))
    {
        println!("\n== {target}, {} s", args.seconds);
        let mut command = workspace::program("cargo");
        command.current_dir(workspace::root().join(FOLDER));
        // Where this crate is tested another toolchain is set.
        command.env_remove("RUSTUP_TOOLCHAIN");
        command.args(["+nightly", "fuzz", "run", "--fuzz-dir", ".", target, "--"]);
        command.arg(format!("-max_total_time={}", args.seconds));
        shown(&mut command).with_context(|| format!("{target}: the input is in {FOLDER}/artifacts/{target}"))?;
    }
    Ok(())
}

/// The targets, by name.
fn targets() -> Result<Vec<String>> {
    let folder = workspace::root().join(FOLDER).join("targets");
    let files = fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
    let name = |file: std::io::Result<fs::DirEntry>| {
        let name = file.ok()?.file_name().into_string().ok()?;
        Some(name.strip_suffix(".rs")?.to_owned())
    };
    let mut names: Vec<String> = files.filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// Nightly and cargo-fuzz are there.
fn require() -> Result<()> {
    let mut nightly = workspace::program("cargo");
    let nightly = nightly.env_remove("RUSTUP_TOOLCHAIN").args(["+nightly", "--version"]);
    if tools::output(nightly).is_err() {
        bail!("not fuzzed: there is no nightly toolchain; to have it: rustup toolchain install nightly");
    }
    let mut fuzz = Command::new("cargo");
    if tools::output(fuzz.args(["fuzz", "--version"])).is_err() {
        bail!("not fuzzed: there is no cargo-fuzz; to have it: cargo install --locked cargo-fuzz");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fuzz_target_is_listed_and_built() {
        let folder = workspace::root().join(FOLDER);
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() > 10, "{targets:?}");
        for target in targets {
            assert!(
                readme.contains(&format!("| `{target}` |")),
                "{target} is not in the README"
            );
            assert!(
                manifest.contains(&format!("name = \"{target}\"")),
                "{target} is not in the manifest"
            );
        }
    }
}
