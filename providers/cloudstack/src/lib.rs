//! The provider for Apache CloudStack: instances with their zones, and load balancers.
//!
//! ```text
//!   config.rs    cloud config as upstream's controller reads it
//!      |
//!   api/         one call: signed form, JSON, pages, failures, asynchronous jobs
//!      |
//!   instances/   balancers/
//! ```
//!
//! Every call gets a fresh instance: [`CloudStack`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, is_plain_id};

pub mod api;
mod balancers;
pub mod config;
mod instances;

use api::Api;
use config::{Config, SECRET_KEY};

/// How all provider ids begin that are given out. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "external-cloudstack://";

/// How those began that the in-tree provider gave out until Kubernetes 1.16. They are read, and stay in their Nodes.
pub const FORMER_PREFIX: &str = "cloudstack://";

/// The provider, alive for one call.
pub struct CloudStack {
    /// The way to the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State, Events.
    pub(crate) context: Context,
}

impl Provider for CloudStack {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("cloudstack", env!("CARGO_PKG_VERSION"))
            .prefix(PROVIDER_ID_PREFIX)
            .prefix(FORMER_PREFIX);
        let reason = "the user's secret key, by which the host signs requests";
        let secret = SecretWish::new(SECRET_KEY, &[SecretUse::Hmac], reason);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        description
            .http(HttpWish::for_url(&config.global.url(), &["POST"], "CloudStack's API"))
            .secret(secret)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context),
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.version().map(drop)
    }
}

/// The id of the machine in a provider id; none when it is of another cloud or no id.
pub(crate) fn machine_id(provider_id: &str) -> Option<&str> {
    let id = id_after(PROVIDER_ID_PREFIX, provider_id).or(id_after(FORMER_PREFIX, provider_id))?;
    is_plain_id(id).then_some(id)
}

register_provider!(CloudStack: Instances, LoadBalancers);

#[cfg(test)]
mod testing;
