//! The provider for Rackspace's public cloud: identity v2 for the token and the catalog, Cloud Servers for machines, Cloud Load Balancers for Services.
//!
//! ```text
//!   config.rs     cloud config as the old in-tree provider read it
//!   identity.rs   API key or password -> token and the region's endpoints, kept in the host's state
//!   servers.rs    Cloud Servers: one server, or pages of all of them
//!   instances.rs  what a server means for its Node
//!   balancers     load balancers of Services: what is desired, what is observed, the changes between
//! ```

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod balancers;
pub mod config;
pub mod identity;
mod instances;
pub mod servers;

use config::Config;
use identity::Identity;

/// How all provider ids begin. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "rackspace://";

/// The provider, alive for one call.
pub struct Rackspace {
    pub(crate) context: Context,
    pub(crate) identity: Identity,
    pub(crate) config: Config,
}

impl Provider for Rackspace {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("rackspace", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        let Some(config) = config else { return description };
        let identity = config.global.identity_wish();
        let secret = config.global.secret().map(|name| {
            let reason = "who Cloudwit is, for requests for a token only";
            SecretWish::new(name, &[SecretUse::Placeholder], reason).only_to(&identity)
        });
        description
            .http(identity)
            .http(config.global.servers_wish())
            .http(config.balancers_wish())
            .secret(secret)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            context,
            identity: Identity::new(&config.global, context)?,
            config,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.any_server().map(drop)
    }
}

register_provider!(Rackspace: Instances, LoadBalancers);

#[cfg(test)]
mod testing;
