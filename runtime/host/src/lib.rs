//! Host of wasm providers: loads components and calls them, each call in a fresh instance.
//!
//! ```text
//!   Host::load   artifact -> cache -> version -> v0_1 (link, types) -> provider
//!   a call       provider -> call (slots, deadlines) -> instance (store, limits) -> adapter = v0_1 -> the guest
//!   its imports  contract -> keys, state, guest_log, Outside;  wasi:http -> egress -> net -> the cloud
//!   a change     swap -> Host::load beside the running one -> grants, check, probe -> switch, or the last good one stays
//!   its answer   contract + answer (limits, secrets) -> the model's words;  or fault -> ProviderFault
//! ```
//!
//! This crate depends on wasmtime and the contract in `wit/`, not on Kubernetes: it implements the model's `Cloud`.
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

pub mod bounded_work;
mod call;
mod contract;
mod egress;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod grants;
mod host;
mod limits;
mod load;
mod metrics;
mod net;
pub mod private_dir;
mod provider;
mod secrets;
mod state;
mod swap;

pub use call::guest_memory::{CALLS_BY_DEFAULT as GUEST_CALLS_BY_DEFAULT, GuestMemoryUse};
pub use call::instance::Outside;
pub use call::{LastFault, LoadFacts};
pub use contract::adapter::{
    ClusterGrantRequest, ClusterGrantView, Description, HttpGrantRequest, Problem, SecretGrantRequest, Severity,
};
pub use egress::budget::rate_limit::RateStatus;
pub use egress::budget::{BudgetStatus, HostAnswers};
pub use error::{HostError, LoadError};
pub use grants::Grants;
pub use host::{Host, HostOptions, ProviderSettings};
pub use limits::Limits;
pub use load::compiler::{CompileFault, Compiler, CompilerLimits};
pub use load::compiler_process::compile_for_parent;
pub use load::component_file::{COMPRESSION, ComponentFile};
pub use load::requests::MissingGrant;
pub use net::tls::client_identity::has_private_key;
pub use net::{client as http_client, destination, dns, resolver, wire};
pub use provider::Provider;
pub use secrets::config_secrets::is_secret as names_a_secret;
pub use secrets::keys;
pub use swap::status::{ProviderStatus, Swap, SwapResult};
pub use swap::{NoSuccessor, SwappableProvider};
