//! The provider for AWS: EC2 instances behind Nodes, classic and network load balancers behind Services, routes of a VPC for Pods, EBS for volumes.
//!
//! | file | what it does |
//! | ---- | ------------ |
//! | [`config`], [`config_credentials`], [`endpoints`] | the cloud config, and what to reach for it |
//! | [`credentials`], [`credentials_profile`], [`signature`] | who we are, and the proof of it in each request |
//! | [`api`], [`api_error`], [`sender`] | one way to call every service |
//! | [`tags`] | what belongs to the cluster |
//! | [`instances`] and `instances_*`, [`zones`], [`topology`] | Nodes |
//! | [`routes`], [`routes_plan`] | routes |
//! | [`location`], [`metadata_service`] | the instance that asks |
//! | [`tagging`] | an operator's tags on instances |
//! | `volumes` | disks: EBS |
//! | `load_balancers` and all others | Services |
//!
//! README.md says what works, which keys there are, and which permissions they need.

use cloudwit_guest_sdk::config::Tree;
use cloudwit_guest_sdk::prelude::*;

pub mod annotations;
pub mod annotations_settings;
pub mod api;
pub mod api_error;
pub mod asking;
#[cfg(test)]
mod balancer_stage;
mod by_ids;
pub mod classic_apply;
pub mod classic_balancer;
pub mod classic_plan;
pub mod config;
pub mod config_credentials;
pub mod credentials;
pub mod credentials_profile;
pub mod endpoints;
pub mod instances;
pub mod instances_by_id;
mod instances_by_name;
mod instances_fargate;
pub mod instances_machine;
mod listener_changes;
pub mod load_balancers;
pub mod load_balancers_delete;
pub mod location;
pub mod metadata_service;
pub mod network_apply;
pub mod network_balancer;
pub mod network_plan;
pub mod network_ports;
mod reading;
pub mod routes;
pub mod routes_plan;
pub mod security_groups;
pub mod security_groups_own;
pub mod security_groups_plan;
pub mod sender;
pub mod signature;
pub mod steps;
pub mod subnets;
pub mod subnets_plan;
pub mod tagging;
pub mod tags;
pub mod target_groups;
pub mod target_instances;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_cloud;
pub mod topology;
mod volumes;
pub mod vpc;
pub mod zones;

use api::Api;
use config::Config;
use endpoints::Endpoints;
use tags::ClusterTag;

/// How the provider ids begin that we write.
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
        // Where to go follows from the configuration, so a wrong one asks for nothing.
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
        // Needed for every Node anyway, answered in one page, and allowed to whoever may describe anything.
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
