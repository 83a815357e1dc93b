//! Clusters, DNS, location and SSH keys: interfaces with one function each.
//!
//! [`Dns`] and [`Location`] are called on a machine, which has no token: they get the configuration and no [`Sim`].

use cloudwit_guest_sdk::prelude::*;

use crate::api::{self, MachineKey};
use crate::config::Config;
use crate::instances::instance;
use crate::{Sim, prefix};

/// The domain that the cloud's DHCP hands out beside its own: machines by their ids, no Service, and a request for each look-up of a Pod.
const MACHINES_DOMAIN: &str = "machines.sim.internal";

impl Clusters for Sim {
    fn clusters(&self) -> Result<Vec<KnownCluster>, Failure> {
        let known = |cluster: api::ManagedCluster| KnownCluster {
            port: cluster.port,
            ..KnownCluster::new(cluster.name).host(cluster.host)
        };
        Ok(self.api.clusters()?.into_iter().map(known).collect())
    }
}

impl Dns for Sim {
    fn scrub(_: Config, _: Context, found: Resolver) -> Result<Resolver, Failure> {
        let below = format!(".{MACHINES_DOMAIN}");
        Ok(found.without_searches(|search| search == MACHINES_DOMAIN || search.ends_with(&below)))
    }
}

impl Location for Sim {
    fn locate(config: Config, context: Context, hostname: &str) -> Result<MachineLocation, Failure> {
        let machine = api::metadata(&config, context, hostname)?;
        Ok(MachineLocation::new(
            machine.name.clone(),
            instance(&machine, &prefix(&config.provider_id_scheme)),
        ))
    }
}

impl SshKeys for Sim {
    fn ensure_ssh_key(&self, key: &SshKey, _: Option<&str>) -> Result<EnsuredKey, Failure> {
        let is_it = |known: &MachineKey| known.user == key.user && key.is_in(&known.public_key);
        if self.api.ssh_keys()?.iter().any(is_it) {
            return Ok(EnsuredKey::Present);
        }
        self.api.add_ssh_key(&MachineKey {
            user: key.user.clone(),
            public_key: key.public_key.clone(),
        })?;
        Ok(EnsuredKey::Added)
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::prelude::*;
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::json;

    use crate::Sim;

    const KEYS: &str = "https://sim.test/v1/ssh-keys";

    fn host() -> FakeHost {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test/"}"#)
            .secret("token", "t0ken");
        host
    }

    fn key() -> SshKey {
        SshKey {
            user: "core".into(),
            public_key: "ssh-ed25519 AAAA".into(),
            extra: Vec::new(),
        }
    }

    #[test]
    fn key_is_added_where_it_is_not() {
        let host = host();
        let others = json!({"items": [
            {"user": "core", "publicKey": "ssh-ed25519 BBBB"}, {"user": "root", "publicKey": "ssh-ed25519 AAAA ann"}
        ]});
        host.expect("GET", &format!("{KEYS}?limit=1000")).answers(200, others);
        host.expect("POST", KEYS)
            .with_json(json!({"user": "core", "publicKey": "ssh-ed25519 AAAA"}))
            .answers(201, json!({"user": "core", "publicKey": "ssh-ed25519 AAAA"}));
        let ensured = host.provider::<Sim>().ensure_ssh_key(&key(), None);
        assert_eq!(ensured, Ok(EnsuredKey::Added));
    }

    #[test]
    fn key_that_is_there_is_not_added_again() {
        let host = host();
        let there = json!({"items": [{"user": "core", "publicKey": "ssh-ed25519 AAAA ann@example.com"}]});
        host.expect("GET", &format!("{KEYS}?limit=1000")).answers(200, there);
        let ensured = host.provider::<Sim>().ensure_ssh_key(&key(), None);
        assert_eq!(ensured, Ok(EnsuredKey::Present));
    }

    #[test]
    fn machine_is_located_without_a_token() {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test", "metadataEndpoint": "http://169.254.169.254"}"#)
            .grants("http://169.254.169.254", &["GET"]);
        host.expect("GET", "http://169.254.169.254/v1/metadata?hostname=node-1")
            .answers(
                200,
                json!({"id": "vm-1", "name": "node-1", "type": "small", "zone": "sim-1a", "region": "sim-1", "state": "running", "addresses": []}),
            );
        let found = host.locate::<Sim>("node-1").unwrap();
        assert_eq!(
            (found.node.as_str(), found.instance.provider_id.as_str()),
            ("node-1", "sim://vm-1")
        );
        assert_eq!(found.instance.zone.as_deref(), Some("sim-1a"));
    }

    #[test]
    fn domain_of_machines_is_scrubbed() {
        let searches = [
            "sim-1.machines.sim.internal.",
            "example.com",
            "machines.sim.internal",
            "xmachines.sim.internal",
        ];
        let left = host().scrub::<Sim>(&["10.0.0.2"], &searches).unwrap();
        assert_eq!(left.searches, ["example.com", "xmachines.sim.internal"]);
        assert_eq!(left.nameservers, ["10.0.0.2"]);
    }

    #[test]
    fn cluster_without_control_plane_is_listed() {
        let host = host();
        host.expect("GET", "https://sim.test/v1/clusters?limit=1000").answers(
            200,
            json!({"items": [{"name": "a", "host": "203.0.113.7", "port": 6443}, {"name": "b", "host": null, "port": null}]}),
        );
        let clusters = host.provider::<Sim>().clusters().unwrap();
        let shown: Vec<_> = clusters
            .iter()
            .map(|one| (one.name.as_str(), one.host.as_deref(), one.port))
            .collect();
        assert_eq!(shown, [("a", Some("203.0.113.7"), Some(6443)), ("b", None, None)]);
    }
}
