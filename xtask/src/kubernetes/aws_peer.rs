//! AWS's own cloud controller manager (`kubernetes/cloud-provider-aws`), which the benchmark runs beside ours.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::tool::GoTool;

/// The release that is compared with.
pub const TOOL: GoTool = GoTool {
    name: "aws-ccm",
    version: "v1.37.0",
    packages: &["k8s.io/cloud-provider-aws/cmd/aws-cloud-controller-manager"],
    tags: "",
    what: "AWS's cloud controller manager (5 minutes the first time)",
};

/// The program, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn program() -> Result<PathBuf> {
    Ok(TOOL.get()?.join("aws-cloud-controller-manager"))
}
