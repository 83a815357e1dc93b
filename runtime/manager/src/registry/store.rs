//! Store of pulled components: a folder below the cache folder, else memory.
//!
//! Nothing in it is trusted: names are digests, and who reads checks content against them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cloudwit_host::private_dir;
use parking_lot::Mutex;
use rustix::fs::MemfdFlags;

/// Folder below the cache folder.
const FOLDER: &str = "cloudwit-components";

/// Files that are kept; a component has three. The ones used longest ago go first.
const FILES: usize = 48;

/// Entries in memory.
const IN_MEMORY: usize = 12;

/// What is in memory, for as long as the process lives: files without a name, which are read like others.
static MEMORY: Mutex<VecDeque<(String, File)>> = Mutex::new(VecDeque::new());

/// The store. All its functions block.
#[derive(Debug, Clone)]
pub struct Store {
    dir: Option<PathBuf>,
}

impl Store {
    /// Opens it below the cache folder. Where that cannot be used, or is none, things are kept in memory, with one line in the log.
    pub fn open(cache_dir: Option<&Path>) -> Self {
        let dir = cache_dir.map(|dir| dir.join(FOLDER));
        let usable = dir.as_ref().map(|dir| private_dir::create(dir));
        if let (Some(dir), Some(Err(error))) = (&dir, &usable) {
            tracing::warn!(dir = %dir.display(), %error, "pulled components are kept in memory alone");
        }
        Self {
            dir: dir.filter(|_| matches!(usable, Some(Ok(())))),
        }
    }

    /// An entry of at most so many bytes, and where it is.
    pub fn get(&self, name: &str, limit: u64) -> Option<(PathBuf, Vec<u8>)> {
        let on_disk = self
            .dir
            .as_ref()
            .map(|dir| dir.join(name))
            .filter(|file| file.is_file());
        let file = on_disk.or_else(|| in_memory(name))?;
        let mut content = Vec::new();
        let opened = File::open(&file).ok()?;
        opened.take(limit.saturating_add(1)).read_to_end(&mut content).ok()?;
        if content.len() as u64 > limit {
            return None;
        }
        if self.dir.is_some() {
            // Used now. What cannot be marked is older than it could be.
            let _ = File::open(&file).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Some((file, content))
    }

    /// Keeps an entry; where.
    pub fn put(&self, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let Some(dir) = &self.dir else {
            return remember(name, content);
        };
        let file = dir.join(name);
        match private_dir::write(&file, &[content]) {
            Ok(()) => {
                private_dir::remove_oldest(dir, FILES);
                Ok(file)
            }
            Err(error) => {
                tracing::warn!(file = %file.display(), %error, "pulled component is kept in memory alone");
                remember(name, content)
            }
        }
    }
}

fn in_memory(name: &str) -> Option<PathBuf> {
    let mut memory = MEMORY.lock();
    let at = memory.iter().position(|(known, _)| known == name)?;
    let entry = memory.remove(at)?;
    let path = path_of(&entry.1);
    memory.push_back(entry);
    Some(path)
}

fn remember(name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(content)?;
    let path = path_of(&file);
    let mut memory = MEMORY.lock();
    memory.retain(|(known, _)| known != name);
    memory.push_back((name.to_owned(), file));
    let surplus = memory.len().saturating_sub(IN_MEMORY);
    memory.drain(..surplus);
    Ok(path)
}

/// What is opened by this path is the file from its beginning.
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn entry_is_found_again_on_disk_and_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        for store in [Store::open(Some(dir.path())), Store::open(None)] {
            assert!(store.get("found-again", 9).is_none());
            let path = store.put("found-again", b"content").unwrap();
            assert_eq!(store.get("found-again", 9), Some((path.clone(), b"content".to_vec())));
            assert_eq!(fs::read(&path).unwrap(), b"content");
            assert!(store.get("found-again", 6).is_none());
            store.put("found-again", b"other").unwrap();
            assert_eq!(store.get("found-again", 9).unwrap().1, b"other");
        }
        assert!(dir.path().join(FOLDER).join("found-again").is_file());
    }

    #[test]
    fn folder_of_others_is_not_used_and_oldest_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        Store::open(Some(dir.path())).put("shared", b"x").unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let store = Store::open(Some(dir.path()));
        for number in 0..FILES + 3 {
            store.put(&format!("number-{number}"), b"x").unwrap();
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), FILES);
        assert!(store.get("number-0", 9).is_none());
    }
}
