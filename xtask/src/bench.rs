//! `cargo xtask bench`: builds the guests and runs `tests/bench` in the release profile, which prints the tables.

use std::process::Command;

use anyhow::Result;

use crate::cli::BenchArgs;
use crate::steps::shown;
use crate::{controlplane, guests, progress, tools, workspace};

/// Builds and measures.
///
/// # Errors
///
/// When a tool is missing, something does not build, or a measurement fails.
pub fn run(args: &BenchArgs) -> Result<()> {
    tools::require_wasm_target()?;
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        controlplane::binary()?;
    }
    let provider = guests::provider("sim")?;
    let folder = guests::test_guests()?;
    let what = "building Cloudwit and the benchmark in the release profile (10 minutes the first time)";
    progress::cargo_build(
        &[
            "--release",
            "--bins",
            "--package",
            "cloudwit",
            "--package",
            "cloudwit-bench",
        ],
        what,
    )?;
    let mut command = Command::new(workspace::target().join("release/cloudwit-bench"));
    command
        .current_dir(workspace::root())
        .arg("--provider")
        .arg(provider)
        .arg("--guests")
        .arg(folder);
    shown(command.args(["--nodes", &args.nodes.to_string()]))?;
    Ok(())
}
