//! vcsim, the vSphere of a third party (VMware's own `govmomi`), and `govc`, its client, built once with Go.
//!
//! The newest release whose main module still holds both. Their builds share almost all packages and take two minutes the first time.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{controlplane, progress, tools, workspace};

/// The release of `github.com/vmware/govmomi` that both are built from.
pub const VERSION: &str = "v0.37.3";

/// The two programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The server.
    pub vcsim: PathBuf,
    /// The client.
    pub govc: PathBuf,
}

/// Both, built if they are not there yet. Safe to call from several processes at once: the others wait for the first.
///
/// # Errors
///
/// When Go is missing or they do not build.
pub fn programs() -> Result<Programs> {
    let tools_dir = workspace::target().join("tools");
    fs::create_dir_all(&tools_dir).with_context(|| format!("making {}", tools_dir.display()))?;
    let lock = File::create(tools_dir.join("vcsim.lock")).context("making the lock of vcsim's build")?;
    lock.lock().context("waiting for another process that builds vcsim")?;
    let folder = tools_dir.join(format!("vcsim-{VERSION}"));
    if !folder.is_dir() {
        build(&tools_dir.join("vcsim.unfinished"), &folder)?;
        tools::remove_others(&tools_dir, "vcsim-", &folder);
    }
    Ok(Programs {
        vcsim: folder.join("vcsim"),
        govc: folder.join("govc"),
    })
}

/// Renamed when complete, so that an interrupted build leaves nothing that looks finished.
fn build(unfinished: &PathBuf, folder: &PathBuf) -> Result<()> {
    tools::require_go_for("vcsim, the vSphere of the tests")?;
    let mut packages = 0;
    let mut go = controlplane::nice_go(&workspace::root());
    go.env("GOBIN", unfinished)
        .args(["install", "-v"])
        .args(controlplane::COMPILER_FLAGS)
        .arg("-ldflags=-s -w")
        .args(["vcsim", "govc"].map(|name| format!("github.com/vmware/govmomi/{name}@{VERSION}")));
    progress::run(
        &mut go,
        "building vcsim and govc (about 2 minutes the first time)",
        |line| {
            packages += 1;
            Some(format!("package {packages}, {line}"))
        },
    )?;
    fs::rename(unfinished, folder).with_context(|| format!("moving vcsim to {}", folder.display()))
}
