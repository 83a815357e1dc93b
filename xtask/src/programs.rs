//! Builds our own programs in the debug profile, for the sandbox and for tests that run them as operators do.

use std::path::PathBuf;

use anyhow::Result;

use crate::run::progress;
use crate::workspace;

/// Names the folder with built programs, for tests that `cargo xtask test` starts: they then build none.
pub const PREBUILT: &str = "CLOUDWIT_PROGRAMS";

/// All that the sandbox and the tests run.
pub const ALL: [&str; 3] = ["cloudwit", "cloudwit-sim-cloud", "cloudwit-sandbox"];

/// Builds the programs of these packages. Gives the folder they are in.
///
/// # Errors
///
/// When one does not build; with the compiler's last lines.
pub fn build(packages: &[&str]) -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os(PREBUILT) {
        return Ok(folder.into());
    }
    let packages: Vec<&str> = packages.iter().flat_map(|name| ["--package", name]).collect();
    let what = "building Cloudwit, and what runs it";
    progress::cargo_build(&[&["--bins"], packages.as_slice()].concat(), what)?;
    Ok(workspace::target().join("debug"))
}
