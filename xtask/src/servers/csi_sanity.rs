//! csi-sanity, Kubernetes' own tests of CSI drivers.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::tool::GoTool;

/// The newest release.
pub const TOOL: GoTool = GoTool {
    name: "csi-sanity",
    version: "v5.6.0",
    packages: &["github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity"],
    tags: "",
    what: "csi-sanity, which tries CSI drivers (a minute the first time)",
};

/// The program, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn program() -> Result<PathBuf> {
    Ok(TOOL.get()?.join("csi-sanity"))
}
