//! The calling machine: its identity by the metadata service.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::arm::ids;
use crate::config::Config;
use crate::{Azure, PROVIDER_ID_PREFIX};

/// The oldest version with all that is read (resource ids, names by the operating system).
const VERSION: &str = "2021-02-01";

/// It is near: a machine without one does not answer at all.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Facts {
    compute: Compute,
    network: Network,
}

/// Numbers are texts here.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Compute {
    location: String,
    name: String,
    os_profile: Os,
    platform_fault_domain: String,
    resource_id: String,
    vm_size: String,
    zone: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Os {
    computer_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Network {
    interface: Vec<Interface>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Interface {
    ipv4: Family,
    ipv6: Family,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Family {
    ip_address: Vec<IpAddresses>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct IpAddresses {
    private_ip_address: String,
    public_ip_address: String,
}

impl Location for Azure {
    fn locate(config: Config, context: Context, _: &str) -> Result<MachineLocation, Failure> {
        let http = context.http().base(&config.metadata()).timeout(PATIENCE);
        let request = http.get("/metadata/instance").header("metadata", "true");
        let answer = request.query("api-version", VERSION).send();
        let answer = answer.map_err(|failure| failure.context("asking the metadata service"))?;
        let Facts { compute, network } = answer.json()?;
        if compute.resource_id.is_empty() || compute.location.is_empty() {
            return Err(Failure::other(
                "the metadata service does not tell resourceId and location",
            ));
        }
        // As kubelets call Nodes, and as `instances` finds them.
        let name = match compute.os_profile.computer_name.is_empty() {
            true => compute.name,
            false => compute.os_profile.computer_name,
        };
        let name = name.to_ascii_lowercase();
        let location = compute.location.to_ascii_lowercase();
        let id = ids::with_small_group(&compute.resource_id);
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{id}"));
        instance.zone = Some(match (compute.zone.as_str(), compute.platform_fault_domain.as_str()) {
            ("", "") => "0".to_owned(),
            ("", domain) => domain.to_owned(),
            (zone, _) => format!("{location}-{zone}"),
        });
        instance.region = Some(location);
        instance.instance_type = Some(compute.vm_size).filter(|size| !size.is_empty());
        instance.addresses = addresses(&network);
        instance
            .addresses
            .push(Address::new(AddressKind::Hostname, name.clone()));
        Ok(MachineLocation::new(name, instance))
    }
}

fn addresses(network: &Network) -> Vec<Address> {
    let families = network
        .interface
        .iter()
        .flat_map(|interface| [&interface.ipv4, &interface.ipv6]);
    let each = families.flat_map(|family| &family.ip_address).flat_map(|addresses| {
        let private = ip_address(AddressKind::InternalIp, &addresses.private_ip_address);
        [
            private,
            ip_address(AddressKind::ExternalIp, &addresses.public_ip_address),
        ]
    });
    each.flatten().collect()
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::{Value, json};

    use super::*;

    const URL: &str = "http://169.254.169.254/metadata/instance?api-version=2021-02-01";

    /// The shape of the documented sample answer ("Azure Instance Metadata Service", sample 2), with these fields of `compute`.
    fn located(compute: Value) -> Result<MachineLocation, Failure> {
        let host = FakeHost::new();
        host.config(r#"{"cloud": "AzurePublicCloud", "tenantId": "t", "subscriptionId": "s", "resourceGroup": "rg", "location": "westus", "aadClientId": "c"}"#);
        host.grants("http://169.254.169.254", &["GET"]);
        let network = json!({"interface": [{
            "ipv4": {"ipAddress": [{"privateIpAddress": "10.144.133.132", "publicIpAddress": ""}], "subnet": [{"address": "10.144.133.128", "prefix": "26"}]},
            "ipv6": {"ipAddress": []}, "macAddress": "0011AAFFBB22"
        }]});
        host.expect("GET", URL)
            .with_header("metadata", "true")
            .answers(200, json!({"compute": compute, "network": network}));
        host.locate::<Azure>("whatever")
    }

    #[test]
    fn machine_is_located_without_a_token() {
        let id = "/subscriptions/s/resourceGroups/MACRO-test/providers/Microsoft.Compute/virtualMachines/ExampleVM";
        let found = located(json!({
            "azEnvironment": "AzurePublicCloud", "location": "westus", "name": "ExampleVM", "osProfile": {"adminUsername": "admin", "computerName": "ExampleVM"},
            "platformFaultDomain": "36", "resourceId": id, "vmSize": "Standard_A3", "zone": "1", "tagsList": []
        }))
        .unwrap();
        assert_eq!(found.node, "examplevm");
        let expected =
            "azure:///subscriptions/s/resourceGroups/macro-test/providers/Microsoft.Compute/virtualMachines/ExampleVM";
        assert_eq!(found.instance.provider_id, expected);
        assert_eq!(
            (found.instance.zone.as_deref(), found.instance.region.as_deref()),
            (Some("westus-1"), Some("westus"))
        );
        let addresses: Vec<_> = found.instance.addresses.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(addresses, ["10.144.133.132", "examplevm"]);
    }

    #[test]
    fn fault_domain_stands_for_a_zone_that_lacks() {
        let found = located(
            json!({"location": "WestUS", "name": "a", "platformFaultDomain": "2", "resourceId": "/subscriptions/s/x"}),
        )
        .unwrap();
        assert_eq!(
            (found.instance.zone.as_deref(), found.instance.region.as_deref()),
            (Some("2"), Some("westus"))
        );
        assert!(located(json!({"location": "westus"})).is_err());
    }
}
