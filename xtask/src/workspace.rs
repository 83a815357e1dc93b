//! Where things are in the work tree.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::tools;

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .expect("xtask is a folder of the repository")
        .to_path_buf()
}

/// Where cargo puts what it builds; `CARGO_TARGET_DIR` is obeyed.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The cargo that runs us, called in the root of the repository.
pub fn cargo() -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A program that runs cargo, called in the root of the repository as from a shell.
///
/// Cargo tells the program that it runs, which is us, about the program's package. Build scripts that look at such variables
/// (ring's does) would run again each time cargo is called from inside and from outside in turn, and with them half of our dependencies.
pub fn program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"]
            .iter()
            .any(|begin| text.starts_with(begin))
        {
            command.env_remove(&name);
        }
    }
    command
}

/// The names of our packages.
///
/// # Errors
///
/// When cargo cannot read the workspace.
pub fn packages() -> Result<Vec<String>> {
    let metadata = metadata()?;
    Ok(names(&metadata["packages"]).collect())
}

/// The names of the files with tests, of all packages.
///
/// # Errors
///
/// When cargo cannot read the workspace.
pub fn test_files() -> Result<Vec<String>> {
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    Ok(tests
        .filter_map(|target| target["name"].as_str().map(str::to_owned))
        .collect())
}

fn metadata() -> Result<Value> {
    let text = tools::output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&text).context("reading what cargo metadata says")
}

fn names(list: &Value) -> impl Iterator<Item = String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_cargo_does_not_inherit_our_package() {
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "tests run in cargo");
        let printed = crate::tools::output(&mut program("env")).unwrap();
        assert!(
            !printed.contains("CARGO_MANIFEST_DIR=") && !printed.contains("CARGO_PKG_NAME="),
            "{printed}"
        );
        assert!(printed.contains("PATH="), "{printed}");
    }
}
