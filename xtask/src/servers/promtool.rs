//! promtool, Prometheus' own tests of alerting rules.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::tool::GoTool;

/// The newest release of Prometheus (3.16), without the ways to find targets in clouds, which are most of its build.
pub const TOOL: GoTool = GoTool {
    name: "promtool",
    version: "v0.316.0",
    packages: &["github.com/prometheus/prometheus/cmd/promtool"],
    tags: "remove_all_sd",
    what: "promtool, which plays alerts (a few minutes the first time)",
};

/// The program, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn program() -> Result<PathBuf> {
    Ok(TOOL.get()?.join("promtool"))
}
