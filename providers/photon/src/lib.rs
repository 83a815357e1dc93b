//! The provider for Photon Controller (VMware Photon Platform): instances, and volumes on persistent disks.
//!
//! ```text
//!   config.rs      cloud config as the in-tree provider read it
//!      |
//!   api.rs         one call: a token of Lightwave or none, JSON, pages
//!   task.rs        the cloud's tasks
//!      |
//!   instances.rs   machines of the project
//!   volumes/       its persistent disks
//! ```
//!
//! Every call gets a fresh instance: [`Photon`] holds its configuration and the way to the cloud, nothing else.

use cloudwit_guest_sdk::config::{Tree, parse_any};
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod config;
mod instances;
mod task;
mod volumes;

use api::Api;
use config::{Config, PASSWORD};

/// How all provider ids begin, as those of the in-tree provider did. It MUST NOT change: it is written into every Node.
pub const PROVIDER_ID_PREFIX: &str = "photon://";

/// The provider, alive for one call.
pub struct Photon {
    /// The way to the cloud.
    pub(crate) api: Api,
    /// What the operator wrote.
    pub(crate) config: Config,
    /// Name of the cluster, for tags.
    pub(crate) cluster: String,
    pub(crate) context: Context,
}

impl Provider for Photon {
    type Config = Config;

    fn parse_config(text: &str) -> Result<Tree, Problem> {
        parse_any(text)
    }

    fn describe(config: Option<&Config>) -> Description {
        let description = Description::new("photon", env!("CARGO_PKG_VERSION")).prefix(PROVIDER_ID_PREFIX);
        // Hosts follow from the configuration, so with an invalid one nothing is requested.
        let Some(config) = config else { return description };
        let lightwave = config
            .global
            .lightwave()
            .and_then(|url| HttpWish::for_url(url, &["POST"], "Lightwave: tokens"));
        let secret = lightwave.as_ref().map(|wish| {
            let reason = "the user's password, for Lightwave only";
            SecretWish::new(PASSWORD, &[SecretUse::Placeholder], reason).only_to([wish])
        });
        description
            .http(HttpWish::for_url(
                config.global.target(),
                &["GET"],
                "Photon Controller's API",
            ))
            .http(HttpWish::for_url(
                config.global.target(),
                &["POST", "DELETE"],
                "volumes: persistent disks are made, attached and deleted",
            ))
            .http(lightwave)
            .secret(secret)
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.global.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            api: Api::new(&config.global, context)?,
            config,
            cluster: context.cluster().name,
            context,
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.project().map(drop)
    }
}

register_provider!(Photon: Instances, Volumes, VolumeListing, VolumeCapacity);
