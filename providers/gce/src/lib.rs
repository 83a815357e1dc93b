//! The provider for Google Compute Engine: instances and zones, routes, external and internal load balancers, volumes.
//!
//! ```text
//!   config.rs                 cloud-config as upstream reads it
//!      |
//!   place.rs                  project, zone, network: configured, else from the metadata server
//!   auth/                     access tokens: a service account's key, the metadata server, another token source
//!      |
//!   api/                      one call: endpoint, token, JSON, pages, failures
//!   operation.rs, work.rs     changes take time: the call ends with `pending`, and the next one continues
//!      |
//!   instances/   routes/   balancers/   volumes/   clusters.rs   ssh_keys.rs
//!
//!   metadata/                 on a machine: metadata server alone, no token
//! ```
//!
//! Every call gets a fresh instance: [`Gce`] holds its configuration and the way to the cloud, nothing else.

use std::cell::RefCell;

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod auth;
mod balancers;
mod clusters;
pub mod config;
mod instances;
pub mod links;
pub mod metadata;
pub mod operation;
pub mod place;
mod probe;
mod resource;
mod routes;
mod ssh_keys;
mod volumes;
mod work;

use api::Api;
use config::Config;

/// How all provider ids begin. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "gce://";

/// What upstream's controller leaves on Services with an external or an internal load balancer (`gce_loadbalancer.go`, `gce_annotations.go`).
const UPSTREAM_FINALIZERS: [&str; 2] = ["gke.networking.io/l4-netlb-v1", "gke.networking.io/l4-ilb-v1"];

/// The provider, alive for one call.
pub struct Gce {
    /// The way to the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Nodes, Events.
    pub(crate) context: Context,
    /// The instance groups, once this call has brought them in line.
    pub(crate) groups: RefCell<Option<Vec<String>>>,
}

impl Provider for Gce {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("gce", env!("CARGO_PKG_VERSION"))
            .prefix(PROVIDER_ID_PREFIX)
            .service_finalizers(&UPSTREAM_FINALIZERS);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let api = HttpWish::for_url(
            &config.global.api(),
            &["GET", "POST", "PUT", "PATCH", "DELETE"],
            "Compute Engine",
        );
        description
            .http(api)
            .http(auth::wishes(&config.global))
            .http(metadata::wish(&config.global))
            .secret(auth::secrets(&config.global))
            .view(ClusterView::Nodes, "routes: which instances are the cluster's", true)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context),
            config,
            context,
            groups: RefCell::default(),
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        probe::probe(self)
    }
}

register_provider!(
    Gce: Instances, LoadBalancers, Routes, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeLabels, Clusters, Dns, Location, SshKeys
);
