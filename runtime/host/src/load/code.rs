//! Code of a component: from the predecessor, from the cache, or compiled.

use std::path::PathBuf;
use std::sync::Arc;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::load::artifact::Artifact;
use crate::load::cache::CodeCache;
use crate::load::compiler::{Compiler, Ended, compile_apart};
use crate::load::toolchain::{Toolchain, is_asynchronous};
use crate::{CompileFault, LoadError};

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

/// What makes the code of one file.
#[derive(Clone)]
pub(crate) struct CodeMaker {
    pub file: PathBuf,
    pub engine: Engine,
    pub cache: Arc<CodeCache>,
    /// Largest file, in bytes.
    pub limit: u64,
}

impl CodeMaker {
    /// Reads the file. A component that `before` is made of, or that is cached, is not compiled again.
    pub async fn code(self, compiler: &Compiler, before: Option<Code>) -> Result<Code, LoadError> {
        let artifact = match self.blocking(|maker| maker.find(before)).await? {
            CodeSource::Code(code) => return Ok(code),
            CodeSource::Artifact(artifact) => Arc::new(artifact),
        };
        if let Compiler::Apart(limits) = compiler {
            let limits = limits.for_component(artifact.bytes.len());
            let code = match compile_apart(&limits, &artifact.bytes).await {
                Ended::Compiled(code) => code,
                Ended::Invalid(problem) => {
                    return self.blocking(move |maker| Err(maker.invalid(problem, &artifact))).await;
                }
                Ended::Failed(fault) => return self.blocking(move |maker| Err(maker.failed(fault, &artifact))).await,
            };
            let adopt = move |maker: &Self| {
                let component = maker.cache.adopt(&maker.engine, &artifact, &code);
                let component = component.map_err(|error| maker.invalid(format!("{error:#}"), &artifact))?;
                Ok(compiled(component, &artifact))
            };
            return self.blocking(adopt).await;
        }
        self.blocking(move |maker| {
            let component = Component::from_binary(&maker.engine, &artifact.bytes)
                .map_err(|error| maker.invalid(format!("{error:#}"), &artifact))?;
            maker.cache.store(&maker.engine, &artifact, &component);
            Ok(compiled(component, &artifact))
        })
        .await
    }

    fn find(&self, before: Option<Code>) -> Result<CodeSource, LoadError> {
        let artifact = Artifact::read(&self.file, self.limit)?;
        if let Some(before) = before.filter(|before| before.digest == artifact.digest) {
            return Ok(CodeSource::Code(Code {
                from_cache: true,
                ..before
            }));
        }
        Ok(match self.cache.load(&self.engine, &artifact) {
            Some(component) => CodeSource::Code(Code {
                from_cache: true,
                ..compiled(component, &artifact)
            }),
            None => CodeSource::Artifact(artifact),
        })
    }

    /// Reads through the component for what is wrong with it.
    fn invalid(&self, problem: String, artifact: &Artifact) -> LoadError {
        let file = self.file.clone();
        if is_asynchronous(&artifact.bytes) {
            return LoadError::Asynchronous { file };
        }
        LoadError::Invalid { file, problem }
    }

    fn failed(&self, fault: CompileFault, artifact: &Artifact) -> LoadError {
        LoadError::Compile {
            file: self.file.clone(),
            fault,
            toolchain: Toolchain::of(&artifact.bytes),
        }
    }

    /// Does it on a thread for blocking work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, LoadError> + Send + 'static,
    ) -> Result<T, LoadError> {
        let maker = self.clone();
        let ended = tokio::task::spawn_blocking(move || work(&maker)).await;
        ended.unwrap_or_else(|crash| {
            Err(LoadError::Compile {
                file: self.file.clone(),
                fault: CompileFault::Crash(crash.to_string()),
                toolchain: Toolchain::default(),
            })
        })
    }
}

enum CodeSource {
    Code(Code),
    /// To be compiled.
    Artifact(Artifact),
}

fn compiled(component: Component, artifact: &Artifact) -> Code {
    Code {
        component,
        bytes: artifact.bytes.len(),
        digest: artifact.digest.clone(),
        from_cache: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostOptions;
    use crate::load::compiler::CompilerLimits;
    use crate::load::engine;

    /// The program of these tests answers no compile request, as one that is killed at its start.
    #[tokio::test]
    async fn compiler_that_does_not_start_fails_the_load() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.wasm");
        std::fs::write(&file, wat::parse_str("(component)").unwrap()).unwrap();
        let maker = CodeMaker {
            file,
            engine: engine::start(&HostOptions::default()).unwrap(),
            cache: Arc::new(CodeCache::open(None).unwrap()),
            limit: 1 << 20,
        };
        let apart = Compiler::Apart(CompilerLimits::default());
        let error = maker
            .clone()
            .code(&apart, None)
            .await
            .err()
            .expect("nothing is compiled");
        assert!(
            matches!(
                &error,
                LoadError::Compile {
                    fault: CompileFault::NotStarted(_),
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            error.to_string().contains("failed to start the compiler process"),
            "{error}"
        );
        assert!(maker.code(&Compiler::Here, None).await.is_ok());
    }
}
