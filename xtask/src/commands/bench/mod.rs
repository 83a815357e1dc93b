//! `cargo xtask bench`: builds both sides, the guests and the benchmark, and runs `tests/bench`, which measures and writes the report; with `--cloud`,
//! compares with a cloud's own controller.
//!
//! Cloudwit is measured as it ships: the static binary of `cargo xtask image`. Where that cannot be built it is the release build, and the report says so.
//! What measures, and the simulated cloud, are release builds.

pub mod work;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cli::BenchArgs;
use crate::commands::image;
use crate::kubernetes::{aws_peer, controlplane, peer};
use crate::run::progress;
use crate::run::steps::shown;
use crate::{guests, servers, tools, workspace};

/// The report in the documents.
const RESULTS: &str = "docs/reference/benchmarks";

/// Runs of each side in a comparison on a cloud, where the command line says nothing.
const PAIRS: u8 = 2;

/// Builds and measures.
///
/// # Errors
///
/// When a tool is missing, something does not build, or a measurement fails.
pub fn run(args: &BenchArgs) -> Result<()> {
    tools::require_wasm_target()?;
    let api_server = match std::env::var_os("KUBEBUILDER_ASSETS") {
        Some(_) => None,
        None => Some(controlplane::measured()?),
    };
    let mut command = match args.cloud {
        Some(_) => on_a_cloud(args)?,
        None => on_the_simulated_cloud(args)?,
    };
    command.envs(api_server.map(|program| (controlplane::PREBUILT, program)));
    shown(&mut command)?;
    Ok(())
}

/// Cloudwit beside upstream's controllers, and alone.
fn on_the_simulated_cloud(args: &BenchArgs) -> Result<Command> {
    let peer = peer::measured()?;
    for name in guests::PROVIDERS {
        guests::provider(name)?;
    }
    let provider = guests::provider("sim")?;
    let folder = guests::test_guests()?;
    let mut command = program("cloudwit-bench", args)?;
    command.arg("--provider").arg(provider);
    command.arg("--guests").arg(folder);
    command.arg("--peer").arg(peer);
    command.args(args.full.then_some("--full"));
    command.args(args.pairs.map(|pairs| format!("--pairs={pairs}")));
    command.args(args.only.iter().map(|work| format!("--only={work}")));
    Ok(command)
}

/// Cloudwit beside AWS's own controller. Calls are what is compared; much of the time goes by in moto.
fn on_a_cloud(args: &BenchArgs) -> Result<Command> {
    servers::moto()?;
    let peer = aws_peer::program()?;
    let provider = guests::provider("aws")?;
    let mut command = program("cloudwit-aws-peer", args)?;
    command.arg("--provider").arg(provider);
    command.arg("--peer").arg(peer);
    command.arg(format!("--pairs={}", args.pairs.unwrap_or(PAIRS)));
    command.args(["--nodes", &args.nodes.to_string()]);
    command.args(["--services", &args.services.to_string()]);
    Ok(command)
}

/// A program of the benchmark, built, that is told which Cloudwit it measures and where the report goes.
fn program(name: &str, args: &BenchArgs) -> Result<Command> {
    let cloudwit = cloudwit()?;
    let packages = ["cloudwit-bench", "cloudwit-sim-cloud"].map(|name| ["--package", name]);
    let what = "building the benchmark in the release profile (10 minutes the first time)";
    progress::cargo_build(&[&["--release", "--bins"], packages.concat().as_slice()].concat(), what)?;
    let mut command = Command::new(workspace::target().join("release").join(name));
    command.current_dir(workspace::root()).args(cloudwit);
    let results = args.results.clone().unwrap_or_else(|| workspace::root().join(RESULTS));
    command.arg("--results").arg(results);
    Ok(command)
}

/// Builds the Cloudwit that is measured; the flags that name it and say what it is.
fn cloudwit() -> Result<[OsString; 3]> {
    let flags = |binary: PathBuf, build: &str| ["--cloudwit".into(), binary.into(), format!("--build={build}").into()];
    let Err(missing) = image::require_musl() else {
        return Ok(flags(image::binary()?, "static"));
    };
    println!("not the static binary that ships is measured, but the release build: {missing:#}");
    let what = "building Cloudwit in the release profile (10 minutes the first time)";
    progress::cargo_build(&["--release", "--package", "cloudwit"], what).context("building what is measured")?;
    Ok(flags(workspace::target().join("release/cloudwit"), "release"))
}
