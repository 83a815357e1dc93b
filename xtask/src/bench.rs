//! `cargo xtask bench`: builds the guests and runs `tests/bench` in the release profile, which prints the tables.

use anyhow::Result;

use crate::steps::shown;
use crate::{controlplane, guests, tools, workspace};

/// Builds and measures.
///
/// # Errors
///
/// When a tool is missing, something does not build, or a measurement fails.
pub fn run() -> Result<()> {
    tools::require_wasm_target()?;
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        controlplane::binary()?;
    }
    println!("building the guests");
    let provider = guests::provider("sim")?;
    let folder = guests::test_guests()?;
    println!("building the benchmark in the release profile");
    let mut command = workspace::cargo();
    command.args(["run", "--release", "--package", "cloudwit-bench", "--"]);
    shown(command.arg("--provider").arg(provider).arg("--guests").arg(folder))?;
    Ok(())
}
