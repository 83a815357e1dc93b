//! The provider for Apache Mesos and DC/OS: instances, and the cluster itself.
//!
//! ```text
//!   config.rs      cloud config as the in-tree provider read it
//!      |
//!   api.rs         the leading master: redirects, credentials; access.rs, tokens of DC/OS
//!      |
//!   instances.rs   agent.rs   clusters.rs
//! ```
//!
//! Every call gets a fresh instance: [`Mesos`] holds the way to the masters, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

mod access;
mod agent;
pub mod api;
mod clusters;
pub mod config;
mod instances;

use api::Api;
use config::Config;

/// How all provider ids begin. The in-tree provider wrote this and nothing behind it. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "mesos://";

/// The provider, alive for one call.
pub struct Mesos {
    /// The way to the leading master.
    pub(crate) api: Api,
}

impl Provider for Mesos {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("mesos", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let masters = config.masters.wishes();
        let secrets = access::secrets(&config.masters, &masters);
        description.http(masters).secret(secrets)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.masters.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Api::new(&config.masters, context).map(|api| Self { api })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.agents().map(drop)
    }
}

register_provider!(Mesos: Instances, Clusters);
