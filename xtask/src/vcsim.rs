//! vcsim, the vSphere of a third party (VMware's own `govmomi`), and `govc`, its client.

use std::path::PathBuf;

use anyhow::Result;

use crate::go_tool::GoTool;

/// The newest release whose main module still holds both.
pub const TOOL: GoTool = GoTool {
    name: "vcsim",
    version: "v0.37.3",
    packages: &["github.com/vmware/govmomi/vcsim", "github.com/vmware/govmomi/govc"],
    tags: "",
    what: "vcsim and govc, a vSphere for tests (2 minutes the first time)",
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
