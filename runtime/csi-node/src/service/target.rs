//! Staging and target paths: created, checked, removed; only empty entries are removed.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tonic::Status;

use crate::device::open::number;
use crate::mounts::calls;
use crate::mounts::table::Number;
use crate::paths::{self, PathError};
use crate::plugin::Plugin;

/// Only the kubelet looks into it.
const FOLDER_MODE: u32 = 0o750;

/// The same for the file that a device is shown at.
const FILE_MODE: u32 = 0o640;

/// The path to mount at.
///
/// # Errors
///
/// `InvalidArgument` for a path elsewhere, `FailedPrecondition` when its folder is missing.
pub fn place(plugin: &Plugin, path: &str) -> Result<PathBuf, Status> {
    paths::inside(&plugin.options.kubelet_dir, Path::new(path)).map_err(|error| match error {
        PathError::Outside(..) => Status::invalid_argument(error.to_string()),
        PathError::Missing(_) => Status::failed_precondition(error.to_string()),
        PathError::Unreadable(..) => Status::unavailable(error.to_string()),
    })
}

/// The path to look at or to unmount; none when there cannot be anything.
///
/// # Errors
///
/// As [`place`].
pub fn existing(plugin: &Plugin, path: &str) -> Result<Option<PathBuf>, Status> {
    match paths::inside(&plugin.options.kubelet_dir, Path::new(path)) {
        Err(PathError::Missing(_)) => Ok(None),
        _ => place(plugin, path).map(Some),
    }
}

/// Makes the folder, unless it is there.
///
/// # Errors
///
/// `FailedPrecondition` when something else is there.
pub fn folder(path: &Path) -> Result<(), Status> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is(path, "a folder", fs::FileType::is_dir),
        Err(error) => Err(trouble("cannot be made", path, &error)),
    }
}

/// Makes the empty file, unless it is there.
///
/// # Errors
///
/// `FailedPrecondition` when something else is there.
pub fn file(path: &Path) -> Result<(), Status> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(FILE_MODE).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is(path, "a file", fs::FileType::is_file),
        Err(error) => Err(trouble("cannot be made", path, &error)),
    }
}

fn is(path: &Path, what: &str, fits: fn(&fs::FileType) -> bool) -> Result<(), Status> {
    let found = fs::symlink_metadata(path).map_err(|error| trouble("cannot be read", path, &error))?;
    if fits(&found.file_type()) {
        Ok(())
    } else {
        Err(Status::failed_precondition(format!("{} is not {what}", path.display())))
    }
}

/// The number of the block device at this path, if one is.
pub fn block_device(path: &Path) -> Option<Number> {
    let found = fs::symlink_metadata(path).ok()?;
    found.file_type().is_block_device().then(|| number(found.rdev()))
}

/// Unmounts what is there.
///
/// # Errors
///
/// `Unavailable` while it is in use.
pub fn unmount(path: &Path) -> Result<bool, Status> {
    calls::unmount(path).map_err(|error| trouble("cannot be unmounted", path, &error))
}

/// Removes the folder or file, which has to be empty and no mount.
///
/// # Errors
///
/// `FailedPrecondition` when something is in it: it was written to while nothing was mounted.
pub fn remove(path: &Path) -> Result<(), Status> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(trouble("cannot be read", path, &error)),
    };
    let foreign = || Status::failed_precondition(format!("{} is not empty and is left alone", path.display()));
    let removed = if found.is_dir() {
        fs::remove_dir(path)
    } else if found.is_file() && found.len() == 0 {
        fs::remove_file(path)
    } else {
        return Err(foreign());
    };
    removed.map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty => foreign(),
        _ => trouble("cannot be removed", path, &error),
    })
}

/// What the system refused; the kubelet retries.
pub fn trouble(what: &str, path: &Path, error: &io::Error) -> Status {
    Status::unavailable(format!("{} {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn only_what_is_empty_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        super::folder(&at("empty")).unwrap();
        super::folder(&at("full")).unwrap();
        fs::write(at("full/data"), "x").unwrap();
        file(&at("file")).unwrap();
        fs::write(at("written"), "x").unwrap();
        std::os::unix::fs::symlink(at("empty"), at("link")).unwrap();
        for (name, code) in [
            ("full", Some(Code::FailedPrecondition)),
            ("written", Some(Code::FailedPrecondition)),
            ("link", Some(Code::FailedPrecondition)),
            ("file", None),
            ("empty", None),
            ("none", None),
        ] {
            assert_eq!(remove(&at(name)).err().map(|refused| refused.code()), code, "{name}");
        }
        assert!(at("full/data").exists() && at("written").exists() && !at("empty").exists());
    }

    #[test]
    fn entries_of_another_kind_are_not_mounted_at() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        super::folder(&one).unwrap();
        super::folder(&one).unwrap();
        file(&other).unwrap();
        file(&other).unwrap();
        std::os::unix::fs::symlink(&one, folder.path().join("link")).unwrap();
        for refused in [
            file(&one),
            super::folder(&other),
            super::folder(&folder.path().join("link")),
        ] {
            assert_eq!(refused.unwrap_err().code(), Code::FailedPrecondition);
        }
        assert_eq!(block_device(&one), None);
    }
}
