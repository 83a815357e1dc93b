//! `cargo xtask check`: the quick checks before a commit.

use anyhow::{Context, Result};

use crate::steps::{Found, Steps, shown};
use crate::{tools, workspace};

/// Runs them.
///
/// # Errors
///
/// When one fails; names all that did.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.run("format", format);
    steps.run("clippy", clippy);
    for name in packages()? {
        let quiet = ["check", "--quiet", "--all-targets", "--package"];
        steps.run(&format!("{name} alone"), || {
            shown(workspace::cargo().args(quiet).arg(&name))
        });
    }
    steps.finish()
}

/// `cargo fmt` would change nothing.
pub fn format() -> Result<Found> {
    shown(workspace::cargo().args(["fmt", "--all", "--check"]))
}

/// Clippy has nothing to say about any target.
pub fn clippy() -> Result<Found> {
    shown(workspace::cargo().args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// The names of our packages.
fn packages() -> Result<Vec<String>> {
    let metadata = tools::output(workspace::cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("reading what cargo metadata says")?;
    let packages = metadata["packages"]
        .as_array()
        .context("cargo metadata names no packages")?;
    Ok(packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .map(str::to_owned)
        .collect())
}
