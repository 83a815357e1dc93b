//! What the author of a Cloudwit provider imports.
//!
//! A provider is a type that implements [`Provider`] and the traits of the interfaces its cloud has; one macro makes a
//! component of it that exports exactly those:
//!
//! ```
//! use cloudwit_guest_sdk::prelude::*;
//!
//! struct Lab;
//! impl Provider for Lab {
//!     type Config = NoConfig;
//!     fn describe(_: Option<&NoConfig>) -> Description { Description::new("lab", "0.1.0").prefix("lab://") }
//!     fn new(_: NoConfig, _: Context) -> Result<Self, Failure> { Ok(Lab) }
//!     fn probe(&self) -> Result<(), Failure> { Ok(()) }
//! }
//! impl Instances for Lab {
//!     fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
//!         Ok(nodes.iter().map(|node| Ok(Presence::Running(Instance::new(format!("lab://{}", node.name))))).collect())
//!     }
//! }
//! register_provider!(Lab: Instances);
//! ```
//!
//! README.md goes on from there in ten minutes; `providers/sim` is a whole one. The way of a call:
//!
//! ```text
//!   export -> register.rs -> config.rs -> Provider::new -> your trait method -> http.rs, state.rs, keys.rs
//!                            json.rs                                              |
//!                                              in a component: host.rs, host_http.rs (wasi:http)
//!                                              in a test:      host_fake.rs, testing.rs
//! ```
//!
//! Every call gets a fresh instance: what must outlive it goes to [`Context::state`], what must survive a restart to the cloud.
//! Nothing sleeps or polls: answer [`Failure::pending`] and be called again.

extern crate self as cloudwit_guest_sdk;

pub mod annotations;
#[doc(hidden)]
pub mod bindings;
pub mod cidr;
pub mod classify;
pub mod config;
pub mod context;
pub mod failure;
pub mod form;
pub mod gcfg;
#[cfg_attr(not(target_family = "wasm"), path = "host_fake.rs")]
mod host;
#[cfg(target_family = "wasm")]
mod host_http;
pub mod http;
mod json_mistakes;
mod json_reader;
mod json_serde;
pub mod keys;
pub mod log;
pub mod names;
#[cfg(test)]
mod properties_values;
pub mod provider;
pub mod register;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
#[cfg(not(target_family = "wasm"))]
mod testing_requests;
#[cfg(not(target_family = "wasm"))]
mod testing_sent;
pub mod time;
pub mod token;
pub mod types;
pub mod url;
pub mod xml;
#[cfg(feature = "yaml")]
pub mod yaml;

pub use config::{NoConfig, Problems};
pub use context::Context;
pub use keys::{Encoding, Placeholder};
pub use provider::{Instances, LoadBalancers, Provider, Routes};
pub use types::*;

pub use {serde, serde_json};

/// Everything a provider usually needs: `use cloudwit_guest_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::http::{Http, Response};
    pub use crate::provider::{Instances, LoadBalancers, Provider, Routes};
    pub use crate::types::*;
    pub use crate::{
        Context, Encoding, NoConfig, Placeholder, Problems, debug, error, info, register_provider, trace, warn,
    };
}

/// README.md, so that its examples are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// For the macros of this crate only.
#[doc(hidden)]
pub mod __private {
    pub use crate::host::log_enabled;
    pub use crate::log::write;
    pub use wit_bindgen;
}
