//! Copy of a file in memory, under a path whose reads never hang.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// A file in memory.
#[derive(Debug)]
pub struct MirroredFile(OwnedFd);

impl MirroredFile {
    /// With this content.
    ///
    /// # Errors
    ///
    /// When the system has no such files.
    pub fn new(content: &[u8]) -> io::Result<Self> {
        let file = Self(memfd_create("cloudwit", MemfdFlags::CLOEXEC)?);
        file.set(content)?;
        Ok(file)
    }

    /// Where it can be read, by this process, for as long as this value lives.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Takes other content. Who reads at this moment may see both.
    pub fn set(&self, content: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = content.get(written..).filter(|rest| !rest.is_empty()) {
            written += rustix::io::pwrite(&self.0, rest, written as u64)?;
        }
        ftruncate(&self.0, content.len() as u64)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_is_read_by_its_path_and_takes_shorter_content() {
        let mirror = MirroredFile::new(b"one long content").unwrap();
        assert_eq!(std::fs::read(mirror.path()).unwrap(), b"one long content");
        mirror.set(b"short").unwrap();
        assert_eq!(std::fs::read(mirror.path()).unwrap(), b"short");
    }
}
