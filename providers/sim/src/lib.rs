//! The provider for the simulated cloud of `tests/sim-cloud`, and the worked example of a provider.
//!
//! Read it in this order; each file is what any provider needs, in the recommended shape:
//!
//! | file | what it shows |
//! | ---- | ------------- |
//! | `lib.rs` | the type, its registration, its description |
//! | [`config`] | a typed configuration and the mistakes that types cannot express |
//! | [`api`] | the cloud's wire types, and one function for each of its calls |
//! | [`instances`] | many machines in few requests; what counts as evidence that one is gone |
//! | [`load_balancers`] | find, adopt, create; waiting without sleeping; annotations |
//! | [`routes`] | many changes in one request, one result each |
//! | [`tagging`] | an operator's tags on machines |
//! | [`small`] | clusters, DNS, location, SSH keys |
//! | [`volumes`] | disks: found by name, made, attached in batches; snapshots, growth; a secret of the request |
//!
//! The rule behind all of it: every call gets a fresh instance. `Sim` holds nothing but its configuration and an HTTP client.

use cloudwit_guest_sdk::keys::Keys;
use cloudwit_guest_sdk::prelude::*;

pub mod api;
pub mod config;
pub mod instances;
pub mod load_balancers;
pub mod routes;
pub mod small;
pub mod tagging;
pub mod volumes;

use api::Api;
use config::Config;

/// Provider ids are a scheme, `://` and the machine's id. The scheme MUST NOT change: it is written into every Node. Only a second cloud
/// in the same cluster needs another one.
pub const PROVIDER_ID_SCHEME: &str = "sim";

/// How all provider ids of a scheme begin.
fn prefix(scheme: &str) -> String {
    format!("{scheme}://")
}

/// The secret that is sent as bearer token. The host puts it into the request; it never comes in here.
pub const TOKEN: &str = "token";

/// The provider, alive for one call.
#[derive(Debug)]
pub struct Sim {
    api: Api,
    /// How the provider ids of its machines begin.
    prefix: String,
    /// Key of the zone in the places of volumes.
    zone_key: String,
    /// Marks what belongs to this cluster.
    cluster: String,
    /// Placeholders of secrets.
    keys: Keys,
}

impl Provider for Sim {
    type Config = Config;

    fn describe(config: Option<&Config>) -> Description {
        // The host to grant follows from the configuration, so an invalid one requests none.
        let wish = config.and_then(|config| {
            HttpWish::for_url(
                &config.endpoint,
                &["GET", "POST", "PUT", "DELETE"],
                "the simulated cloud's API",
            )
        });
        Description::new("sim", env!("CARGO_PKG_VERSION"))
            .prefix(prefix(
                config.map_or(PROVIDER_ID_SCHEME, |config| &config.provider_id_scheme),
            ))
            .http(wish)
            .secret(SecretWish::new(
                TOKEN,
                &[SecretUse::Placeholder],
                "bearer token of the simulated cloud, for requests to its API only",
            ))
            .secret(volumes::passphrase_wish())
    }

    fn validate(config: &Config, problems: &mut Problems) {
        config.validate(problems);
    }

    fn new(config: Config, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            prefix: prefix(&config.provider_id_scheme),
            zone_key: volumes::zone_key_of(&config.provider_id_scheme),
            api: Api::new(config, context)?,
            cluster: context.cluster().name,
            keys: context.keys(),
        })
    }

    fn probe(&self) -> Result<(), Failure> {
        self.api.zones().map(drop)
    }
}

register_provider!(
    Sim: Instances, LoadBalancers, Routes, Volumes, VolumeExpansion, VolumeListing, VolumeSnapshots, VolumeModification, VolumeCapacity, VolumeLabels, Clusters, Dns,
    Location, SshKeys,
    Tagging
);

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::prelude::*;
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::json;

    use super::Sim;

    #[test]
    fn probe_distinguishes_wrong_and_right_tokens() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test/"}"#)
            .secret("token", "t0ken");
        host.expect("GET", "https://sim.test/v1/zones")
            .answers(200, json!({"items": []}));
        assert_eq!(host.provider::<Sim>().probe(), Ok(()));
        host.expect("GET", "https://sim.test/v1/zones").answers(401, json!({}));
        assert!(matches!(
            host.provider::<Sim>().probe(),
            Err(Failure {
                kind: FailureKind::Denied,
                ..
            })
        ));
    }
}
