//! A registry by others (go-containerregistry's), in memory.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::tool::GoTool;

/// The newest release.
pub const TOOL: GoTool = GoTool {
    name: "oci-registry",
    version: "v0.22.1",
    packages: &["github.com/google/go-containerregistry/cmd/registry"],
    tags: "",
    what: "an OCI registry for tests (seconds)",
};

/// The program, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn program() -> Result<PathBuf> {
    Ok(TOOL.get()?.join("registry"))
}
