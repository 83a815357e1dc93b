//! The provider for Microsoft Azure: instances and zones, load balancers, routes, and volumes.
//!
//! ```text
//!   config/                 azure.json as upstream reads it, sovereign clouds' endpoints
//!      |
//!   auth/                   tokens: client secret, certificate, workload identity, managed identity
//!      |
//!   arm/                    one call of the Resource Manager: token, JSON, pages, failures, long operations, resource ids
//!      |
//!   instances/   balancers/   routes/   volumes/
//!
//!   location.rs             on a machine: the metadata service alone
//! ```
//!
//! Every call gets a fresh instance: [`Azure`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod arm;
pub mod auth;
mod balancers;
pub mod config;
mod instances;
mod location;
mod routes;
mod volumes;

use arm::Arm;
use config::Config;

/// How all provider ids begin. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "azure://";

/// The provider, alive for one call.
pub struct Azure {
    /// The way to the cloud.
    pub(crate) arm: Arm,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Nodes, Events.
    pub(crate) context: Context,
}

impl Provider for Azure {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("azure", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let methods = ["GET", "PUT", "PATCH", "DELETE"];
        description
            .http(HttpWish::for_url(
                &config.resource_manager(),
                &methods,
                "Azure Resource Manager",
            ))
            .http(auth::wish(config))
            .secret(auth::secret(config))
            .view(
                ClusterView::Nodes,
                "routes: whose address a next hop is; volumes: which Node a machine is",
                true,
            )
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            arm: Arm::new(&config, context),
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        let group = format!(
            "{}/providers/Microsoft.Compute/virtualMachines",
            self.config.group(&self.config.resource_group)
        );
        self.arm.get(&group, arm::COMPUTE, &[]).map(drop)
    }
}

register_provider!(
    Azure: Instances, LoadBalancers, Routes, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeModification, VolumeLabels, Location
);
