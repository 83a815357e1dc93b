//! Component file: read with a size limit, unpacked, recognised, digested. Not compiled here.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use ring::digest::{SHA256, digest};
use ruzstd::decoding::StreamingDecoder;

use crate::LoadError;
use crate::load::toolchain::Toolchain;

/// First four bytes of every wasm file.
const MAGIC: &[u8] = b"\0asm";
/// Next four bytes of a core module: version 1, layer 0.
const CORE: &[u8] = &[1, 0, 0, 0];
/// Next four bytes of a component: version 13, layer 1.
const COMPONENT: &[u8] = &[0x0d, 0, 1, 0];

/// First four bytes of a Zstandard frame (RFC 8878, 3.1.1).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// The window that every decoder should take (RFC 8878, 3.1.1.1.2), in bytes.
const LEAST_WINDOW: u64 = 8 << 20;

/// The bytes of a component and who they are.
pub(crate) struct Artifact {
    /// The whole component, unpacked.
    pub bytes: Vec<u8>,
    /// SHA-256 of the component, unpacked, in lower-case hexadecimal: the same however it is packed.
    pub digest: String,
    /// Size of the file, as it was read, in bytes.
    pub file_bytes: u64,
}

impl Artifact {
    /// Reads a file of at most `limit` bytes, packed and unpacked, that is a component by its first eight bytes.
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
                unpacked: false,
            });
        }
        let bytes = if bytes.starts_with(ZSTD) {
            unpack(file, &bytes, limit)?
        } else {
            bytes
        };
        recognise(file, &bytes)?;
        let digest = HEXLOWER.encode(digest(&SHA256, &bytes).as_ref());
        Ok(Self {
            bytes,
            digest,
            file_bytes: size,
        })
    }
}

/// Unpacks one Zstandard frame, of which at most `limit` bytes are ever in memory, whatever it promises.
pub(crate) fn unpack(file: &Path, packed: &[u8], limit: u64) -> Result<Vec<u8>, LoadError> {
    let invalid = |problem: String| LoadError::Packed {
        file: file.into(),
        problem,
    };
    let mut rest = packed;
    let mut frame = StreamingDecoder::new_with_max_window_size(&mut rest, limit.max(LEAST_WINDOW))
        .map_err(|error| invalid(error.to_string()))?;
    let mut bytes = Vec::new();
    frame
        .by_ref()
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(error.to_string()))?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > limit {
        return Err(LoadError::TooLarge {
            file: file.into(),
            size: limit,
            limit,
            unpacked: true,
        });
    }
    let decoder = frame.into_frame_decoder();
    let (promised, found) = (decoder.get_checksum_from_data(), decoder.get_calculated_checksum());
    if promised.is_some() && promised != found {
        return Err(invalid("its checksum does not fit its content".into()));
    }
    if !rest.is_empty() {
        return Err(invalid("something follows after its first frame".into()));
    }
    Ok(bytes)
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
        Err(LoadError::CoreModule {
            file: file.into(),
            toolchain: Toolchain::of(bytes),
        })
    } else {
        let problem = format!("it has the unknown binary version {:02x?}", &rest[..rest.len().min(4)]);
        Err(LoadError::Invalid {
            file: file.into(),
            problem,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn nothing_unpacks_to_more_than_the_limit(
            repeated in any::<u8>(), size in 0_usize..20_000, changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
            limit in 0_u64..10_000,
        ) {
            let mut packed = compress_to_vec(vec![repeated; size].as_slice(), CompressionLevel::Fastest);
            for (at, byte) in &changes {
                let at = at.index(packed.len());
                packed[at] = *byte;
            }
            match unpack(Path::new("packed"), &packed, limit) {
                Ok(bytes) => prop_assert!(bytes.len() as u64 <= limit),
                Err(_) => prop_assert!(!changes.is_empty() || size as u64 > limit),
            }
        }

        #[test]
        fn no_bytes_make_unpacking_panic(rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let packed = [ZSTD, &rest].concat();
            if let Ok(bytes) = unpack(Path::new("packed"), &packed, 1000) {
                prop_assert!(bytes.len() <= 1000);
            }
        }
    }

    fn read(bytes: &[u8], limit: u64) -> Result<Artifact, LoadError> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sim.wasm");
        std::fs::write(&file, bytes).unwrap();
        Artifact::read(&file, limit)
    }

    #[test]
    fn component_is_known_by_its_digest() {
        let artifact = read(b"\0asm\x0d\0\x01\0", 8).unwrap();
        assert_eq!(
            artifact.digest,
            "24eaf3439a60c96764c4f2c92a0a81b52bd4fe5d5b91f090184a0f6486b1bf29".to_owned()
        );
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn a_packed_component_is_the_same_component() {
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        component.resize(100_000, 7);
        let packed = packed(&component);
        assert!(packed.len() < 1000);
        let (plain, unpacked) = (read(&component, 1 << 20).unwrap(), read(&packed, 1 << 20).unwrap());
        assert_eq!((plain.bytes, plain.digest), (unpacked.bytes, unpacked.digest));
    }

    #[test]
    fn what_unpacks_to_more_than_is_allowed_is_not_unpacked() {
        let bomb = packed(&vec![0; 10_000_000]);
        assert!(bomb.len() < 100_000);
        let error = read(&bomb, 100_000);
        assert!(matches!(
            error,
            Err(LoadError::TooLarge {
                limit: 100_000,
                size: 100_000,
                unpacked: true,
                ..
            })
        ));
    }

    #[test]
    fn a_damaged_packed_component_is_refused() {
        let component: Vec<u8> = b"\0asm\x0d\0\x01\0"
            .iter()
            .copied()
            .chain((0..=255).cycle().take(5000))
            .collect();
        let good = packed(&component);
        let mut longer = good.clone();
        longer.extend_from_slice(b"more");
        let mut changed = good.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bad in [&good[..good.len() / 2], &good[..5], &longer, &changed] {
            assert!(matches!(read(bad, 1 << 20), Err(LoadError::Packed { .. })));
        }
        assert!(read(&good, 1 << 20).is_ok());
    }

    #[test]
    fn other_answers_are_distinguished() {
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
