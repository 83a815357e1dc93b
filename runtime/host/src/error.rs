//! Errors of starting the host and loading a provider.
//!
//! Each is one sentence for the operator: what was found, what is needed, what to do.
//!
//! Errors of calls are the model's: `Failure` when the provider answers so, `ProviderFault` when it misbehaves.

use std::path::PathBuf;

use cloudwit_model::ProviderFault;
use thiserror::Error;

use crate::bounded_work::BoundedWorkError;
use crate::load::toolchain::Toolchain;
use crate::{CompileFault, Limits};

/// How a provider is built.
const BUILD: &str = "`cargo build --target wasm32-wasip2`";

/// The limit that lets a component of this size in, where there is one.
fn or_raise(size: u64) -> String {
    let enough = size
        .checked_next_power_of_two()
        .filter(|enough| *enough <= Limits::MOST_COMPONENT_BYTES);
    enough.map_or_else(String::new, |enough| {
        format!(", or raise the provider's limit with `limits: {{componentBytes: {enough}}}`")
    })
}

/// The host cannot start. Trying again does not help without a change by an operator.
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
        "{}: has {}{size} bytes, at most {limit} are taken; build it smaller{}",
        file.display(), if *unpacked { "more than " } else { "" }, or_raise(*size)
    )]
    TooLarge {
        /// The file.
        file: PathBuf,
        /// Its size in bytes; of one that was not unpacked further, what was unpacked.
        size: u64,
        /// [`Limits::component_bytes`](crate::Limits::component_bytes).
        limit: u64,
        /// Whether it is compressed, and too large unpacked.
        unpacked: bool,
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
        "{}: is not WebAssembly but starts with {start:?}; a provider is a WebAssembly component, such as \
         {BUILD} makes in Rust",
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
        "{}: is a core WebAssembly module, and a provider has to be a component; {}",
        file.display(), toolchain.build()
    )]
    CoreModule {
        /// The file.
        file: PathBuf,
        /// What made it.
        toolchain: Toolchain,
    },
    /// A component that does not validate.
    #[error(
        "{}: is not a valid WebAssembly component for this Cloudwit {}: {problem}; build it again",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    Invalid {
        /// The file.
        file: PathBuf,
        /// What the validator says.
        problem: String,
    },
    /// A component with asynchronous functions.
    #[error(
        "{}: is an asynchronous component, and in this Cloudwit {} asynchronous components are not supported; \
         build the synchronous variant",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    Asynchronous {
        /// The file.
        file: PathBuf,
    },
    /// Compiling it went over a limit, or crashed.
    #[error("{}: cannot be compiled: {fault}{}", file.display(), fault.advice(*toolchain))]
    Compile {
        /// The file.
        file: PathBuf,
        /// What happened.
        fault: CompileFault,
        /// What made it.
        toolchain: Toolchain,
    },
    /// A component for something else.
    #[error(
        "{}: exports {exports} and nothing of cloudwit:provider, so it is a component but no provider; {}",
        file.display(), toolchain.world()
    )]
    OtherWorld {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
        /// What made it.
        toolchain: Toolchain,
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
         implement it and {}",
        file.display(), toolchain.world()
    )]
    NoInfo {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
        /// What made it.
        toolchain: Toolchain,
    },
    /// It exports no interface that is used.
    #[error(
        "{}: exports of cloudwit:provider only {exports}, and this Cloudwit {} uses `instances`, \
         `load-balancers` and `routes`; export at least one of them",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    NothingToAsk {
        /// The file.
        file: PathBuf,
        /// What it exports.
        exports: String,
    },
    /// It imports something from the host that does not exist.
    #[error(
        "{}: imports {imports}, and this Cloudwit {} offers {offers}; build the provider without it",
        file.display(), env!("CARGO_PKG_VERSION")
    )]
    MissingImport {
        /// The file.
        file: PathBuf,
        /// What it imports.
        imports: String,
        /// What there is.
        offers: String,
    },
    /// Names fit, types do not.
    #[error(
        "{}: its {interface} does not match that of this Cloudwit {}: {problem}; build it against \
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
    /// It misbehaved while it was instantiated or described.
    #[error("{}: does not start: {fault}", file.display())]
    Start {
        /// The file.
        file: PathBuf,
        /// What it did.
        fault: Box<ProviderFault>,
    },
}
