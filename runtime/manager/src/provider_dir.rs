//! Finding a provider by its name in `--provider-dir`, as upstream finds one in its registration map.

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
    #[error("unknown cloud provider {name:?}: there is no {name}.wasm in {}; {}", dir.display(), known_text(known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Where.
        dir: PathBuf,
        /// What there is, sorted.
        known: Vec<String>,
    },
}

fn known_text(known: &[String]) -> String {
    if known.is_empty() {
        "the folder holds no provider at all".into()
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
    let mut known: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.path().is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|file| !file.starts_with('.'))
        .filter_map(|file| file.strip_suffix(".wasm").map(str::to_owned))
        .collect();
    known.sort();
    if known.iter().any(|candidate| candidate == name) {
        Ok(dir.join(format!("{name}.wasm")))
    } else {
        Err(ProviderDirError::Unknown {
            name: name.into(),
            dir: dir.into(),
            known,
        })
    }
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
    fn an_unknown_name_lists_the_known_ones() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("sim.wasm"), b"x").unwrap();
        fs::write(dir.path().join("aws.wasm"), b"x").unwrap();
        fs::write(dir.path().join("notes.txt"), b"x").unwrap();
        let error = find(dir.path(), "azure").unwrap_err().to_string();
        assert!(error.contains("unknown cloud provider \"azure\""), "{error}");
        assert!(error.ends_with("known: aws, sim"), "{error}");
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
    fn an_empty_or_missing_folder_is_said_plainly() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            find(dir.path(), "sim")
                .unwrap_err()
                .to_string()
                .contains("holds no provider at all")
        );
        assert!(
            find(&dir.path().join("gone"), "sim")
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
