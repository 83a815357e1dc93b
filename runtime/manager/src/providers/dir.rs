//! Lookup of a provider by name in `--provider-dir`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why there is no such provider.
#[derive(Debug, Error)]
pub enum ProviderDirError {
    /// The folder cannot be read.
    #[error("--provider-dir={}: cannot be read: {source}; it has to be the folder that holds NAME.wasm", dir.display())]
    Unreadable {
        /// The folder.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No file of that name.
    #[error(
        "unknown cloud provider {name:?}: there is neither {name}.wasm nor {name}.wasm.zst in {}; {}",
        dir.display(), known_text(known)
    )]
    Unknown {
        /// What was requested.
        name: String,
        /// Where.
        dir: PathBuf,
        /// What there is, sorted.
        known: Vec<String>,
    },
    /// Two files of that name.
    #[error("--provider-dir={}: there is {name}.wasm and {name}.wasm.zst; keep the one that is meant", dir.display())]
    Twice {
        /// What was requested.
        name: String,
        /// Where.
        dir: PathBuf,
    },
}

/// How a component's file may end; the second one is compressed with Zstandard.
const ENDINGS: [&str; 2] = [".wasm", ".wasm.zst"];

fn known_text(known: &[String]) -> String {
    if known.is_empty() {
        "the folder holds no provider".into()
    } else {
        format!("known: {}", known.join(", "))
    }
}

/// The component of the provider of that name.
///
/// The folder may be a ConfigMap mount: its entries are links through `..data`, so links are followed and names that
/// start with a dot are none of ours.
pub fn find(dir: &Path, name: &str) -> Result<PathBuf, ProviderDirError> {
    let entries = fs::read_dir(dir).map_err(|source| ProviderDirError::Unreadable {
        dir: dir.into(),
        source,
    })?;
    let files: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|file| !file.starts_with('.'))
        .collect();
    let named = ENDINGS.map(|ending| format!("{name}{ending}"));
    let found: Vec<&String> = named.iter().filter(|file| files.contains(file)).collect();
    match found.as_slice() {
        [file] => Ok(dir.join(file)),
        [] => Err(ProviderDirError::Unknown {
            name: name.into(),
            dir: dir.into(),
            known: known(&files),
        }),
        _ => Err(ProviderDirError::Twice {
            name: name.into(),
            dir: dir.into(),
        }),
    }
}

/// The providers whose components these are, sorted.
fn known(files: &[String]) -> Vec<String> {
    let known: BTreeSet<&str> = files.iter().filter_map(|file| name_of(file)).collect();
    known.into_iter().map(str::to_owned).collect()
}

/// The name of the provider whose component has this file name; none for another file.
pub fn name_of(file: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| file.strip_suffix(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_map_mount_is_read_through_its_links() {
        let mount = tempfile::tempdir().unwrap();
        let data = mount.path().join("..2026_data");
        fs::create_dir(&data).unwrap();
        fs::write(data.join("sim.wasm"), b"x").unwrap();
        std::os::unix::fs::symlink("..2026_data", mount.path().join("..data")).unwrap();
        std::os::unix::fs::symlink("..data/sim.wasm", mount.path().join("sim.wasm")).unwrap();
        assert_eq!(find(mount.path(), "sim").unwrap(), mount.path().join("sim.wasm"));
    }

    #[test]
    fn unknown_name_lists_the_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
        fs::write(dir.path().join("aws.wasm"), b"x").unwrap();
        fs::write(dir.path().join("notes.txt"), b"x").unwrap();
        let error = find(dir.path(), "azure").unwrap_err().to_string();
        assert!(error.contains("unknown cloud provider \"azure\""), "{error}");
        assert!(error.ends_with("known: aws, sim"), "{error}");
    }

    #[test]
    fn packed_component_is_found_and_duplicate_name_is_mistake() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sim.wasm.zst"), b"x").unwrap();
        assert_eq!(find(dir.path(), "sim").unwrap(), dir.path().join("sim.wasm.zst"));
        let error = find(dir.path(), "sim.wasm").unwrap_err().to_string();
        assert!(error.ends_with("known: sim"), "{error}");
        fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
        let error = find(dir.path(), "sim").unwrap_err().to_string();
        assert!(
            error.contains("there is sim.wasm and sim.wasm.zst; keep the one"),
            "{error}"
        );
    }

    #[test]
    fn a_name_cannot_leave_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
        assert!(matches!(find(&inner, "../sim"), Err(ProviderDirError::Unknown { .. })));
    }

    #[test]
    fn empty_or_missing_folder_is_reported_plainly() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            find(dir.path(), "sim")
                .unwrap_err()
                .to_string()
                .contains("holds no provider")
        );
        assert!(
            find(&dir.path().join("gone"), "sim")
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
