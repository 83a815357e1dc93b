//! `cargo xtask check`: the quick checks before a commit.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::go::module::GoModule;
use crate::kubernetes::{controlplane, peer};
use crate::run::steps::{Found, Steps, shown};
use crate::servers::vcsim;
use crate::{kubernetes, tools, workspace};

/// Our Go programs.
const MODULES: [GoModule; 4] = [
    controlplane::MODULE,
    kubernetes::MODULE,
    peer::TESTED,
    vcsim::WITH_VOLUMES,
];

/// Runs them.
///
/// # Errors
///
/// When one fails; names all that did.
pub fn run() -> Result<()> {
    let mut steps = Steps::default();
    steps.run("format", format);
    if tools::find("gofmt").is_some() {
        steps.run("gofmt", || {
            MODULES.iter().try_for_each(GoModule::format)?;
            Ok(Found::default())
        });
    } else {
        steps.leave_out("gofmt, which comes with Go");
    }
    steps.run("clippy", clippy);
    for name in workspace::packages()? {
        let check = ["check", "--all-targets", "--package"];
        steps.run(&format!("{name} alone"), || {
            shown(workspace::cargo().args(check).arg(&name))
        });
    }
    steps.finish()
}

/// `cargo fmt` would change nothing. Names the files it would change.
pub fn format() -> Result<Found> {
    let root = workspace::root();
    let listed = workspace::cargo()
        .args(["fmt", "--all", "--", "--check", "-l"])
        .output()
        .context("starting cargo fmt")?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let short = |name: &str| {
        name.strip_prefix(&format!("{}/", root.display()))
            .unwrap_or(name)
            .to_owned()
    };
    let files: BTreeSet<String> = names.lines().map(short).collect();
    match files.len() {
        0 if listed.status.success() => Ok(Found::default()),
        0 => bail!("cargo fmt failed: {}", String::from_utf8_lossy(&listed.stderr).trim()),
        count => {
            let files: Vec<String> = files.into_iter().collect();
            bail!("cargo fmt --all would change {count} files:\n  {}", files.join("\n  "))
        }
    }
}

/// Clippy has nothing to say about any target.
pub fn clippy() -> Result<Found> {
    shown(workspace::cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}
