//! Loads providers: file, compiled code, contract, link, description.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use std::time::SystemTime;

use cloudwit_model::ProviderFault;
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use crate::bounded_work::{FILE_LIMIT, bounded};
use crate::call::clock::Behind;
use crate::call::guest_memory::GuestMemory;
use crate::call::instance::{CallState, Env, Outside};
use crate::call::{Caller, LoadFacts, Shared};
use crate::contract::adapter::{Adapter, Description, Mismatch};
use crate::contract::v0_1::{self, V0_1};
use crate::egress::Egress;
use crate::egress::metrics::EgressMetrics;
use crate::grants::{GrantError, Grants};
use crate::limits::Limits;
use crate::load::artifact::Artifact;
use crate::load::cache::CodeCache;
use crate::load::code::{Code, CodeMaker};
use crate::load::compiler::Compiler;
use crate::load::engine;
use crate::load::toolchain::Toolchain;
use crate::load::version::{self, Contract};
use crate::metrics::{Metrics, Operation};
use crate::net::client::HttpClients;
use crate::provider::Provider;
use crate::secrets::keys::Keyring;
use crate::secrets::{Secrets, config_secrets};
use crate::state::StateStore;
use crate::swap::digest::DigestKey;
use crate::{HostError, LoadError};

/// What holds for all providers of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// Where compiled code is kept over restarts, in a folder below this one that only the process's user may write to;
    /// none to compile at each start.
    pub cache_dir: Option<PathBuf>,
    /// Who compiles what the cache does not have.
    pub compiler: Compiler,
    /// Instances, and so calls, that may exist at the same time, over all providers.
    pub pool_size: u32,
    /// Largest memory any provider's limits may give to one instance, in bytes.
    pub max_memory_bytes: usize,
    /// Memory of all calls of all providers together, in bytes; none for two of the largest calls that each provider's limits allow.
    pub guest_memory_bytes: Option<u64>,
    /// Whether the process changes nothing; for providers to know. Providers that honour it make no calls that change the cloud.
    pub dry_run: bool,
    /// The time for guests at the start of the host, which then continues; none for the system's. For tools that answer requests from a recording.
    pub guest_time: Option<SystemTime>,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            cache_dir: None,
            compiler: Compiler::Here,
            pool_size: 64,
            max_memory_bytes: 256 << 20,
            guest_memory_bytes: None,
            dry_run: false,
            guest_time: None,
        }
    }
}

impl HostOptions {
    fn check(&self) -> Result<(), HostError> {
        const FOUR_GIB: usize = 1 << 32;
        if !(1..=1000).contains(&self.pool_size) {
            let text = format!(
                "the pool size {} is out of range; give 1 to 1000 instances",
                self.pool_size
            );
            return Err(HostError::Options(text));
        }
        if !(1 << 20..=FOUR_GIB).contains(&self.max_memory_bytes) {
            let text = format!(
                "{} bytes for one instance are out of range; give 1 MiB to 4 GiB",
                self.max_memory_bytes
            );
            return Err(HostError::Options(text));
        }
        Ok(())
    }
}

/// What the operator set for one provider.
#[derive(Clone)]
pub struct ProviderSettings {
    /// The operator's name for it; a metric label.
    pub name: String,
    /// The text of `--cloud-config`, for the provider alone to read.
    pub config_text: String,
    /// Single values, in their order.
    pub values: Vec<(String, String)>,
    /// `--cluster-name`.
    pub cluster_name: String,
    /// `--cluster-cidr`.
    pub cluster_cidrs: Vec<String>,
    /// What it may reach.
    pub grants: Grants,
    /// What it may use.
    pub limits: Limits,
}

