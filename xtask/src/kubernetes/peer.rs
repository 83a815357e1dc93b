//! Builds `tests/peer`, upstream's controllers in Go on the simulated cloud, which Cloudwit is compared with.

use std::path::PathBuf;

use anyhow::Result;

use crate::go::module::{GO_MOD, GoModule, QUICK, RELEASE};
use crate::tools;

/// As it is measured: optimised as released programs are.
pub const MEASURED: GoModule = GoModule {
    name: "peer",
    folder: "tests/peer",
    package: ".",
    what: "upstream's controllers in Go",
    mod_file: GO_MOD,
    compiler_flags: &RELEASE,
    linker_flags,
};

/// As tests run it: with the flags of the API server, whose packages then come from the cache.
pub const TESTED: GoModule = GoModule {
    name: "quick-peer",
    compiler_flags: &QUICK,
    ..MEASURED
};

/// The program that is measured, built if it is not there yet.
///
/// # Errors
///
/// When Go is missing or it does not build.
pub fn measured() -> Result<PathBuf> {
    tools::require_go_for(MEASURED.what)?;
    MEASURED.binary()
}

/// The program that tests run, built if it is not there yet.
///
/// # Errors
///
/// As [`measured`].
pub fn tested() -> Result<PathBuf> {
    tools::require_go_for(TESTED.what)?;
    TESTED.binary()
}

/// Stripped, as releases are.
fn linker_flags(_: &str) -> Result<String> {
    Ok("-ldflags=-s -w".to_owned())
}
