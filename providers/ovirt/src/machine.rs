//! A machine as the engine returns it, and what it means for its Node.

use std::net::IpAddr;

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::PROVIDER_ID_PREFIX;
use crate::zones::Place;

/// What is read of a virtual machine. In JSON all numbers are texts, and a list is an object around one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// UUID.
    pub id: String,
    /// Name in the engine.
    pub name: String,
    /// The name that the guest agent reports; that of its Node.
    pub fqdn: Option<String>,
    /// `up`, `down` and so on.
    pub status: String,
    /// Cores.
    pub cpu: Cpu,
    /// Bytes.
    pub memory: Value,
    /// Where it is.
    pub cluster: Link,
    /// Interfaces, with what the guest agent reports of each.
    pub nics: Nics,
    /// Affinity labels.
    pub affinity_labels: Labels,
}

/// Something that is only named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Link {
    /// UUID.
    pub id: String,
    /// Name, where it is returned.
    pub name: String,
}

/// The virtual CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cpu {
    topology: Topology,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Topology {
    cores: Value,
    sockets: Value,
    threads: Value,
}

/// Interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Nics {
    nic: Vec<Nic>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Nic {
    reported_devices: Devices,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Devices {
    reported_device: Vec<Device>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Device {
    ips: Ips,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Ips {
    ip: Vec<Ip>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Ip {
    address: String,
}

/// Affinity labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Labels {
    /// Each.
    pub affinity_label: Vec<Link>,
}

impl Machine {
    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` while a machine that runs has no address.
    pub fn existing(&self, place: &Place) -> Result<Existing, Failure> {
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.id));
        instance.instance_type = self.instance_type();
        instance.zone.clone_from(&place.zone);
        instance.region.clone_from(&place.region);
        let fqdn = self.fqdn.iter().filter(|fqdn| !fqdn.is_empty());
        let ips = self.ips();
        let has_ip = !ips.is_empty();
        instance.addresses = ips
            .iter()
            .map(|ip| Address::new(AddressKind::InternalIp, ip.to_string()))
            .chain(fqdn.map(|fqdn| Address::new(AddressKind::Hostname, fqdn)))
            .collect();
        match self.status.as_str() {
            "down" | "suspended" => Ok(Existing::Stopped(instance)),
            _ if has_ip => Ok(Existing::Running(instance)),
            status => Err(Failure::unavailable(format!(
                "the guest agent of the virtual machine {} ({}, {status}) reports no address",
                self.name, self.id
            ))),
        }
    }

    /// `ovirt-4c-16g`: oVirt's own instance types are templates that a machine need not have.
    fn instance_type(&self) -> Option<String> {
        let Topology {
            cores,
            sockets,
            threads,
        } = &self.cpu.topology;
        let cores = number(cores)? * number(sockets).unwrap_or(1) * number(threads).unwrap_or(1);
        let gib = number(&self.memory)?.div_ceil(1 << 30);
        Some(format!("ovirt-{cores}c-{gib}g"))
    }

    /// IPv4 first; what is good on the machine or its link alone is left out.
    fn ips(&self) -> Vec<IpAddr> {
        let nics = self.nics.nic.iter();
        let reported = nics.flat_map(|nic| &nic.reported_devices.reported_device);
        let texts = reported.flat_map(|device| &device.ips.ip);
        let mut ips: Vec<IpAddr> = Vec::new();
        for ip in texts.filter_map(|ip| ip.address.parse().ok()) {
            let is_local = match ip {
                IpAddr::V4(ip) => ip.is_loopback() || ip.is_link_local(),
                IpAddr::V6(ip) => ip.is_loopback() || ip.is_unicast_link_local(),
            };
            if !is_local && !ips.contains(&ip) {
                ips.push(ip);
            }
        }
        ips.sort_by_key(IpAddr::is_ipv6);
        ips
    }
}

/// A number, or a text that is one. No machine has so many of anything that a product overflows.
fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    };
    number.filter(|number| (1..1 << 60).contains(number))
}
