//! Size and digest of a component file, without running it.
//!
//! Reads and refuses as loading does (`artifact`); the component's own description comes from a loaded [`Provider`](crate::Provider).

use std::io::{self, Write};
use std::path::Path;

use zstd::Encoder;

use crate::load::artifact::Artifact;
use crate::{Limits, LoadError};

/// The command that compresses a component as strongly as [`ComponentFile::compressed_bytes`]; what it makes may differ by a hundredth.
pub const COMPRESSION: &str = "zstd -19 --long=27";
const LEVEL: i32 = 19;
const WINDOW_LOG: u32 = 27;

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

    /// The component, unpacked.
    pub fn into_unpacked(self) -> Vec<u8> {
        self.unpacked
    }

    /// Its size when it is compressed with [`COMPRESSION`], in bytes, or the file's where that is smaller. Takes a second for 2 MB.
    ///
    /// # Errors
    /// There is no memory for the compressor.
    pub fn compressed_bytes(&self) -> io::Result<u64> {
        let mut encoder = Encoder::new(Count(0), LEVEL)?;
        encoder.set_pledged_src_size(Some(self.bytes))?;
        encoder.long_distance_matching(true)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.write_all(&self.unpacked)?;
        Ok(encoder.finish()?.0.min(self.file_bytes))
    }
}

/// Counts what is written to it, in bytes.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_component_differs_only_in_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.resize(50_000, 7);
        let packed = zstd::bulk::compress(&component, 3).unwrap();
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
        assert_eq!(small.compressed_bytes().unwrap(), packed.len() as u64);
    }

    #[test]
    fn strong_compression_uses_a_long_window_and_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        // Repeated at a distance that only a long window finds.
        let mut random = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            random.to_be_bytes()[0]
        })
        .take(9 << 20)
        .collect();
        let component = [b"\0asm\x0d\0\x01\0".as_slice(), &noise, &noise].concat();
        let (plain, packed) = (dir.path().join("a.wasm"), dir.path().join("a.wasm.zst"));
        std::fs::write(&plain, &component).unwrap();
        let limits = Limits {
            component_bytes: Limits::MOST_COMPONENT_BYTES,
            ..Limits::default()
        };
        let bytes = ComponentFile::read(&plain, &limits)
            .unwrap()
            .compressed_bytes()
            .unwrap();
        assert!(bytes < (10 << 20), "{bytes}");
        let mut encoder = Encoder::new(Vec::new(), LEVEL).unwrap();
        encoder.set_pledged_src_size(Some(component.len() as u64)).unwrap();
        encoder.long_distance_matching(true).unwrap();
        encoder.window_log(WINDOW_LOG).unwrap();
        encoder.write_all(&component).unwrap();
        std::fs::write(&packed, encoder.finish().unwrap()).unwrap();
        let read = ComponentFile::read(&packed, &limits).unwrap();
        assert_eq!((read.file_bytes, read.bytes), (bytes, component.len() as u64));
    }
}
