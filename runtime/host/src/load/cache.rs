//! Cache of compiled code on disk.
//!
//! An entry is found by the SHA-256 of the component and of everything in the engine that compiled code depends on.
//! Whatever is wrong with an entry, it is ignored and made again: the cache makes a load faster and never makes it
//! fail.
//!
//! The only `unsafe` of the repository is here: wasmtime runs the machine code it is given, so [`CodeCache::load`]
//! hands over only what this process's own user wrote. See the argument there.
#![allow(
    unsafe_code,
    reason = "deserializing compiled code; the safety argument stands at the call"
)]

use std::fs::File;
use std::hash::{Hash as _, Hasher};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::HostError;
use crate::load::artifact::Artifact;
use crate::load::compiler::CompiledCode;
use crate::private_dir;

/// Start of every entry; changes when the layout does. The entry's key follows, then the SHA-256 of all that is here but itself, then the code.
const HEADER: &[u8] = b"cloudwit compiled code 2\n";

/// What an entry is for: SHA-256 of the component's digest and of everything in the engine that compiled code depends on. In its header, so that a file
/// which got another one's name is not taken for it.
type Key = [u8; SHA256_OUTPUT_LEN];

/// Folder below the configured one. Our own, since the configured one is often a volume that others may write to.
const FOLDER: &str = "cloudwit-code";

/// Entries that are kept; the oldest go first. A process has a handful of providers, each some megabytes.
const ENTRIES: usize = 32;

/// The cache, or nothing when none is configured.
pub(crate) struct CodeCache {
    dir: Option<PathBuf>,
}

impl CodeCache {
    /// Opens the cache below `dir`, creating what is missing. Refuses a folder that another user could write to.
    pub fn open(dir: Option<&Path>) -> Result<Self, HostError> {
        let Some(dir) = dir else { return Ok(Self { dir: None }) };
        let dir = dir.join(FOLDER);
        match private_dir::create(&dir) {
            Ok(()) => Ok(Self { dir: Some(dir) }),
            Err(error) => Err(HostError::CacheDir {
                dir,
                problem: error.to_string(),
            }),
        }
    }

    /// The compiled component, unless there is no entry for it that can be trusted.
    pub fn load(&self, engine: &Engine, artifact: &Artifact) -> Option<Component> {
        let key = key(engine, artifact);
        let file = self.file(&key)?;
        let entry = read_private(&file)
            .inspect_err(|error| log_unusable(&file, error))
            .ok()??;
        let Some(code) = verified(&entry, &key) else {
            log_unusable(&file, &"it is damaged, or made of another component");
            return None;
        };
        // SAFETY: `deserialize` demands bytes that `Component::serialize` made. They are: the file was opened without
        // following a link, and after opening it belonged to this process's user and no other user could write to it,
        // so that only we wrote it; we write nothing below this name but `serialize`'s result; the digest shows that
        // it is complete, unchanged since, and made of this component; and it is read into memory of our own before, so that it cannot be changed
        // between the check and the use. That it fits this engine is in the file's name, and wasmtime checks that
        // again.
        match unsafe { Component::deserialize(engine, code) } {
            Ok(component) => Some(component),
            Err(error) => {
                log_unusable(&file, &format!("{error:#}"));
                None
            }
        }
    }

    /// Keeps the compiled component for the next start. Failing to is logged and does no harm.
    pub fn store(&self, engine: &Engine, artifact: &Artifact, component: &Component) {
        if self.dir.is_some() {
            self.write(engine, artifact, component.serialize().map_err(io::Error::other));
        }
    }

