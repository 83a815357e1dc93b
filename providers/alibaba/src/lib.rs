//! The provider for Alibaba Cloud: instances with their zones, Classic and Network Load Balancers, routes.
//!
//! ```text
//!   config.rs    cloud config as upstream's controller reads it
//!      |
//!   api/         one call: credentials, signature, JSON, pages, failures
//!      |
//!   instances/   routes/   balancers/
//! ```
//!
//! Every call gets a fresh instance: [`Alibaba`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, is_plain_id};

pub mod api;
mod balancers;
pub mod config;
mod instances;
mod routes;

use api::{Api, Call, ECS};
use config::{Config, Global};

/// A scheme that upstream takes before its own form of provider ids. Ids are given out without it.
pub const SCHEME: &str = "alicloud://";

/// What upstream's controller leaves on Services with a Classic or a Network Load Balancer (`service_utils.go`).
const UPSTREAM_FINALIZERS: [&str; 2] = ["service.k8s.alibaba/resources", "service.k8s.alibaba/nlb"];

/// The provider, alive for one call.
pub struct Alibaba {
    /// The way to the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Nodes, Events.
    pub(crate) context: Context,
}

impl Provider for Alibaba {
    type Config = Config;

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("alibaba", env!("CARGO_PKG_VERSION"))
            .prefix(SCHEME)
            .service_finalizers(&UPSTREAM_FINALIZERS);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let description = match config.global.region() {
            "" => description,
            region => description.prefix(provider_id(region, "")),
        };
        description
            .http(config.global.wishes())
            .secret(config.global.secrets())
            .view(
                ClusterView::Nodes,
                "routes: which instances are the cluster's; the annotation backend-label: labels of Nodes",
                true,
            )
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.global.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context),
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        let call = Call::new(ECS, "DescribeInstances").field("MaxResults", 10);
        self.api.send::<cloudwit_guest_sdk::serde_json::Value>(&call).map(drop)
    }
}

impl Alibaba {
    pub(crate) fn global(&self) -> &Global {
        &self.config.global
    }

    /// The instance of a Node, by its provider id.
    pub(crate) fn instance_of<'n>(&self, node: &'n NodeRef) -> Option<&'n str> {
        instance_id(node.provider_id.as_deref()?, self.global().region())
    }
}

/// The provider id of an instance. It MUST NOT change: it is written into every Node.
pub(crate) fn provider_id(region: &str, instance: &str) -> String {
    format!("{region}.{instance}")
}

/// The instance in a provider id: `REGION.ID`, also behind [`SCHEME`]. None when it is of another cloud or region, or no id.
pub(crate) fn instance_id<'n>(provider_id: &'n str, region: &str) -> Option<&'n str> {
    let rest = id_after(SCHEME, provider_id).unwrap_or(provider_id);
    let id = rest.strip_prefix(region)?.strip_prefix('.')?;
    is_plain_id(id).then_some(id)
}

register_provider!(Alibaba: Instances, LoadBalancers, Routes);

#[cfg(test)]
mod testing;
