//! The calling machine: its identity by the metadata server, as `instances` finds it.

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::config::{Config, Global};
use crate::{Gce, PROVIDER_ID_PREFIX, links, metadata};

/// An interface, as `network-interfaces/?recursive=true` returns it. An empty text for what it does not have.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Interface {
    ip: String,
    ipv6s: Vec<String>,
    access_configs: Vec<AccessConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessConfig {
    external_ip: String,
}

impl Location for Gce {
    fn locate(config: Config, context: Context, _: &str) -> Result<MachineLocation, Failure> {
        let global = &config.global;
        let ask = |path: &str| Ok::<_, Failure>(metadata::get(global, context, path)?.text().trim_ascii().to_owned());
        // The project of the machine, whatever the one of the cluster's load balancers is.
        let project = ask("/project/project-id")?;
        let name = ask("/instance/name")?;
        let zone = links::name(&ask("/instance/zone")?).to_owned();
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{project}/{zone}/{name}"));
        let kind = links::name(&ask("/instance/machine-type")?).to_owned();
        instance.instance_type = (!kind.is_empty()).then(|| label_value(&kind));
        instance.region = links::region_of(&zone).map(str::to_owned);
        instance.zone = Some(zone);
        instance.addresses = addresses(global, context)?;
        Ok(MachineLocation::new(name, instance))
    }
}

fn addresses(global: &Global, context: Context) -> Result<Vec<Address>, Failure> {
    let answer = metadata::get(global, context, "/instance/network-interfaces/?recursive=true")?;
    let interfaces: Vec<Interface> = answer.json()?;
    let mut all = Vec::new();
    for interface in &interfaces {
        all.extend(ip_address(AddressKind::InternalIp, &interface.ip));
        let external = interface.access_configs.iter();
        all.extend(external.filter_map(|config| ip_address(AddressKind::ExternalIp, &config.external_ip)));
        let ipv6 = interface.ipv6s.iter();
        all.extend(ipv6.filter_map(|ip| ip_address(AddressKind::InternalIp, ip)).take(1));
    }
    let (first, rest): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|address| address.value.contains(':') == global.ipv6_first());
    Ok([first, rest].concat())
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::serde_json::json;
    use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};

    use super::*;

    fn machine(granted: bool) -> FakeHost {
        let host = FakeHost::new();
        // Tokens by a key, which a machine does not have: none is requested.
        host.config(r#"{"global": {"project-id": "other", "local-zone": "us-central1-a", "network-name": "n", "client-email": "a@p.test"}}"#);
        host.grants("http://metadata.google.internal", &["GET"]);
        host.serve(move |request| {
            if !granted {
                return FakeAnswer::refused();
            }
            assert_eq!(request.header("metadata-flavor"), Some("Google"));
            let path = request.url.strip_prefix("http://metadata.google.internal/computeMetadata/v1").unwrap();
            let text = match path {
                "/project/project-id" => "p",
                "/instance/name" => "node-1",
                "/instance/zone" => "projects/123/zones/us-central1-b",
                "/instance/machine-type" => "projects/123/machineTypes/e2-medium",
                "/instance/network-interfaces/?recursive=true" => {
                    let interfaces = json!([{"ip": "10.128.0.2", "ipv6s": ["2600:1900::1"], "accessConfigs": [{"externalIp": "34.72.0.1", "type": "ONE_TO_ONE_NAT"}, {"externalIp": ""}], "mac": "x"}]);
                    return FakeAnswer::json(200, &interfaces);
                }
                other => panic!("{other}"),
            };
            FakeAnswer::new(200, &[], text)
        });
        host
    }

    #[test]
    fn machine_is_located_without_a_key() {
        let found = machine(true).locate::<Gce>("node-1.c.p.internal").unwrap();
        assert_eq!(found.node, "node-1");
        let instance = found.instance;
        assert_eq!(instance.provider_id, "gce://p/us-central1-b/node-1");
        assert_eq!(
            (instance.zone.as_deref(), instance.region.as_deref()),
            (Some("us-central1-b"), Some("us-central1"))
        );
        assert_eq!(instance.instance_type.as_deref(), Some("e2-medium"));
        let addresses: Vec<_> = instance
            .addresses
            .iter()
            .map(|address| address.value.as_str())
            .collect();
        assert_eq!(addresses, ["10.128.0.2", "34.72.0.1", "2600:1900::1"]);
    }

    #[test]
    fn metadata_server_that_is_not_granted_is_denied() {
        let denied = machine(false).locate::<Gce>("node-1").unwrap_err();
        assert_eq!(denied.kind, FailureKind::Denied);
        assert!(denied.message().contains("metadata server"), "{denied:?}");
    }
}
