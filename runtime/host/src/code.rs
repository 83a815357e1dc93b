//! The code of a component: read, compiled or found compiled, and kept by the provider so that its successor can take it over.

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::LoadError;
use crate::artifact::Artifact;
use crate::cache::CodeCache;

/// A component ready to be linked. Clones share the machine code.
#[derive(Clone)]
pub(crate) struct Code {
    pub component: Component,
    /// Size of the component, unpacked, in bytes.
    pub bytes: usize,
    /// SHA-256 of the component, unpacked, in lower-case hexadecimal.
    pub digest: String,
    /// Whether nothing had to be compiled.
    pub from_cache: bool,
}

impl Code {
    /// Reads the file. A component that `before` is made of, or that the cache knows, is not compiled again. Blocks.
    pub fn load(
        file: &Path,
        engine: &Engine,
        cache: &CodeCache,
        limit: u64,
        before: Option<Self>,
    ) -> Result<Self, LoadError> {
        let artifact = Artifact::read(file, limit)?;
        if let Some(before) = before.filter(|before| before.digest == artifact.digest) {
            return Ok(Self {
                from_cache: true,
                ..before
            });
        }
        let (component, from_cache) = match cache.load(engine, &artifact) {
            Some(component) => (component, true),
            None => {
                let component =
                    Component::from_binary(engine, &artifact.bytes).map_err(|error| LoadError::Invalid {
                        file: file.into(),
                        problem: format!("{error:#}"),
                    })?;
                cache.store(engine, &artifact, &component);
                (component, false)
            }
        };
        Ok(Self {
            component,
            bytes: artifact.bytes.len(),
            digest: artifact.digest,
            from_cache,
        })
    }
}
