//! The wasm side: loads provider components and calls them, each call in a fresh instance.
//!
//! ```text
//!   Host::load   artifact -> cache -> version -> v0_1 (link, types) -> provider
//!   a call       provider -> call (slots, deadlines) -> instance (store, limits) -> adapter = v0_1 -> the guest
//!   its imports  v0_1_imports -> keys, state, guest_log, Outside;  wasi:http -> egress -> http_client -> the cloud
//!   a change     swap -> Host::load beside the running one -> grants, check, probe -> switch, or the last good one stays
//!   its answer   v0_1_answers + answer (limits, secrets) -> the model's words;  or fault -> ProviderFault
//! ```
//!
//! This crate knows wasmtime and the contract in `wit/`, and nothing of Kubernetes: it implements the model's `Cloud`.
//!
//! ```no_run
//! # async fn example(settings: cloudwit_host::ProviderSettings, outside: cloudwit_host::Outside) -> Result<(), Box<dyn std::error::Error>> {
//! use cloudwit_host::{Host, HostOptions};
//! let host = Host::new(HostOptions::default(), &mut prometheus_client::registry::Registry::default())?;
//! let provider = host.load("sim.wasm".as_ref(), settings, outside).await?;
//! for problem in provider.check().await? {
//!     println!("{}: {}", problem.at, problem.message);
//! }
//! provider.probe().await?;
//! # Ok(())
//! # }
//! ```

// Loading and calling.
mod adapter;
mod answer;
mod answer_limits;
mod artifact;
pub mod bounded_work;
mod budget_status;
mod cache;
mod call;
mod code;
mod compiler;
mod compiler_process;
mod component_file;
mod config_secrets;
mod cpu;
mod engine;
mod error;
mod fault;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guest_log;
mod guest_memory;
mod host;
mod instance;
mod limits;
mod metrics;
mod provider;
mod settings_digest;
mod swap;
mod swap_status;
mod v0_1;
mod v0_1_answers;
mod v0_1_convert;
mod v0_1_imports;
mod version;
mod walk;
mod wishes;

// The egress, and what an operator grants.
mod connect_deadline;
pub mod destination;
pub mod dns;
pub mod egress;
pub mod egress_metrics;
mod egress_plan;
mod grant_yaml;
pub mod grants;
mod grants_check;
pub mod http_client;
mod http_error;
mod in_flight;
pub mod keys;
mod placeholders;
mod rate_limit;
mod redact;
pub mod refusal;
mod request_body;
mod request_budget;
mod request_span;
pub mod resolver;
mod response_body;
mod retry_after;
mod secret;
mod secret_encoding;
mod secret_forms;
mod special_address;
pub mod state;
#[cfg(test)]
mod test_server;
pub mod thumbprint;

pub use adapter::{Description, HttpWish, Problem, SecretWish};
pub use budget_status::{BudgetStatus, RateStatus};
pub use call::{LastFault, LoadFacts};
pub use compiler::{CompileFault, Compiler, CompilerLimits};
pub use compiler_process::compile_for_parent;
pub use component_file::ComponentFile;
pub use error::{HostError, LoadError};
pub use grants::Grants;
pub use guest_memory::{CALLS_BY_DEFAULT as GUEST_CALLS_BY_DEFAULT, GuestMemoryUse};
pub use host::{Host, HostOptions, ProviderSettings};
pub use instance::Outside;
pub use limits::Limits;
pub use provider::Provider;
pub use swap::SwappableProvider;
pub use swap_status::{ProviderStatus, Swap, SwapResult};
pub use wishes::Lack;
