//! A machine as Compute Engine returns it, and what a Node gets of it.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::{PROVIDER_ID_PREFIX, links};

/// Fields that are requested. A page of 500 machines is then a third as long.
pub(super) const FIELDS: &str = "name,zone,status,machineType,tags/items,\
     networkInterfaces(networkIP,ipv6Address,accessConfigs/natIP,ipv6AccessConfigs/externalIpv6)";

/// A machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Machine {
    pub name: String,
    /// A link.
    pub zone: String,
    pub status: String,
    machine_type: String,
    pub tags: Tags,
    network_interfaces: Vec<Interface>,
}

/// Network tags.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Tags {
    pub items: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Interface {
    #[serde(rename = "networkIP")]
    network_ip: String,
    ipv6_address: String,
    access_configs: Vec<AccessConfig>,
    ipv6_access_configs: Vec<AccessConfig>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AccessConfig {
    #[serde(rename = "natIP")]
    nat_ip: String,
    external_ipv6: String,
}

impl Machine {
    /// Its zone's name.
    pub fn zone(&self) -> &str {
        links::name(&self.zone)
    }

    /// What a Node gets. The provider id counts for Nodes without one.
    pub fn existing(&self, project: &str, ipv6_first: bool) -> Existing {
        let zone = self.zone();
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{project}/{zone}/{}", self.name));
        let kind = links::name(&self.machine_type);
        instance.instance_type = (!kind.is_empty()).then(|| label_value(kind));
        instance.region = links::region_of(zone).map(str::to_owned);
        instance.zone = (!zone.is_empty()).then(|| zone.to_owned());
        instance.addresses = self.addresses(ipv6_first);
        match self.status.as_str() {
            // STOPPING, SUSPENDING and REPAIRING end in one of these, or run again.
            "TERMINATED" | "STOPPED" | "SUSPENDED" => Existing::Stopped(instance),
            _ => Existing::Running(instance),
        }
    }

    /// As upstream has them: interface by interface, then those of the first family to the front.
    fn addresses(&self, ipv6_first: bool) -> Vec<Address> {
        let mut all = Vec::new();
        for interface in &self.network_interfaces {
            all.extend(ip_address(AddressKind::InternalIp, &interface.network_ip));
            let external = interface.access_configs.iter();
            all.extend(external.filter_map(|config| ip_address(AddressKind::ExternalIp, &config.nat_ip)));
            // An external IPv6 address is one of the machine itself: upstream reports it as internal too.
            let external = interface
                .ipv6_access_configs
                .iter()
                .map(|config| config.external_ipv6.as_str());
            let ipv6 = std::iter::once(interface.ipv6_address.as_str()).chain(external);
            all.extend(ipv6.filter_map(|ip| ip_address(AddressKind::InternalIp, ip)).take(1));
        }
        let (first, rest): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|address| address.value.contains(':') == ipv6_first);
        [first, rest].concat()
    }
}
