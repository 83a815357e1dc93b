//! Size and digest of a component file, without running it.
//!
//! Reads and refuses as loading does (`artifact`); what the component says about itself is a loaded [`Provider`](crate::Provider)'s to tell.

use std::path::Path;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::load::artifact::Artifact;
use crate::{Limits, LoadError};

/// A component's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFile {
    /// Size of the file as it is, in bytes.
    pub file_bytes: u64,
    /// Whether the file is compressed with Zstandard.
    pub compressed: bool,
    /// Size of the component, unpacked, in bytes.
    pub bytes: u64,
    /// SHA-256 of the component, unpacked, in lower-case hexadecimal.
    pub digest: String,
    unpacked: Vec<u8>,
}

impl ComponentFile {
    /// Reads a file that is a component by its first bytes. Compiles nothing.
    ///
    /// # Errors
    /// The file cannot be read, is too large, damaged, or something else: the same sentence as when it is loaded.
    pub fn read(file: &Path, limits: &Limits) -> Result<Self, LoadError> {
        let Artifact {
            bytes,
            digest,
            file_bytes,
        } = Artifact::read(file, limits.component_bytes)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(Self {
            file_bytes,
            // A component begins with other bytes than a frame of Zstandard, so the sizes differ exactly then.
            compressed: file_bytes != size,
            bytes: size,
            digest,
            unpacked: bytes,
        })
    }

    /// Its size when it is compressed, in bytes: of the file where it is, else with the fastest level of Zstandard; `zstd -19` gives less.
    pub fn compressed_bytes(&self) -> u64 {
        if self.compressed {
            return self.file_bytes;
        }
        let packed = compress_to_vec(self.unpacked.as_slice(), CompressionLevel::Fastest);
        u64::try_from(packed.len()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_and_its_compressed_file_differ_in_nothing_but_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.resize(50_000, 7);
        let packed = compress_to_vec(component.as_slice(), CompressionLevel::Fastest);
        let (plain_file, packed_file) = (dir.path().join("a.wasm"), dir.path().join("a.wasm.zst"));
        std::fs::write(&plain_file, &component).unwrap();
        std::fs::write(&packed_file, &packed).unwrap();
        let (plain, small) = (
            ComponentFile::read(&plain_file, &Limits::default()).unwrap(),
            ComponentFile::read(&packed_file, &Limits::default()).unwrap(),
        );
        assert_eq!((plain.compressed, small.compressed), (false, true));
        assert_eq!((plain.file_bytes, plain.bytes), (50_000, 50_000));
        assert_eq!((small.file_bytes, small.bytes), (packed.len() as u64, 50_000));
        assert_eq!(plain.digest, small.digest);
        assert_eq!(plain.compressed_bytes(), small.compressed_bytes());
    }
}
