//! A host as Rancher returns it, and what it means for its Node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use crate::PROVIDER_ID_PREFIX;

/// Labels that Rancher 1.6 sets on hosts of clouds that it supports, and an administrator on others.
const ZONE: (&str, &str) = ("io.rancher.host.zone", "FailureDomain1");
/// Likewise. The second of each is what upstream's controller reports for every host.
const REGION: (&str, &str) = ("io.rancher.host.region", "Region1");

/// Upstream's controller reports this for every host.
const TYPE: &str = "rancher";

/// What is read of a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Host {
    /// The id in provider ids.
    pub uuid: String,
    /// What the machine calls itself; the name of its Node.
    pub hostname: Option<String>,
    /// `active` and so on.
    pub state: String,
    /// That of the agent on the machine, where it differs: `disconnected`.
    pub agent_state: Option<String>,
    /// Labels.
    pub labels: Option<BTreeMap<String, Option<String>>>,
    /// The address that the agent reported first.
    pub agent_ip_address: Option<String>,
    /// All addresses, which a list has where they are requested.
    pub ip_addresses: Option<Vec<Ip>>,
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Ip {
    address: Option<String>,
    #[serde(default)]
    state: Option<String>,
}

impl Host {
    /// Whether Rancher has removed it.
    pub fn is_gone(&self) -> bool {
        matches!(self.state.as_str(), "removed" | "purging" | "purged")
    }

    /// Takes the addresses of the same host from the next page: pages are cut by rows of hosts with addresses.
    pub fn join(&mut self, other: Self) {
        self.ip_addresses
            .get_or_insert_default()
            .extend(other.ip_addresses.unwrap_or_default());
    }

    /// Whether the Node of this name is on it: in whatever case, and without the domain where only one of them has one, as upstream's controller has it.
    pub fn is_of(&self, node: &str) -> bool {
        let Some(host) = self.hostname.as_deref().filter(|name| !name.is_empty()) else {
            return false;
        };
        // The parts of an address are no domains.
        let is_ip = |name: &str| name.parse::<IpAddr>().is_ok();
        match (host.split_once('.'), node.split_once('.')) {
            _ if is_ip(host) || is_ip(node) => host == node,
            (Some((host, _)), None) => host.eq_ignore_ascii_case(node),
            (None, Some((node, _))) => host.eq_ignore_ascii_case(node),
            _ => host.eq_ignore_ascii_case(node),
        }
    }

    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` while a host that runs has no address.
    pub fn existing(&self) -> Result<Existing, Failure> {
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.uuid));
        instance.instance_type = Some(TYPE.to_owned());
        instance.zone = Some(self.place(ZONE));
        instance.region = Some(self.place(REGION));
        instance.addresses = self.addresses();
        let is_away = self.state == "inactive" || self.agent_state.as_deref() == Some("disconnected");
        if is_away {
            return Ok(Existing::Stopped(instance));
        }
        let is_reached = |address: &Address| address.kind == AddressKind::InternalIp;
        match instance.addresses.iter().any(is_reached) {
            true => Ok(Existing::Running(instance)),
            false => Err(Failure::unavailable(format!(
                "the host {} ({}, {}) has no address yet",
                self.hostname.as_deref().unwrap_or_default(),
                self.uuid,
                self.state
            ))),
        }
    }

    fn place(&self, (label, otherwise): (&str, &str)) -> String {
        let value = self.labels.as_ref().and_then(|labels| labels.get(label)?.as_deref());
        let value = value.map(label_value).filter(|value| !value.is_empty());
        value.unwrap_or_else(|| otherwise.to_owned())
    }

    /// Each as external and internal one, as upstream's controller has it.
    fn addresses(&self) -> Vec<Address> {
        let all = self.ip_addresses.iter().flatten();
        let here = all.filter(|ip| !ip.state.as_deref().is_some_and(|state| state.starts_with("remov")));
        let mut ips: Vec<IpAddr> = Vec::new();
        for ip in here.filter_map(|ip| ip.address.as_deref()?.parse().ok()) {
            if !ips.contains(&ip) {
                ips.push(ip);
            }
        }
        if ips.is_empty() {
            ips.extend(
                self.agent_ip_address
                    .as_deref()
                    .and_then(|text| text.parse::<IpAddr>().ok()),
            );
        }
        let kinds = [AddressKind::ExternalIp, AddressKind::InternalIp];
        let both = |ip: &IpAddr| kinds.map(|kind| Address::new(kind, ip.to_string()));
        let mut addresses: Vec<Address> = ips.iter().flat_map(both).collect();
        let may_have = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let name = self
            .hostname
            .as_deref()
            .filter(|name| !name.is_empty() && name.bytes().all(may_have));
        addresses.extend(name.map(|name| Address::new(AddressKind::Hostname, name)));
        addresses
    }
}
