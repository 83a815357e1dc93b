//! The provider for OpenStack: Keystone for the token and the catalog, Nova and Neutron for instances and routes, Octavia for load
//! balancers, Cinder for volumes.
//!
//! ```text
//!   config.rs, balancer_config.rs   cloud.conf as upstream reads it
//!        |
//!   identity.rs, catalog.rs         password or application credential -> token and endpoints, kept in the host's state
//!        |
//!   api.rs, wire.rs                 one call: endpoint, token, JSON, pages, failures; a refused token is renewed once
//!        |
//!   instances*.rs   routes*.rs   load_balancers.rs and its kin   volumes/
//! ```
//!
//! On a server `location.rs` asks the metadata service alone.
//!
//! Every call gets a fresh instance: [`OpenStack`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod address_pairs;
pub mod addresses;
pub mod annotations;
pub mod api;
pub mod balancer_config;
mod balancer_creation;
mod balancer_deletion;
pub mod balancer_names;
pub mod balancer_plan;
mod balancer_task;
pub mod balancer_wanted;
pub mod catalog;
pub mod change;
pub mod config;
mod floating_ips;
pub mod identity;
mod instances;
pub mod instances_plan;
mod load_balancers;
mod location;
pub mod members;
pub mod octavia;
pub mod octavia_bodies;
pub mod octavia_features;
pub mod pattern;
pub mod ports;
mod probe;
#[cfg(test)]
mod recorded;
pub mod routers;
mod routes;
pub mod routes_plan;
pub mod security_group_plan;
mod security_groups;
pub mod servers;
pub mod sharing;
pub mod subnet_filter;
pub mod volumes;
pub mod wire;

use api::Api;
use config::Config;

/// How all provider ids begin. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "openstack://";

/// The provider, alive for one call.
pub struct OpenStack {
    /// The way to every service of the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Nodes, Events.
    pub(crate) context: Context,
}

impl Provider for OpenStack {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let mut description = Description::new("openstack", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        if let Some(config) = config {
            let keystone = config.global.wish();
            if let Some(name) = identity::secret_name(&config.global) {
                let reason = "who Cloudwit is, for requests to Keystone only";
                let wish = SecretWish::new(name, &[SecretUse::Placeholder], reason);
                description = description.secret(wish.only_to(&keystone));
            }
            description = description
                .http(keystone)
                .view(
                    ClusterView::Nodes,
                    "routes, and load balancers with a node-selector",
                    true,
                )
                .view(ClusterView::Services, "shared load balancers", true);
        }
        description
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context)?,
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        probe::probe(self)
    }
}

register_provider!(OpenStack: Instances, LoadBalancers, Routes, Location, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeModification, VolumeLabels);
