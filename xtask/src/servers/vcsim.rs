//! vcsim, the vSphere of a third party (VMware's own `govmomi`), and `govc`, its client.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::module::{GO_MOD, GoModule, QUICK};
use crate::go::tool::GoTool;
use crate::tools;

/// The newest release whose main module still holds both.
pub const TOOL: GoTool = GoTool {
    name: "vcsim",
    version: "v0.37.3",
    packages: &["github.com/vmware/govmomi/vcsim", "github.com/vmware/govmomi/govc"],
    tags: "",
    what: "vcsim and govc, a vSphere for tests (2 minutes the first time)",
};

/// The simulator of a newer release with Cloud Native Storage, for volumes (`tests/vcsim`).
pub const WITH_VOLUMES: GoModule = GoModule {
    name: "vcsim-volumes",
    folder: "tests/vcsim",
    package: ".",
    what: "vcsim with Cloud Native Storage",
    mod_file: GO_MOD,
    compiler_flags: &QUICK,
    linker_flags: |_| Ok("-ldflags=-s -w".to_owned()),
};

/// The two programs.
#[derive(Debug, Clone)]
pub struct Programs {
    /// The server.
    pub vcsim: PathBuf,
    /// The client.
    pub govc: PathBuf,
}

/// Both, built if they are not there yet.
///
/// # Errors
///
/// When Go is missing or they do not build.
pub fn programs() -> Result<Programs> {
    let folder = TOOL.get()?;
    Ok(Programs {
        vcsim: folder.join("vcsim"),
        govc: folder.join("govc"),
    })
}

/// The server with volumes, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn with_volumes() -> Result<PathBuf> {
    tools::require_go_for(WITH_VOLUMES.what)?;
    WITH_VOLUMES.binary()
}
