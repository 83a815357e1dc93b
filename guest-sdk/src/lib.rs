//! What the author of a Cloudwit provider imports.
extern crate self as cloudwit_guest_sdk;

#[doc(hidden)]
pub mod bindings;
pub mod config;
pub mod context;
pub mod failure;
#[cfg_attr(not(target_family = "wasm"), path = "host_fake.rs")]
mod host;
#[cfg(target_family = "wasm")]
mod host_http;
pub mod http;
mod http_date;
pub mod json;
mod json_reader;
pub mod keys;
pub mod log;
pub mod provider;
pub mod register;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod types;

pub use config::{NoConfig, Problems};
pub use context::Context;
pub use keys::Secret;
pub use provider::{Instances, LoadBalancers, Provider, Routes};
pub use types::*;

pub use {serde, serde_json};

/// Everything a provider usually needs: `use cloudwit_guest_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::http::{Http, Response};
    pub use crate::provider::{Instances, LoadBalancers, Provider, Routes};
    pub use crate::types::*;
    pub use crate::{Context, NoConfig, Problems, Secret, debug, error, info, register_provider, trace, warn};
}

/// For the macros of this crate only.
#[doc(hidden)]
pub mod __private {
    pub use crate::host::log_enabled;
    pub use crate::log::write;
    pub use wit_bindgen;
}
