//! `cargo xtask bench`: builds both sides, the guests and the benchmark, and runs `tests/bench`, which measures and writes the report; with `--cloud`,
//! compares with a cloud's own controller.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::cli::BenchArgs;
use crate::steps::shown;
use crate::{aws_peer, controlplane, guests, peer, progress, servers, tools, workspace};

/// The report in the documents.
const RESULTS: &str = "docs/reference/benchmarks";

/// Runs of each side, where the command line says nothing.
const PAIRS: u8 = 2;

/// The same of a full run.
const FULL_PAIRS: u8 = 5;

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
    let peer = peer::measured()?;
    for (name, _) in guests::PROVIDERS {
        guests::provider(name)?;
    }
    let provider = guests::provider("sim")?;
    let folder = guests::test_guests()?;
    build()?;
    let mut command = Command::new(workspace::target().join("release/cloudwit-bench"));
    command.current_dir(workspace::root());
    command.arg("--provider").arg(provider);
    command.arg("--guests").arg(folder);
    command.arg("--peer").arg(peer);
    command.args(report(args));
    command.args(args.full.then_some("--full"));
    command.args(args.only.iter().map(|work| format!("--only={}", work.name())));
    shown(&mut command)?;
    Ok(())
}

/// Cloudwit beside AWS's own controller. Calls are what is compared; much of the time goes by in moto.
fn compare(args: &BenchArgs) -> Result<()> {
    servers::moto()?;
    let peer = aws_peer::program()?;
    let provider = guests::provider("aws")?;
    build()?;
    let mut command = Command::new(workspace::target().join("release/cloudwit-aws-peer"));
    command.current_dir(workspace::root()).arg("--provider").arg(provider);
    command.arg("--peer").arg(peer);
    command.args(report(args));
    command.args(["--nodes", &args.nodes.to_string()]);
    shown(command.args(["--services", &args.services.to_string()]))?;
    Ok(())
}

/// How often, and where the report goes.
fn report(args: &BenchArgs) -> [OsString; 3] {
    let results = args.results.clone().unwrap_or_else(|| workspace::root().join(RESULTS));
    let pairs = args.pairs.unwrap_or(if args.full { FULL_PAIRS } else { PAIRS });
    ["--results".into(), results.into(), format!("--pairs={pairs}").into()]
}

/// In the release profile, as the peers are optimised too.
fn build() -> Result<()> {
    let packages = ["cloudwit", "cloudwit-bench", "cloudwit-sim-cloud"].map(|name| ["--package", name]);
    let what = "building Cloudwit and the benchmark in the release profile (10 minutes the first time)";
    progress::cargo_build(&[&["--release", "--bins"], packages.concat().as_slice()].concat(), what)
}
