//! Servers behind Nodes, and what a server means for its Node.

use cloudwit_guest_sdk::lookup::{Existing, Key, Listing};
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, ip_address, is_plain_id};

use crate::config::given;
use crate::servers::Server;
use crate::{PROVIDER_ID_PREFIX, Rackspace};

impl Listing for Rackspace {
    type Machine = Server;

    const NOTHING: &'static str = "no server at all is seen; is this the right account and region?";

    const HAS_NAME_FILTER: bool = true;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let example = "rackspace://0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f";
        Key::read(node, server_id, "Rackspace's", example)
    }

    fn each(&self, each: &mut dyn FnMut(Server)) -> Result<(), Failure> {
        self.servers(None, each)
    }

    fn named(&self, name: &str, each: &mut dyn FnMut(Server)) -> Result<(), Failure> {
        self.servers(Some(name), each)
    }

    fn one(&self, id: &str) -> Result<Option<Server>, Failure> {
        self.server(id)
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        self.any_server()
    }

    fn id(server: &Server) -> &str {
        &server.id
    }

    fn is_called(&self, server: &Server, name: &str) -> Result<bool, Failure> {
        Ok(server.name == name)
    }

    fn existing(&self, server: &Server) -> Result<Existing, Failure> {
        Ok(existing(server, given(&self.config.global.region)))
    }
}

/// The server in a provider id: the in-tree provider wrote `rackspace://ID`, and `rackspace:///ID` where the kubelet did.
fn server_id(provider_id: &str) -> Option<&str> {
    let id = id_after(PROVIDER_ID_PREFIX, provider_id)?;
    Some(id.strip_prefix('/').unwrap_or(id)).filter(|id| is_plain_id(id))
}

/// What is reported to the controller of a server.
fn existing(server: &Server, region: Option<&str>) -> Existing {
    let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", server.id));
    instance.instance_type = Some(label_value(&server.flavor.id)).filter(|flavor| !flavor.is_empty());
    instance.region = region.map(str::to_ascii_uppercase);
    instance.addresses = addresses(server);
    match server.status.as_str() {
        "SHUTOFF" | "SUSPENDED" | "PAUSED" | "SHELVED" | "SHELVED_OFFLOADED" | "SOFT_DELETED" => {
            Existing::Stopped(instance)
        }
        _ => Existing::Running(instance),
    }
}

/// The host name, ServiceNet and the account's own networks, then the Internet; IPv4 first in each.
fn addresses(server: &Server) -> Vec<Address> {
    let of = |kind: AddressKind, is_meant: &dyn Fn(&str) -> bool| {
        let networks = server.addresses.iter().filter(|(name, _)| is_meant(name));
        let places = networks.flat_map(|(_, places)| places);
        let mut found: Vec<Address> = places.filter_map(|place| ip_address(kind, &place.addr)).collect();
        found.sort_by_key(|address| address.value.contains(':'));
        found
    };
    let mut addresses = vec![Address::new(AddressKind::Hostname, &server.name)];
    addresses.extend(of(AddressKind::InternalIp, &|name| name == "private"));
    addresses.extend(of(AddressKind::InternalIp, &|name| {
        !matches!(name, "private" | "public")
    }));
    addresses.extend(of(AddressKind::ExternalIp, &|name| name == "public"));
    addresses
}

#[cfg(test)]
mod tests;
