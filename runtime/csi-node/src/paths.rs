//! Paths of the kubelet's folder: nothing is mounted, made or removed anywhere else.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use thiserror::Error;

/// Linux' own limit (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Why a path is not used.
#[derive(Debug, Error)]
pub enum PathError {
    /// The folder that it is in does not exist.
    #[error("the folder of {0} does not exist")]
    Missing(PathBuf),
    /// It is somewhere else.
    #[error("{0} is not below the kubelet's folder {1}")]
    Outside(PathBuf, PathBuf),
    /// The system does not say.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, io::Error),
}

/// What is wrong with the path of a request, without a look at the disk.
pub fn wrong(text: &str) -> Option<&'static str> {
    let path = Path::new(text);
    let odd = |part: Component<'_>| matches!(part, Component::ParentDir | Component::Prefix(_));
    if text.is_empty() {
        Some("is missing")
    } else if text.len() > LONGEST {
        Some("is longer than 4096 bytes")
    } else if text.contains(char::is_control) {
        Some("contains control characters")
    } else if !path.is_absolute() {
        Some("is not absolute")
    } else if path.components().any(odd) || path.file_name().is_none() {
        Some("contains .. or names no entry")
    } else {
        None
    }
}

/// The path as the mount table has it: its folder without links, which has to be below the kubelet's. The entry itself need not exist.
///
/// # Errors
///
/// When it is somewhere else, or its folder does not exist.
pub fn inside(kubelet_dir: &Path, path: &Path) -> Result<PathBuf, PathError> {
    let real = |path: &Path| {
        fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => PathError::Missing(path.to_owned()),
            _ => PathError::Unreadable(path.to_owned(), error),
        })
    };
    let outside = || PathError::Outside(path.to_owned(), kubelet_dir.to_owned());
    let (folder, name) = path.parent().zip(path.file_name()).ok_or_else(outside)?;
    // Before the folder is checked: whether there is one elsewhere must not be revealed.
    if !path.starts_with(kubelet_dir) {
        return Err(outside());
    }
    let folder = real(folder).map_err(|error| match error {
        PathError::Missing(_) => PathError::Missing(path.to_owned()),
        other => other,
    })?;
    if folder.starts_with(real(kubelet_dir)?) {
        Ok(folder.join(name))
    } else {
        Err(outside())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn odd_paths_are_refused() {
        for odd in [
            "",
            "a/b",
            "/",
            "/a/../b",
            "/a/..",
            "/a\nb",
            &format!("/{}", "a".repeat(4096)),
        ] {
            assert!(wrong(odd).is_some(), "{odd:?}");
        }
        for good in ["/var/lib/kubelet/pods/x/mount", "/a//b", "/a/b/", "/a/.b"] {
            assert_eq!(wrong(good), None, "{good:?}");
        }
    }

    #[test]
    fn links_lead_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let (kubelet, other) = (folder.path().join("kubelet"), folder.path().join("other"));
        fs::create_dir_all(kubelet.join("pods")).unwrap();
        fs::create_dir_all(&other).unwrap();
        symlink(&other, kubelet.join("out")).unwrap();
        symlink(kubelet.join("pods"), kubelet.join("in")).unwrap();
        let seen = |path: &str| inside(&kubelet, &kubelet.join(path));
        let real = fs::canonicalize(&kubelet).unwrap();
        assert_eq!(seen("pods/target").unwrap(), real.join("pods/target"));
        assert_eq!(seen("in/target").unwrap(), real.join("pods/target"));
        assert!(matches!(seen("out/target"), Err(PathError::Outside(..))));
        assert!(matches!(seen("none/target"), Err(PathError::Missing(_))));
        assert!(matches!(
            inside(&kubelet, &other.join("target")),
            Err(PathError::Outside(..))
        ));
    }

    #[test]
    fn kubelet_folder_may_be_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("data"), folder.path().join("kubelet"));
        fs::create_dir_all(real.join("pods")).unwrap();
        symlink(&real, &link).unwrap();
        let expected = fs::canonicalize(&real).unwrap().join("pods/x");
        assert_eq!(inside(&link, &link.join("pods/x")).unwrap(), expected);
    }
}
