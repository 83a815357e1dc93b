//! A folder as kubelet mounts a ConfigMap or a Secret, and as it changes it.
//!
//! As `pkg/volume/util/atomic_writer.go` of kubernetes does: the files go into a new folder, the link `..data` is turned to it at once by a
//! rename, files that are new get a link through `..data`, and the old folder goes.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A mount. Dropping it leaves the folder to who made it.
pub struct Mount {
    folder: PathBuf,
    written: Cell<u32>,
}

impl Mount {
    /// A mount with these files.
    pub fn new(folder: &Path, files: &[(&str, &[u8])]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let mount = Self {
            folder: folder.to_owned(),
            written: Cell::new(0),
        };
        mount.write(files);
        mount
    }

    /// A file of it.
    pub fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// The object was changed: these are its files now, and no others.
    pub fn write(&self, files: &[(&str, &[u8])]) {
        let number = self.written.replace(self.written.get() + 1);
        let (fresh, data) = (format!("..2026_11_21_{number}"), self.path("..data"));
        fs::create_dir(self.path(&fresh)).unwrap();
        for (name, content) in files {
            fs::write(self.path(&fresh).join(name), content).unwrap();
        }
        let old = fs::read_link(&data).ok();
        symlink(&fresh, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), &data).unwrap();
        for (name, _) in files {
            if fs::symlink_metadata(self.path(name)).is_err() {
                symlink(Path::new("..data").join(name), self.path(name)).unwrap();
            }
        }
        for entry in fs::read_dir(&self.folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.starts_with("..") && !files.iter().any(|(kept, _)| *kept == name) {
                fs::remove_file(self.path(&name)).unwrap();
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.path(old.to_str().unwrap())).unwrap();
        }
    }
}
