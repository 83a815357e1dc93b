//! Tests that cross crates: layering, hostile guests, egress, the controllers on a real API server.
//!
//! The tests are under `tests/`. Here are the checks that read the repository itself:
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | [`collector`] | a trace collector |
//! | [`common`] | scenes, clouds and clients that several tests share |
//! | [`hosting`] | a provider host for tests, with what it sees of the world |
//! | [`arrows`] | which crate may depend on which |
//! | [`purity`] | what the deciding files of the controllers may import |
//! | [`documents`] | links and commands in Markdown files |

pub mod arrows;
pub mod collector;
pub mod common;
pub mod documents;
pub mod folders;
pub mod hosting;
pub mod purity;

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors()
        .nth(2)
        .expect("tests/suite is two folders below the root")
        .to_path_buf()
}

/// All files of the repository below a folder whose names end so, without what is built and without hidden folders.
///
/// # Panics
///
/// When the folder cannot be read.
pub fn files_below(folder: &Path, name_end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            found.extend(files_below(&path, name_end));
        } else if name.ends_with(name_end) && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}
