//! `cargo xtask bench`: builds the guests and runs `tests/bench` in the release profile, which prints the tables; with
//! `--cloud`, compares with a cloud's own controller.

use std::process::Command;

use anyhow::Result;

use crate::cli::BenchArgs;
use crate::steps::shown;
use crate::{aws_peer, controlplane, guests, progress, servers, tools, workspace};

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
    if args.cloud.is_some() {
        return compare(args);
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
    shown(command.args(["--nodes", &args.nodes.unwrap_or(1000).to_string()]))?;
    Ok(())
}

/// Cloudwit beside AWS's own controller. In the debug profile: calls are what is compared, and the time goes by in moto.
fn compare(args: &BenchArgs) -> Result<()> {
    servers::moto()?;
    let peer = aws_peer::program()?;
    let provider = guests::provider("aws")?;
    let what = "building Cloudwit and the comparison";
    progress::cargo_build(
        &["--bins", "--package", "cloudwit", "--package", "cloudwit-bench"],
        what,
    )?;
    let mut command = Command::new(workspace::target().join("debug/cloudwit-aws-peer"));
    command.current_dir(workspace::root()).arg("--provider").arg(provider);
    command.arg("--peer").arg(peer);
    command.args(["--nodes", &args.nodes.unwrap_or(500).to_string()]);
    shown(command.args(["--services", &args.services.to_string()]))?;
    Ok(())
}
