//! Fingerprint of files, links followed: how a change of a file is seen without reading it.
//!
//! kubelet writes a ConfigMap or Secret into a new folder and then turns the link `..data` to it; the file behind the link is another one
//! then, with another inode, though its own link is the same. A plain file has another time of change.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How some files looked at one moment. Another content without another fingerprint is next to impossible: the time of change of an inode
/// cannot be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint(Vec<(PathBuf, Option<Look>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Fingerprint {
    /// Looks at these files. One that is not there looks like nothing.
    pub fn of(paths: &[PathBuf]) -> Self {
        Self(paths.iter().map(|path| (path.clone(), look(path))).collect())
    }
}

fn look(path: &Path) -> Option<Look> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Look {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_turn_of_data_changes_every_file_behind_it() {
        let mount = tempfile::tempdir().unwrap();
        let at = |name: &str| mount.path().join(name);
        for (folder, content) in [("..1", "old"), ("..2", "new")] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join("token"), content).unwrap();
        }
        symlink("..1", at("..data")).unwrap();
        symlink("..data/token", at("token")).unwrap();
        let paths = [at("token")];
        let before = Fingerprint::of(&paths);
        assert_eq!(Fingerprint::of(&paths), before);
        symlink("..2", at("..data_tmp")).unwrap();
        fs::rename(at("..data_tmp"), at("..data")).unwrap();
        assert_ne!(Fingerprint::of(&paths), before);
    }

    #[test]
    fn replacement_with_same_size_and_time_is_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("file"), folder.path().join("other"));
        fs::write(&file, "1").unwrap();
        let paths = [file.clone()];
        let before = Fingerprint::of(&paths);
        fs::write(&other, "2").unwrap();
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_modified(time)
            .unwrap();
        fs::rename(&other, &file).unwrap();
        let replaced = Fingerprint::of(&paths);
        assert_ne!(replaced, before);
        fs::remove_file(&file).unwrap();
        assert_ne!(Fingerprint::of(&paths), replaced);
    }
}
