//! The binary `cloudwit` for tests that run it as operators do, built once for each process when first asked for.

pub mod child;
pub mod cloud_command;
pub mod guests;
pub mod oci_registry;
pub mod peer;
pub mod port;

use std::path::PathBuf;
use std::sync::OnceLock;

/// The binary, of the debug profile.
///
/// # Panics
///
/// With the compiler's last lines when it does not build.
pub fn cloudwit() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        let folder = xtask::programs::build(&["cloudwit"]).unwrap_or_else(|error| panic!("{error:#}"));
        folder.join("cloudwit")
    };
    BUILT.get_or_init(build).clone()
}
