//! The provider for Rancher 1.x (Cattle): instances with their zones, and load balancers.
//!
//! ```text
//!   config.rs      cloud config with the names of upstream's controller
//!      |
//!   api/           one call: Basic by the host, JSON resources with states and actions, pages, failures
//!      |
//!   instances/     balancers/
//! ```
//!
//! Every call gets a fresh instance: [`Rancher`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod api;
mod balancers;
pub mod config;
mod instances;

use api::{Api, HOSTS};
use config::{ACCESS_KEY, Config, SECRET_KEY};

/// How all provider ids begin, as those of upstream's controller did. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "rancher://";

/// The provider, alive for one call.
pub struct Rancher {
    /// The way to the cloud.
    pub(crate) api: Api,
}

impl Provider for Rancher {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("rancher", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let methods = ["GET", "POST", "PUT", "DELETE"];
        let server = HttpWish::for_url(&config.global.url(), &methods, "Rancher's API");
        let secrets = [ACCESS_KEY, SECRET_KEY].map(|name| {
            let reason = "the API key pair of the environment, for Rancher's API only";
            SecretWish::new(name, &[SecretUse::Placeholder], reason).only_to(&server)
        });
        description.http(server).secret(secrets)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.global.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context)?,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.first(HOSTS).map(drop)
    }
}

register_provider!(Rancher: Instances, LoadBalancers);

#[cfg(test)]
mod testing;