impl std::fmt::Debug for ProviderSettings {
    /// Leaves the configuration's text and values out: people put secrets there although they should not.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderSettings")
            .field("name", &self.name)
            .field("cluster_name", &self.cluster_name)
            .field("cluster_cidrs", &self.cluster_cidrs)
            .field("grants", &self.grants)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Loads providers. One for each process.
pub struct Host {
    shared: Arc<Shared>,
    linker: Linker<CallState>,
    cache: Arc<CodeCache>,
    parts: EnvParts,
    options: HostOptions,
}

/// What settings are put into force with.
#[derive(Clone)]
struct EnvParts {
    clients: HttpClients,
    guest_memory: Arc<GuestMemory>,
    egress_metrics: EgressMetrics,
    digest_key: Arc<DigestKey>,
    max_memory_bytes: usize,
    dry_run: bool,
    clock: Behind,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Host {
    /// Starts the engine and registers the host's metrics.
    pub fn new(options: HostOptions, registry: &mut Registry) -> Result<Self, HostError> {
        options.check()?;
        let cache = Arc::new(CodeCache::open(options.cache_dir.as_deref())?);
        let engine = engine::start(&options)?;
        let linker = linker(&engine).map_err(|error| HostError::Engine(format!("{error:#}")))?;
        let no_random = || HostError::Engine("the system gives no random numbers".into());
        let digest_key = DigestKey::generate().ok_or_else(no_random)?;
        let egress_metrics = EgressMetrics::default();
        egress_metrics.register(registry);
        let pool_size = usize::try_from(options.pool_size).unwrap_or(Semaphore::MAX_PERMITS);
        let (pool, metrics) = (Arc::new(Semaphore::new(pool_size)), Metrics::register(registry));
        let shared = Arc::new(Shared { engine, pool, metrics });
        Ok(Self {
            shared,
            linker,
            cache,
            parts: EnvParts {
                clients: HttpClients::default(),
                guest_memory: GuestMemory::new(options.guest_memory_bytes),
                egress_metrics,
                digest_key: Arc::new(digest_key),
                max_memory_bytes: options.max_memory_bytes,
                dry_run: options.dry_run,
                clock: Behind::showing(options.guest_time),
            },
            options,
        })
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Uses these HTTP clients for the providers that are loaded from now on: tests bring names of their own with them.
    pub fn with_http_clients(self, clients: HttpClients) -> Self {
        Self {
            parts: EnvParts { clients, ..self.parts },
            ..self
        }
    }

    /// Loads a component as a provider, calls `describe` and logs the result. Touches neither cluster nor cloud; the provider's own
    /// checks are [`Provider::check`] and [`Provider::probe`]. Compiling happens in a process of its own, or on a thread for blocking work.
    pub async fn load(&self, file: &Path, settings: ProviderSettings, outside: Outside) -> Result<Provider, LoadError> {
        let provider = self.load_after(file, settings, outside, None).await?;
        let (description, facts) = (provider.description(), provider.load_facts());
        tracing::info!(
            file = %file.display(),
            provider = description.name,
            version = description.version,
            digest = provider.component_digest(),
            from_cache = facts.from_cache,
            load_seconds = facts.load_time.as_secs_f64(),
            "provider loaded"
        );
        Ok(provider)
    }

    /// Loads a component that may take the place of `before`, beside it: with the same code where the component is the same, the same locks,
    /// and the same budgets and pauses of API hosts, but with a state of its own until it is switched to. Logs nothing: what came of it is the swap's news.
    pub(crate) async fn load_after(
        &self,
        file: &Path,
        settings: ProviderSettings,
        outside: Outside,
        before: Option<&Provider>,
    ) -> Result<Provider, LoadError> {
        let started = Instant::now();
        let name = settings.name.clone();
        let most = settings.limits.component_bytes;
        // Secrets and authorities are read from files, and a mount can hang.
        let (parts, path, old) = (self.parts.clone(), file.to_owned(), before.cloned());
        let put = move || parts.env(&path, settings, outside, old.as_ref().map(Provider::env));
        let key = format!("settings of the provider {name}");
        let env = bounded(&key, FILE_LIMIT, put)
            .await
            .map_err(|error| LoadError::Hanging {
                file: file.into(),
                error,
            })??;
        let env = Arc::new(env);
        let code = self
            .code(file, most, before.map(|before| before.code().clone()))
            .await?;
        self.shared.metrics.loaded(code.from_cache, started.elapsed());
        let code_time = started.elapsed();

        let adapter = self.link(file, &code.component)?;
        let caller = Caller::new(Arc::clone(&self.shared), env, name);
        let description = first_questions(file, &caller, adapter.as_ref()).await?;
        let facts = LoadFacts {
            component_bytes: code.bytes,
            from_cache: code.from_cache,
            code_time,
            load_time: started.elapsed(),
        };
        Ok(Provider::new(caller, adapter, description, code, facts))
    }

    /// Reads the file and gets its code, from the cache or by compiling.
    async fn code(&self, file: &Path, most: u64, before: Option<Code>) -> Result<Code, LoadError> {
        let maker = CodeMaker {
            file: file.into(),
            engine: self.shared.engine.clone(),
            cache: Arc::clone(&self.cache),
            limit: most,
        };
        maker.code(&self.options.compiler, before).await
    }

    /// Finds out which contract the component speaks, by its type alone, and links it.
    fn link(&self, file: &Path, component: &Component) -> Result<Box<dyn Adapter>, LoadError> {
        let kind = component.component_type();
        let exports: Vec<&str> = kind.exports(&self.shared.engine).map(|(name, _)| name).collect();
        let imports: Vec<&str> = kind.imports(&self.shared.engine).map(|(name, _)| name).collect();
        let offer = version::offer(file, &exports).map_err(|error| made_by(file, error))?;
        version::check_imports(file, &imports)?;
        match offer.contract {
            Contract::V0_1 => Ok(Box::new(V0_1::link(file, &self.linker, component, offer.abilities)?)),
        }
    }
}

/// The error with what made the file in it, for advice that its author can use. Reads the file again: the code may have come from the cache.
fn made_by(file: &Path, mut error: LoadError) -> LoadError {
    if let LoadError::OtherWorld { toolchain, .. } | LoadError::NoInfo { toolchain, .. } = &mut error
        && let Ok(artifact) = Artifact::read(file, Limits::MOST_COMPONENT_BYTES)
    {
        *toolchain = Toolchain::of(&artifact.bytes);
    }
    error
}

impl EnvParts {
    /// Puts settings into force, or finds all that is wrong with them. Blocks: reads the files of secrets, authorities and client certificates.
    fn env(
        &self,
        file: &Path,
        settings: ProviderSettings,
        outside: Outside,
        before: Option<&Env>,
    ) -> Result<Env, LoadError> {
        let ProviderSettings {
            name, grants, limits, ..
        } = &settings;
        let mut problems = limits.problems(self.max_memory_bytes);
        let mut keep = |error: GrantError| problems.extend(error.0.iter().map(|problem| format!("grants.{problem}")));
        let keyring = Keyring::load(&grants.secrets).map_err(&mut keep).unwrap_or_default();
        let in_text = config_secrets::in_text(&settings.config_text);
        let written = [in_text, config_secrets::in_values(&settings.values)].concat();
        let secrets = Secrets::new(keyring, &written);
        let egress = Egress::with_clients(
            name,
            grants,
            limits,
            secrets.clone(),
            self.egress_metrics.clone(),
            &self.clients,
            before.map(|before| before.egress.as_ref()),
        )
        .map_err(&mut keep)
        .ok();
        let memory = self.guest_memory.share(name, limits.memory_bytes);
        let memory = memory.map_err(|problem| problems.push(problem)).ok();
        match egress.zip(memory) {
            Some((egress, memory)) if problems.is_empty() => {
                let room = grants.state.max_bytes;
                let state = before.map_or_else(|| StateStore::new(room), |before| before.state.successor(room));
                Ok(Env {
                    dry_run: self.dry_run,
                    clock: self.clock,
                    settings_digest: self.digest_key.digest(&settings, &secrets.keyring, egress.identities()),
                    config_text: settings.config_text,
                    values: settings.values,
                    cluster_name: settings.cluster_name,
                    cluster_cidrs: settings.cluster_cidrs,
                    grants: settings.grants,
                    limits: settings.limits,
                    memory,
                    secrets,
                    state: Arc::new(state),
                    egress,
                    outside,
                })
            }
            _ => Err(LoadError::Settings {
                file: file.into(),
                problems,
            }),
        }
    }
}

/// Everything a guest may import, of all versions: their names differ.
fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    v0_1::add_to_linker(&mut linker)?;
    Ok(linker)
}

/// Compares the types of all exported functions and lets the provider describe itself.
async fn first_questions(file: &Path, caller: &Caller, adapter: &dyn Adapter) -> Result<Description, LoadError> {
    let failed = |fault: ProviderFault| LoadError::Start {
        file: file.into(),
        fault: Box::new(fault),
    };
    if let Some(Mismatch { interface, problem }) = caller
        .ask(Operation::Instantiate, adapter, |adapter, store| {
            adapter.mismatch(store)
        })
        .await
        .map_err(failed)?
    {
        return Err(LoadError::OtherShape {
            file: file.into(),
            interface: interface.into(),
            problem,
        });
    }
    caller
        .ask(Operation::Describe, adapter, |adapter, store| adapter.describe(store))
        .await
        .map_err(failed)
}
