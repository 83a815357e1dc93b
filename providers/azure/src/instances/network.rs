//! Addresses of machines: their interfaces, and the public addresses behind these.

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;
use serde_json::Value;

use super::machine::Machine;
use crate::Azure;
use crate::arm::{NETWORK, SCALE_SET_NETWORK, ids};

/// Up to so many interfaces or public addresses of one collection are requested one by one.
const FEW: usize = 2;

/// What was found, by ids in small letters.
#[derive(Default)]
pub struct Network {
    interfaces: BTreeMap<String, Interface>,
    public: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Interface {
    id: String,
    properties: Properties,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Properties {
    ip_configurations: Vec<IpConfiguration>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct IpConfiguration {
    properties: IpProperties,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct IpProperties {
    primary: Option<bool>,
    #[serde(rename = "privateIPAddress")]
    private: Option<String>,
    #[serde(rename = "privateIPAddressVersion")]
    version: Option<String>,
    #[serde(rename = "publicIPAddress")]
    public: Option<Reference>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reference {
    id: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct PublicIp {
    id: String,
    properties: PublicProperties,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct PublicProperties {
    ip_address: Option<String>,
}

impl Azure {
    /// All that is needed for the addresses of these machines.
    pub(super) fn network(&self, machines: &[&Machine]) -> Result<Network, Failure> {
        let mut network = Network::default();
        let interfaces = machines.iter().filter_map(|machine| machine.interfaces.first());
        for value in self.all_of(interfaces.map(String::as_str))? {
            let interface: Interface = read(value, "a network interface")?;
            network.interfaces.insert(ids::folded(&interface.id), interface);
        }
        let configurations = network
            .interfaces
            .values()
            .flat_map(|interface| &interface.properties.ip_configurations);
        let public = configurations.filter_map(|configuration| configuration.properties.public.as_ref());
        let public: Vec<&str> = public.map(|reference| reference.id.as_str()).collect();
        for value in self.all_of(public.into_iter())? {
            let address: PublicIp = read(value, "a public IP address")?;
            // One that is not assigned yet has none.
            if let Some(ip) = address.properties.ip_address {
                network.public.insert(ids::folded(&address.id), ip);
            }
        }
        Ok(network)
    }

    /// These resources: few one by one, many in lists of their collections. What does not exist is left out.
    fn all_of<'a>(&self, wanted: impl Iterator<Item = &'a str>) -> Result<Vec<Value>, Failure> {
        let mut collections: BTreeMap<(String, &str), BTreeMap<String, &str>> = BTreeMap::new();
        for id in wanted {
            collections
                .entry(collection(id))
                .or_default()
                .insert(ids::folded(id), id);
        }
        let mut all = Vec::new();
        for ((list, version), wanted) in collections {
            if wanted.len() <= FEW {
                for id in wanted.values() {
                    all.extend(self.arm.find(id, version, &[])?);
                }
                continue;
            }
            let mut seen = BTreeSet::new();
            self.arm.list(&list, version, &[], |value| {
                let id = value
                    .get("id")
                    .and_then(Value::as_str)
                    .map(ids::folded)
                    .unwrap_or_default();
                if wanted.contains_key(&id) && seen.insert(id) {
                    all.push(value);
                }
                Ok(())
            })?;
        }
        Ok(all)
    }
}

/// The list that has the resource of this id, and the version of its API: those of a scale set have one list for all its machines.
fn collection(id: &str) -> (String, &'static str) {
    let folded = ids::folded(id);
    let kind = if folded.contains("/publicipaddresses/") {
        "publicipaddresses"
    } else {
        "networkInterfaces"
    };
    match folded.find("/virtualmachines/") {
        Some(end) if folded.contains("/virtualmachinescalesets/") => {
            let set = folded.get(..end).unwrap_or_default();
            (format!("{set}/{kind}"), SCALE_SET_NETWORK)
        }
        _ => {
            let end = folded.rfind('/').unwrap_or(folded.len());
            (folded.get(..end).unwrap_or_default().to_owned(), NETWORK)
        }
    }
}

fn read<T: for<'de> Deserialize<'de>>(value: Value, what: &str) -> Result<T, Failure> {
    serde_json::from_value(value)
        .map_err(|mistake| Failure::other(format!("the cloud's description of {what} is odd: {mistake}")))
}

impl Network {
    /// Addresses of a machine in upstream's order: internal, host name, external; then those of the other family, which upstream leaves out.
    ///
    /// # Errors
    /// `failed-precondition` where its interface has no address yet: a Node without one would be of no use.
    pub fn addresses(&self, machine: &Machine, node: &str) -> Result<Vec<Address>, Failure> {
        let id = machine.interfaces.first().map(String::as_str).unwrap_or_default();
        let interface = self.interfaces.get(&ids::folded(id));
        let all = interface.map_or(&[][..], |interface| &interface.properties.ip_configurations);
        let mut parts: Vec<&IpProperties> = all.iter().map(|configuration| &configuration.properties).collect();
        parts.sort_by_key(|part| part.primary != Some(true));
        let first = parts.first();
        let is_v6 = |part: &IpProperties| {
            part.version
                .as_deref()
                .is_some_and(|version| version.eq_ignore_ascii_case("IPv6"))
        };
        let of = |part: &IpProperties| {
            let internal = part
                .private
                .as_deref()
                .and_then(|ip| ip_address(AddressKind::InternalIp, ip));
            let public = part
                .public
                .as_ref()
                .and_then(|reference| self.public.get(&ids::folded(&reference.id)));
            let external = public.and_then(|ip| ip_address(AddressKind::ExternalIp, ip));
            (internal, external)
        };
        let Some((Some(internal), external)) = first.map(|part| of(part)) else {
            return Err(Failure::failed_precondition(format!(
                "the virtual machine {} has no address yet",
                machine.id
            )));
        };
        let mut addresses = vec![internal, Address::new(AddressKind::Hostname, node)];
        addresses.extend(external);
        let other_family = parts
            .iter()
            .skip(1)
            .find(|part| first.is_some_and(|first| is_v6(first) != is_v6(part)));
        if let Some((internal, external)) = other_family.map(|part| of(part)) {
            addresses.extend(internal.into_iter().chain(external));
        }
        Ok(addresses)
    }
}
