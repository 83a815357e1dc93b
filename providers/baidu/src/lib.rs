//! The provider for Baidu AI Cloud: instances with their zones, load balancers with public addresses, and routes.
//!
//! ```text
//!   config.rs    cloud config as Baidu's own controller reads it
//!      |
//!   api/         one call: signed request, JSON, pages by marker, failures
//!      |
//!   instances/   balancers/   routes/
//! ```
//!
//! Every call gets a fresh instance: [`Baidu`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::Tree;
use cloudwit_guest_sdk::lookup;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

pub mod api;
mod balancers;
pub mod config;
mod instances;
mod routes;

use api::Api;
use config::{Config, SECRET_KEY, given};

/// How all provider ids begin that are given out. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "cce://";

/// How ids of machines begin. A Node may have one without the prefix, which Baidu's own controller reads too.
pub const BARE_PREFIX: &str = "i-";

/// The provider, alive for one call.
pub struct Baidu {
    /// The way to the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Nodes, Events.
    pub(crate) context: Context,
}

impl Provider for Baidu {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        config::parse(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("baidu", env!("CARGO_PKG_VERSION"))
            .prefix(PROVIDER_ID_PREFIX)
            .prefix(BARE_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let mut hosts: Vec<(String, Vec<&str>)> = Vec::new();
        for product in config::Product::ALL {
            let url = config.endpoint(product);
            match hosts.iter_mut().find(|(known, _)| *known == url) {
                Some((_, methods)) => methods.extend(product.methods()),
                None => hosts.push((url, product.methods().to_vec())),
            }
        }
        let wish = |(url, mut methods): (String, Vec<&str>)| {
            methods.sort_unstable();
            methods.dedup();
            HttpWish::for_url(&url, &methods, "Baidu's API")
        };
        let reason = "the secret access key, by which the host signs requests";
        description
            .http(hosts.into_iter().filter_map(wish))
            .secret(SecretWish::new(SECRET_KEY, &[SecretUse::Hmac], reason))
            .view(ClusterView::Nodes, "routes: which machines are the cluster's", true)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config, context),
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        lookup::Listing::sees_any(self).map(drop)
    }
}

impl Baidu {
    /// Id of the cluster.
    pub(crate) fn cluster_id(&self) -> &str {
        given(&self.config.cluster_id).unwrap_or_default()
    }

    /// The VPC of all machines.
    pub(crate) fn vpc(&self) -> &str {
        given(&self.config.vpc_id).unwrap_or_default()
    }
}

/// The id of the machine in a provider id, with the prefix or without; none when it is of another cloud or no id.
pub(crate) fn machine_id(provider_id: &str) -> Option<&str> {
    let bare = || provider_id.starts_with(BARE_PREFIX).then_some(provider_id);
    let id = id_after(PROVIDER_ID_PREFIX, provider_id).or_else(bare)?;
    api::is_id(id).then_some(id)
}

register_provider!(Baidu: Instances, LoadBalancers, Routes);

#[cfg(test)]
mod testing;