    /// Makes a component of what a process of our own compiled, and keeps that for the next start.
    pub fn adopt(&self, engine: &Engine, artifact: &Artifact, code: &CompiledCode) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` demands bytes that wasmtime's `precompile_component` made. They are: `CompiledCode` is only what a process
        // wrote that we started from the program that we run, by the kernel's own link to it, before that process ended with the exit code of
        // success; it wrote into a private pipe, and what came out has been in our own memory since. That it fits this engine is
        // checked by wasmtime.
        let component = unsafe { Component::deserialize(engine, code.bytes()) }?;
        self.write(engine, artifact, Ok(code.bytes()));
        Ok(component)
    }

    fn write(&self, engine: &Engine, artifact: &Artifact, code: io::Result<impl AsRef<[u8]>>) {
        let key = key(engine, artifact);
        let Some(file) = self.file(&key) else {
            return;
        };
        let written = code.and_then(|code| {
            let code = code.as_ref();
            private_dir::write(&file, &[HEADER, &key, sum_of(&key, code).as_ref(), code])
        });
        if let Err(error) = written {
            tracing::warn!(file = %file.display(), %error, "failed to store compiled code");
        } else if let Some(dir) = &self.dir {
            private_dir::remove_oldest(dir, ENTRIES);
        }
    }

    fn file(&self, key: &Key) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{}.code", HEXLOWER.encode(key))))
    }
}

fn key(engine: &Engine, artifact: &Artifact) -> Key {
    let mut hasher = Sha256Hasher(Context::new(&SHA256));
    artifact.digest.hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hasher
        .0
        .finish()
        .as_ref()
        .try_into()
        .expect("a SHA-256 has this many bytes")
}

/// SHA-256 over what is hashed: a file name has to differ for every two inputs, which 64 bits cannot promise.
struct Sha256Hasher(Context);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finish();
        u64::from_le_bytes(
            digest.as_ref()[..8]
                .try_into()
                .expect("a SHA-256 has more than 8 bytes"),
        )
    }
}

/// Reads a file that only we can have written; none when there is none.
fn read_private(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut opened = match rustix::fs::open(file, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => File::from(opened?),
    };
    let metadata = opened.metadata()?;
    if !metadata.is_file() || !private_dir::is_private(&metadata) {
        return Err(io::Error::other("another user could have written it"));
    }
    let mut bytes = Vec::new();
    opened.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The code of an entry that is complete, unchanged and for this key.
pub(crate) fn verified<'e>(entry: &'e [u8], key: &Key) -> Option<&'e [u8]> {
    let rest = entry.strip_prefix(HEADER)?.strip_prefix(key)?;
    let (sum, code) = rest.split_at_checked(SHA256_OUTPUT_LEN)?;
    (sum_of(key, code).as_ref() == sum).then_some(code)
}

fn sum_of(key: &Key, code: &[u8]) -> Digest {
    let mut sum = Context::new(&SHA256);
    for part in [HEADER, key, code] {
        sum.update(part);
    }
    sum.finish()
}

fn log_unusable(file: &Path, problem: &dyn std::fmt::Display) {
    tracing::warn!(file = %file.display(), %problem, "cached code rejected; recompiling");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use proptest::prelude::*;
    use ring::digest::digest;

    use super::*;

    fn artifact() -> Artifact {
        component("(component (core module (func)))")
    }

    fn component(text: &str) -> Artifact {
        let bytes = wat::parse_str(text).unwrap();
        Artifact {
            digest: HEXLOWER.encode(digest(&SHA256, &bytes).as_ref()),
            file_bytes: bytes.len() as u64,
            bytes,
        }
    }

    /// A cache that holds the artifact, and the entry's file.
    fn filled(dir: &Path) -> (Engine, Artifact, CodeCache, PathBuf) {
        let (engine, artifact) = (Engine::default(), artifact());
        let cache = CodeCache::open(Some(dir)).unwrap();
        assert!(cache.load(&engine, &artifact).is_none());
        let component = Component::from_binary(&engine, &artifact.bytes).unwrap();
        cache.store(&engine, &artifact, &component);
        let file = cache.file(&key(&engine, &artifact)).unwrap();
        (engine, artifact, cache, file)
    }

    #[test]
    fn what_was_stored_is_found_again_and_only_by_its_engine() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, artifact, cache, _) = filled(dir.path());
        assert!(cache.load(&engine, &artifact).is_some());
        let other = Engine::new(wasmtime::Config::new().epoch_interruption(true)).unwrap();
        assert!(cache.load(&other, &artifact).is_none());
        assert_eq!(
            fs::read_dir(dir.path().join(FOLDER)).unwrap().count(),
            1,
            "nothing is left beside the entry"
        );
    }

    #[test]
    fn a_damaged_entry_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, artifact, cache, file) = filled(dir.path());
        let good = fs::read(&file).unwrap();
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for bad in [&b""[..], b"garbage", &good[..good.len() / 2], &flipped] {
            fs::write(&file, bad).unwrap();
            assert!(cache.load(&engine, &artifact).is_none());
        }
        fs::write(&file, good).unwrap();
        assert!(cache.load(&engine, &artifact).is_some());
    }

    #[test]
    fn an_entry_under_another_components_name_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, one, cache, of_one) = filled(dir.path());
        let other = component("(component (core module (func) (func)))");
        cache.store(&engine, &other, &Component::from_binary(&engine, &other.bytes).unwrap());
        let of_other = cache.file(&key(&engine, &other)).unwrap();
        let aside = dir.path().join("aside");
        fs::rename(&of_one, &aside).unwrap();
        fs::rename(&of_other, &of_one).unwrap();
        fs::rename(&aside, &of_other).unwrap();
        assert!(cache.load(&engine, &one).is_none() && cache.load(&engine, &other).is_none());
    }

    proptest! {
        #[test]
        fn an_entry_with_any_bit_flipped_is_refused(
            code in prop::collection::vec(any::<u8>(), 0..200), key: Key, at: prop::sample::Index, bit in 0..8_u8,
        ) {
            let sum = sum_of(&key, &code);
            let mut entry = [HEADER, key.as_slice(), sum.as_ref(), code.as_slice()].concat();
            prop_assert_eq!(verified(&entry, &key), Some(code.as_slice()));
            let at = at.index(entry.len());
            entry[at] ^= 1 << bit;
            prop_assert_eq!(verified(&entry, &key), None);
            prop_assert_eq!(verified(&entry[..at], &key), None);
        }
    }

    #[test]
    fn an_entry_that_others_could_have_written_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let (engine, artifact, cache, file) = filled(dir.path());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(cache.load(&engine, &artifact).is_none());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert!(cache.load(&engine, &artifact).is_none());
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        CodeCache::open(Some(dir.path())).unwrap();
        fs::set_permissions(dir.path().join(FOLDER), fs::Permissions::from_mode(0o777)).unwrap();
        let error = CodeCache::open(Some(dir.path())).err().unwrap().to_string();
        assert!(error.contains("mode 777"), "{error}");
    }
}
