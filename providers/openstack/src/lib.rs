//! The provider for OpenStack: Keystone for the token and the catalog, Nova and Neutron for instances and routes, Octavia for load
//! balancers, Cinder for volumes.
//!
//! ```text
//!   config.rs   cloud.conf as upstream reads it; balancers/ and volumes/ have their sections
//!      |
//!   auth/       password or application credential -> token and endpoints, kept in the host's state
//!      |
//!   api/        one call: endpoint, token, JSON, pages, failures; a refused token is renewed once
//!      |
//!   instances/   routes/   balancers/   volumes/
//! ```
//!
//! On a server `location.rs` queries the metadata service alone.
//!
//! Every call gets a fresh instance: [`OpenStack`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod auth;
mod balancers;
pub mod config;
mod instances;
mod location;
mod probe;
#[cfg(test)]
mod recorded;
mod routes;
pub mod volumes;

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
            if let Some(name) = auth::secret_name(&config.global) {
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
