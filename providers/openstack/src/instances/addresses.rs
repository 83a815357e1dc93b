//! Which addresses a Node gets, in the order of upstream's provider (`pkg/openstack/instances_addresses.go`).
//!
//! The order matters: the first internal address becomes the Node's primary one, and it must not change when a cluster comes from upstream.
//! Pure: the server as Nova has it and its ports as Neutron has them in, addresses out.

use std::net::IpAddr;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use ipnet::IpNet;

use crate::config::{Networking, given};
use crate::instances::ports::Port;
use crate::instances::servers::{Place, Server};

/// `[Networking]`, read.
#[derive(Debug, Default)]
pub struct AddressRules {
    without_ipv6: bool,
    public: Vec<String>,
    internal: Vec<String>,
    order: Vec<IpNet>,
}

impl AddressRules {
    /// Reads the section. Mistakes in the order are reported, where upstream ignores what is no CIDR.
    ///
    /// # Errors
    /// A message with all texts that are no CIDRs.
    pub fn new(networking: &Networking) -> Result<Self, String> {
        let (mut order, mut wrong) = (Vec::new(), Vec::new());
        let texts = given(&networking.address_sort_order).unwrap_or_default().split(',');
        for text in texts.map(str::trim_ascii).filter(|text| !text.is_empty()) {
            match cidr::parse(text) {
                Ok(cidr) => order.push(cidr),
                Err(failure) => wrong.push(failure.message().to_owned()),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        Ok(Self {
            without_ipv6: networking.ipv6_support_disabled,
            public: networking.public_network_name.clone(),
            internal: networking.internal_network_name.clone(),
            order,
        })
    }

    /// The addresses of a server. `ports` are its own, in Neutron's order; `trunk` are the addresses that it has by subports of trunks.
    pub fn addresses(&self, server: &Server, ports: &[&Port], trunk: &[Place]) -> Vec<Address> {
        let mut found = Found::default();
        for ip in ports.iter().filter(|port| port.active).flat_map(|port| &port.ips) {
            self.add_ip(&mut found, AddressKind::InternalIp, ip);
        }
        for ip in [&server.access_ipv4, &server.access_ipv6] {
            self.add_ip(&mut found, AddressKind::ExternalIp, ip);
        }
        if !server.hostname.is_empty() {
            found.add(Address::new(AddressKind::Hostname, server.hostname.as_str()));
        }
        let mut places: Vec<&Place> = server.places.iter().chain(trunk).collect();
        sort_by_key(&mut places, |place| place.network.clone());
        for place in places {
            self.place(&mut found, place);
        }
        let mut addresses = found.0;
        sort_by_key(&mut addresses, |address| self.rank(address));
        addresses
    }

    /// An address in a network of a name. The names win over what was found before.
    fn place(&self, found: &mut Found, place: &Place) {
        let kind = if place.floating {
            AddressKind::ExternalIp
        } else if self.public.contains(&place.network) {
            found.remove(&place.ip);
            AddressKind::ExternalIp
        } else if self.internal.is_empty() || self.internal.contains(&place.network) {
            AddressKind::InternalIp
        } else {
            return found.remove(&place.ip);
        };
        self.add_ip(found, kind, &place.ip);
    }

    fn add_ip(&self, found: &mut Found, kind: AddressKind, text: &str) {
        match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(_)) if self.without_ipv6 => {}
            Ok(ip) => found.add(Address::new(kind, ip.to_string())),
            Err(_) => {}
        }
    }

    /// Position among the CIDRs of the order, and the address itself among those of the same one; what is in none keeps its order.
    fn rank(&self, address: &Address) -> (usize, Option<IpAddr>) {
        let ip: Option<IpAddr> = address.value.parse().ok();
        let position = ip.and_then(|ip| self.order.iter().position(|cidr| cidr.contains(&ip)));
        position.map_or((self.order.len(), None), |position| (position, ip))
    }
}

/// A stable sort for short lists; the standard library's is three kilobytes for each type.
fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 && key(&items[at - 1]) > key(&items[at]) {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Addresses without duplicates.
#[derive(Default)]
struct Found(Vec<Address>);

impl Found {
    fn add(&mut self, address: Address) {
        if !self.0.contains(&address) {
            self.0.push(address);
        }
    }

    fn remove(&mut self, text: &str) {
        let same = |value: &str| match (value.parse::<IpAddr>(), text.parse::<IpAddr>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => value == text,
        };
        self.0.retain(|address| !same(&address.value));
    }
}

#[cfg(test)]
mod tests;
