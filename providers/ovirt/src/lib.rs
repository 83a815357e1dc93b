//! The provider for oVirt (and what was Red Hat Virtualization): instances with their zones.
//!
//! ```text
//!   config.rs      cloud config as the in-tree provider read it
//!      |
//!   api.rs         one call: token or Basic, JSON, pages
//!      |
//!   instances.rs   machine.rs, zones.rs
//! ```
//!
//! Every call gets a fresh instance: [`Ovirt`] holds its configuration and the way to the engine, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod config;
mod instances;
mod machine;
mod zones;

use api::Api;
use config::Config;

/// How all provider ids begin, as those of the in-tree provider did: its instance ids begin with a slash. It MUST NOT change: it is written into
/// every Node.
pub const PROVIDER_ID_PREFIX: &str = "ovirt:///";

/// The provider, alive for one call.
pub struct Ovirt {
    /// The way to the engine.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// State.
    pub(crate) context: Context,
}

impl Provider for Ovirt {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("ovirt", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let connection = &config.connection;
        let engine = connection.wish();
        let secrets = connection.secrets().iter().map(|name| {
            let reason = "who Cloudwit is, for the engine only";
            SecretWish::new(*name, &[SecretUse::Placeholder], reason).only_to(&engine)
        });
        let secrets: Vec<SecretWish> = secrets.collect();
        description.http(engine).secret(secrets)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.connection, context)?,
            config,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.any_machine().map(drop)
    }
}

register_provider!(Ovirt: Instances);

#[cfg(test)]
mod testing;
