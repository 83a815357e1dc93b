//! A component file on disk: read with a size limit, recognised, digested. Nothing is compiled here.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use ring::digest::{SHA256, digest};

use crate::LoadError;

/// First four bytes of every wasm file.
const MAGIC: &[u8] = b"\0asm";
/// Next four bytes of a core module: version 1, layer 0.
const CORE: &[u8] = &[1, 0, 0, 0];
/// Next four bytes of a component: version 13, layer 1.
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// The bytes of a component and who they are.
pub(crate) struct Artifact {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub digest: String,
}

impl Artifact {
    /// Reads a file of at most `limit` bytes that is a component by its first eight bytes.
    pub fn read(file: &Path, limit: u64) -> Result<Self, LoadError> {
        let unreadable = |error: std::io::Error| LoadError::Unreadable {
            file: file.into(),
            error: error.to_string(),
        };
        let opened = File::open(file).map_err(unreadable)?;
        let metadata = opened.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(LoadError::Unreadable {
                file: file.into(),
                error: "it is not a regular file".into(),
            });
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read, so the limit is enforced on what was read.
        opened
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > limit {
            return Err(LoadError::TooLarge {
                file: file.into(),
                size: metadata.len().max(size),
                limit,
            });
        }
        recognise(file, &bytes)?;
        let digest = hex(digest(&SHA256, &bytes).as_ref());
        Ok(Self { bytes, digest })
    }
}

fn recognise(file: &Path, bytes: &[u8]) -> Result<(), LoadError> {
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        let start = String::from_utf8_lossy(&bytes[..bytes.len().min(8)]).into_owned();
        return Err(LoadError::NotWasm {
            file: file.into(),
            start,
        });
    };
    if rest.starts_with(COMPONENT) {
        Ok(())
    } else if rest.starts_with(CORE) {
        Err(LoadError::CoreModule { file: file.into() })
    } else {
        let problem = format!("it has the unknown binary version {:02x?}", &rest[..rest.len().min(4)]);
        Err(LoadError::Invalid {
            file: file.into(),
            problem,
        })
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String never fails");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], limit: u64) -> Result<Artifact, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sim.wasm");
        std::fs::write(&file, bytes).unwrap();
        Artifact::read(&file, limit)
    }

    #[test]
    fn a_component_is_known_by_its_digest() {
        let artifact = read(b"\0asm\x0d\0\x01\0", 8).unwrap();
        assert_eq!(
            artifact.digest,
            "24eaf3439a60c96764c4f2c92a0a81b52bd4fe5d5b91f090184a0f6486b1bf29".to_owned()
        );
    }

    #[test]
    fn anything_else_is_told_apart() {
        assert!(matches!(read(b"", 8), Err(LoadError::NotWasm { .. })));
        assert!(matches!(read(b"#!/bin/sh\n", 99), Err(LoadError::NotWasm { start, .. }) if start == "#!/bin/s"));
        assert!(matches!(read(b"\0asm\x01\0\0\0", 8), Err(LoadError::CoreModule { .. })));
        assert!(matches!(read(b"\0asm\x02", 8), Err(LoadError::Invalid { .. })));
        assert!(matches!(
            read(b"\0asm\x0d\0\x01\0x", 8),
            Err(LoadError::TooLarge { size: 9, limit: 8, .. })
        ));
        let missing = Artifact::read(Path::new("/nowhere/sim.wasm"), 8);
        assert!(matches!(missing, Err(LoadError::Unreadable { .. })));
        assert!(matches!(
            Artifact::read(&std::env::temp_dir(), 8),
            Err(LoadError::Unreadable { .. })
        ));
    }
}
