//! cosign, Sigstore's own program: signs components and judges our signatures.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::tool::GoTool;

/// The newest release.
pub const TOOL: GoTool = GoTool {
    name: "cosign",
    version: "v3.1.3",
    packages: &["github.com/sigstore/cosign/v3/cmd/cosign"],
    tags: "",
    what: "cosign, which signs artifacts (3 minutes the first time)",
};

/// The program, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn program() -> Result<PathBuf> {
    Ok(TOOL.get()?.join("cosign"))
}
