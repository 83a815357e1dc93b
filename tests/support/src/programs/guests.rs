//! Provider components for tests, built once for each process when first asked for.
//!
//! `cargo xtask test` builds them beforehand and names their folder in `CLOUDWIT_GUESTS`; then nothing is built here.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The component of `providers/NAME`.
///
/// # Panics
///
/// With one line that says why it cannot be built.
pub fn provider(name: &str) -> PathBuf {
    static BUILT: OnceLock<Mutex<HashMap<String, PathBuf>>> = OnceLock::new();
    let mut built = BUILT
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let build = || xtask::guests::provider(name).unwrap_or_else(|error| panic!("{error:#}"));
    built.entry(name.to_owned()).or_insert_with(build).clone()
}

/// The component of `tests/guests/examples/NAME.rs`.
///
/// # Panics
///
/// With one line that says why it cannot be built, or which guests there are.
pub fn test_guest(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| xtask::guests::test_guests().unwrap_or_else(|error| panic!("{error:#}")));
    let file = folder.join(format!("{name}.wasm"));
    assert!(
        file.is_file(),
        "there is no test guest {name:?}; there are {:?}",
        xtask::guests::components(folder)
    );
    file
}
