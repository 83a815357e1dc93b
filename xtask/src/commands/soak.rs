//! `cargo xtask soak`: builds what the soak needs and hands over to it (`tests/soak`).

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cli::SoakArgs;
use crate::kubernetes::controlplane;
use crate::run::progress;
use crate::{guests, programs, tools, workspace};

/// Where the figures go.
const PAGE: &str = "docs/reference/soak.md";

/// What is built in the same profile.
const PACKAGES: [&str; 2] = ["cloudwit", "cloudwit-soak"];

/// Builds, runs, and gives back whether all promises held.
///
/// # Errors
///
/// When a tool is missing, something does not build, or a promise was broken.
pub fn run(args: &SoakArgs) -> Result<()> {
    tools::require_wasm_target()?;
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        controlplane::binary()?;
    }
    let provider = guests::provider("sim")?;
    let folder = guests::test_guests()?;
    let programs = programs(args.debug)?;
    // Ctrl-C reaches the whole process group. The soak tears everything down then; we wait for it.
    let _ = ctrlc::set_handler(|| {});
    let mut command = Command::new(programs.join("cloudwit-soak"));
    command.current_dir(workspace::root());
    command.arg("--cloudwit").arg(programs.join("cloudwit"));
    command.arg("--provider").arg(provider);
    // The folder above has `NAME.wasm` for each guest.
    command.arg("--guests").arg(folder);
    for (flag, value) in [
        ("minutes", u64::from(args.minutes)),
        ("nodes", u64::from(args.nodes)),
        ("services", u64::from(args.services)),
        ("seed", args.seed),
    ] {
        command.arg(format!("--{flag}={value}"));
    }
    command.args(args.only.iter().map(|name| format!("--only={name}")));
    if args.write {
        command.arg("--write").arg(workspace::root().join(PAGE));
    }
    let status = command.stdin(Stdio::null()).status().context("starting the soak")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(1) => bail!("a promise was broken, see the table above"),
        _ => bail!("the soak could not be run ({status}), see above"),
    }
}

/// The folder with both programs.
fn programs(debug: bool) -> Result<PathBuf> {
    if debug {
        return programs::build(&PACKAGES);
    }
    let packages = PACKAGES.map(|name| ["--package", name]);
    let what = "building Cloudwit and the soak in the release profile (10 minutes the first time)";
    progress::cargo_build(&[&["--release", "--bins"], packages.concat().as_slice()].concat(), what)?;
    Ok(workspace::target().join("release"))
}
