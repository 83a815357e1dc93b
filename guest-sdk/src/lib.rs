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
//! README.md is the tutorial for that; `providers/sim` is a whole one. The way of a call:
//!
//! ```text
//!   export -> register.rs -> config -> Provider::new -> (lookup) -> your trait method -> http, state.rs, auth
//!                                                                              |
//!                                                  in a component: host/component.rs, host/wasi_http.rs (wasi:http)
//!                                                  in a test:      host/fake.rs, testing
//! ```
//!
//! Every call gets a fresh instance: what must outlive it goes to [`Context::state`], what must survive a restart to the cloud.
//! Nothing sleeps or polls: answer [`Failure::pending`] and be called again.

extern crate self as cloudwit_guest_sdk;

pub mod auth;
#[doc(hidden)]
pub mod bindings;
pub mod config;
pub mod context;
pub mod failure;
mod host;
pub mod http;
pub mod log;
pub mod lookup;
#[cfg(test)]
mod properties;
pub mod provider;
pub mod reconcile;
pub mod register;
pub mod service;
pub mod small;
pub mod state;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
pub mod time;
pub mod types;
pub mod volumes;

pub use auth::{jwt, keys, token};
pub use config::gcfg;
#[cfg(feature = "yaml")]
pub use config::yaml;
pub use http::{classify, form, items, openstack, url, xml};
pub use service::{annotations, cidr, names, ports, targets};

pub use config::{NoConfig, Problems};
pub use context::Context;
pub use keys::{Encoding, Placeholder};
pub use provider::{Instances, LoadBalancers, Provider, Routes, Tagging, one_by_one};
pub use small::{Clusters, Dns, EnsuredKey, KnownCluster, Location, MachineLocation, Resolver, SshKey, SshKeys};
pub use types::*;
pub use volumes::{
    VolumeCapacity, VolumeExpansion, VolumeLabels, VolumeListing, VolumeModification, VolumeSnapshots, Volumes,
};

pub use {serde, serde_json};

/// Everything a provider usually needs: `use cloudwit_guest_sdk::prelude::*;`.
pub mod prelude {
    pub use crate::http::{Http, Response};
    pub use crate::provider::{Instances, LoadBalancers, Provider, Routes, Tagging};
    pub use crate::small::{
        Clusters, Dns, EnsuredKey, KnownCluster, Location, MachineLocation, Resolver, SshKey, SshKeys,
    };
    pub use crate::types::*;
    pub use crate::volumes::{
        VolumeCapacity, VolumeExpansion, VolumeLabels, VolumeListing, VolumeModification, VolumeSnapshots, Volumes,
    };
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
