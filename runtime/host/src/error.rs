//! Errors of starting the host and loading a provider.
//!
//! Each is one sentence for the operator: what was found, what is needed, what to do.
//!
//! Errors of calls are the model's: `Failure` when the provider answers so, `ProviderFault` when it misbehaves.

use std::path::PathBuf;

use cloudwit_model::ProviderFault;
use thiserror::Error;

use crate::CompileFault;
use crate::bounded_work::BoundedWorkError;

/// How a provider is built; part of several sentences.
const BUILD: &str = "`cargo build --target wasm32-wasip2`";

/// The host cannot start. Trying again does not help before somebody changed something.
#[derive(Debug, Error)]
pub enum HostError {
    /// wasmtime refused its configuration, or the system its memory or threads.
    #[error("the WebAssembly engine does not start: {0}")]
    Engine(String),
    /// An option is out of range.
    #[error("{0}")]
    Options(String),
    /// The folder for compiled code cannot be used safely.
    #[error(
        "the folder {} for compiled code cannot be used: {problem}; name another folder, or none to \
         compile at each start",
        dir.display()
    )]
    CacheDir {
        /// The folder.
        dir: PathBuf,
        /// Why not.
        problem: String,
    },
}

/// A component is not taken as a provider. Nothing has changed; a provider that was loaded before stays.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{}: cannot be read: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: String,
    },
    /// The files that its settings name cannot be read now: their file system hangs. May pass.
    #[error("{}: the files of its secrets and authorities cannot be read: {error}", file.display())]
    Hanging {
        /// The component's file.
        file: PathBuf,
        /// Why.
        error: BoundedWorkError,
    },
    /// The file is over the size limit.
    #[error(
        "{}: has {size} bytes, at most {limit} are taken; build it with `opt-level = \"s\"`, `lto = true` \
         and `strip = true`",
        file.display()
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// [`HostOptions::max_component_bytes`](crate::HostOptions::max_component_bytes).
        limit: u64,
    },
    /// It is compressed, and damaged.
    #[error(
        "{}: cannot be unpacked: {problem}; compress the component again with `zstd -19`",
        file.display()
    )]
    Packed {
        /// The file.
        file: PathBuf,
        /// Why not.
        problem: String,
    },
    /// The file is something else.
    #[error(
        "{}: is no WebAssembly but starts with {start:?}; a provider is a WebAssembly component, made with \
         {BUILD}",
        file.display()
    )]
    NotWasm {
        /// The file.
        file: PathBuf,
        /// Its first characters.
        start: String,
    },
    /// A module instead of a component.
    #[error(
        "{}: is a core WebAssembly module, and a provider has to be a component; build it with {BUILD} \
         instead of wasm32-unknown-unknown or wasm32-wasip1",
        file.display()
    )]
    CoreModule {
        /// The file.
        file: PathBuf,
    },
    /// A component that does not validate.
    #[error(
        "{}: is no valid WebAssembly component for this Cloudwit {}: {problem}; build it again with {BUILD}",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What the validator says.
        problem: String,
    },
    /// Compiling it went over a limit, or crashed.
    #[error("{}: cannot be compiled: {fault}{}", file.display(), fault.advice())]
    Compile {
        /// The file.
        file: PathBuf,
        /// What happened.
        fault: CompileFault,
    },
    /// A component for something else.
    #[error(
        "{}: exports {exports} and nothing of cloudwit:provider, so it is a component but no provider; \
         register one with `register_provider!` of cloudwit-guest-sdk",
        file.display()
    )]
    OtherWorld {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
    },
    /// A provider for another version of the contract.
    #[error(
        "{}: speaks cloudwit:provider {theirs}, and this Cloudwit {} speaks {ours}; use a Cloudwit that \
         speaks {theirs} or a provider built for {ours}",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// The file.
        file: PathBuf,
        /// Its version.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// `info` is missing.
    #[error(
        "{}: exports {exports} of cloudwit:provider but not `info`, which every provider has to export; \
         implement it and register the provider with `register_provider!`",
        file.display()
    )]
    NoInfo {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
    },
    /// There is nothing it could be asked.
    #[error(
        "{}: exports of cloudwit:provider only {exports}, and this Cloudwit {} can ask for `instances`, \
         `load-balancers` and `routes`; export at least one of them",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    NothingToAsk {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
    },
    /// It wants something of the host that does not exist.
    #[error(
        "{}: imports {imports}, and this Cloudwit {} offers {offers}; build the provider without it",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    MissingImport {
        /// The file.
        file: PathBuf,
        /// What it wants.
        imports: String,
        /// What there is.
        offers: String,
    },
    /// Names fit, types do not.
    #[error(
        "{}: its {interface} has another shape than this Cloudwit {} knows: {problem}; build it against \
         the released wit/v0.1",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    OtherShape {
        /// The file.
        file: PathBuf,
        /// The interface.
        interface: String,
        /// Where it differs.
        problem: String,
    },
    /// The operator's settings for it make no sense; all mistakes.
    #[error("{}: its settings have mistakes: {}", file.display(), problems.join("; "))]
    Settings {
        /// The file.
        file: PathBuf,
        /// All mistakes.
        problems: Vec<String>,
    },
    /// It misbehaved while it was instantiated or asked who it is.
    #[error("{}: does not start: {fault}", file.display())]
    Start {
        /// The file.
        file: PathBuf,
        /// What it did.
        fault: Box<ProviderFault>,
    },
}
