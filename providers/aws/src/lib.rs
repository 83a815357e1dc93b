//! The provider for AWS: EC2 instances behind Nodes, classic and network load balancers behind Services, routes of a VPC for Pods, EBS for volumes.
//!
//! | module | what it does |
//! | ---- | ------------ |
//! | [`config`] | the cloud config |
//! | [`auth`] | credentials, and the signature of each request |
//! | [`api`] | what to reach, and one way to call every service |
//! | [`tags`] | what belongs to the cluster |
//! | [`instances`] | Nodes |
//! | [`routes`] | routes |
//! | [`location`], [`metadata_service`] | the calling instance |
//! | [`tagging`] | an operator's tags on instances |
//! | `volumes` | disks: EBS |
//! | [`balancers`], [`vpc`] | Services |
//!
//! README.md has what works, the keys, and the permissions they need.

use cloudwit_guest_sdk::config::Tree;
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod auth;
pub mod balancers;
pub mod config;
pub mod instances;
pub mod location;
pub mod metadata_service;
pub mod routes;
pub mod tagging;
pub mod tags;
#[cfg(test)]
mod testing;
mod volumes;
pub mod vpc;

use api::Api;
use api::endpoints::Endpoints;
use config::Config;
use tags::ClusterTag;

/// Prefix of the provider ids that Cloudwit writes.
pub const PROVIDER_ID_PREFIX: &str = "aws://";

/// How one begins that is an instance's id and nothing else, which upstream takes too.
pub const BARE_ID_PREFIX: &str = "i-";

/// The provider, alive for one call.
#[derive(Debug)]
pub struct Aws {
    pub(crate) api: Api,
    pub(crate) config: Config,
    pub(crate) cluster: ClusterTag,
    pub(crate) context: Context,
}

impl Provider for Aws {
    type Config = Config;

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("aws", env!("CARGO_PKG_VERSION"))
            .prefix(PROVIDER_ID_PREFIX)
            .prefix(BARE_ID_PREFIX)
            .tagging_label(tagging::LABEL);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let secrets = config.credentials.secrets(&Endpoints::new(config));
        description.http(Endpoints::wishes(config)).secret(secrets).view(
            ClusterView::Nodes,
            "routes: which instances are the cluster's",
            true,
        )
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        Config::parse(text)
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config, context),
            cluster: ClusterTag::new(&config, &context.cluster().name),
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        // Needed for every Node anyway, answered in one page, and allowed with any permission to describe.
        self.api
            .ec2("DescribeAvailabilityZones")
            .send()
            .map(drop)
            .map_err(Failure::from)
    }
}

register_provider!(
    Aws: Instances, LoadBalancers, Routes, Tagging, Location, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeModification, VolumeLabels
);
