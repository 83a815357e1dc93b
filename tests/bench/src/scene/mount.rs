//! A file in a folder as kubelet mounts a ConfigMap: changed by turning the link `..data`.
//!
//! As `pkg/volume/util/atomic_writer.go` of kubernetes does: the new content goes into a new folder, and `..data` is turned to it by a rename.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// One file in such a folder.
#[derive(Debug)]
pub struct MountedFile {
    folder: PathBuf,
    name: String,
    written: u32,
}

impl MountedFile {
    /// Makes the folder anew, with this file in it.
    ///
    /// # Errors
    ///
    /// As the file system answers.
    pub fn new(folder: PathBuf, name: &str, content: &[u8]) -> io::Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        symlink(Path::new("..data").join(name), folder.join(name))?;
        let mut file = Self {
            folder,
            name: name.to_owned(),
            written: 0,
        };
        file.replace(content)?;
        Ok(file)
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Gives it another content, at once.
    ///
    /// # Errors
    ///
    /// As the file system answers.
    pub fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        self.written += 1;
        let fresh = format!("..{}", self.written);
        let (data, next) = (self.folder.join("..data"), self.folder.join("..data_tmp"));
        fs::create_dir(self.folder.join(&fresh))?;
        fs::write(self.folder.join(&fresh).join(&self.name), content)?;
        let old = fs::read_link(&data).ok();
        symlink(&fresh, &next)?;
        fs::rename(&next, &data)?;
        match old {
            Some(old) => fs::remove_dir_all(self.folder.join(old)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_changes_in_place_and_nothing_is_left_over() {
        let folder = tempfile::tempdir().unwrap();
        let mount = folder.path().join("mount");
        let mut file = MountedFile::new(mount.clone(), "sim.wasm", b"one").unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"one");
        file.replace(b"two").unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"two");
        assert_eq!(
            fs::read_dir(mount).unwrap().count(),
            3,
            "the link, ..data and one folder"
        );
    }
}
