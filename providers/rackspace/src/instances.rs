//! Servers behind Nodes, and what a server means for its Node.

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each};
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;

use crate::config::given;
use crate::servers::Server;
use crate::{PROVIDER_ID_PREFIX, Rackspace};

/// So many servers are asked for one by one; more are taken from a listing. Cloud Servers has no filter for several ids.
const FEW: usize = 3;

/// Servers are asked for by id at most so many in a call: more that are not in the listing are no deleted servers but a wrong account or region.
const MOST_MISSING: usize = 100;

impl Machines for Rackspace {
    type Machine = Server;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        match Key::of(node, PROVIDER_ID_PREFIX)? {
            // The in-tree provider wrote `rackspace://ID`, and `rackspace:///ID` where the kubelet did.
            Key::Id(id) => match id.strip_prefix('/').unwrap_or(id) {
                id if is_server_id(id) => Ok(Key::Id(id)),
                _ => Err(Failure::invalid(format!(
                    "the provider id {PROVIDER_ID_PREFIX}{id} is none of Rackspace's; they look like \
                     {PROVIDER_ID_PREFIX}0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f"
                ))),
            },
            name @ Key::Name(_) => Ok(name),
        }
    }

    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        if wanted.ids.len() + wanted.names.len() <= FEW {
            self.by_names(&wanted.names, answers)?;
        } else {
            let servers = self.servers(None, |id, name| {
                answers.wants(Key::Id(id)) || answers.wants(Key::Name(name))
            })?;
            answers.found_all(servers.iter().cloned(), |server| Key::Id(&server.id));
            answers.found_all(servers, |server| Key::Name(&server.name));
        }
        // Absent is only what the cloud denies by its id.
        let missing: Vec<Id<'_>> = wanted
            .ids
            .iter()
            .copied()
            .filter(|id| !answers.has(Key::Id(id.as_str())))
            .collect();
        self.by_ids(&missing, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        ask_each(ids, MOST_MISSING, answers, |id| self.server(id));
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        for name in names {
            // The filter finds parts of names as well.
            let servers = self.servers(Some(name.name), |_, found| found == name.name)?;
            answers.found_all(servers, |server| Key::Name(&server.name));
        }
        Ok(())
    }

    fn label(&self, server: &Server) -> String {
        server.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Server>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let region = given(&self.config.global.region);
        Ok(found.iter().map(|found| Ok(existing(found.machine, region))).collect())
    }
}

/// Whether the cloud could have given this id: a UUID, or another word in a path.
fn is_server_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// What the controller is told of a server.
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
    let of = |kind: AddressKind, networks: &mut dyn Iterator<Item = &crate::servers::Place>| {
        let mut found: Vec<Address> = networks.filter_map(|place| ip_address(kind, &place.addr)).collect();
        found.sort_by_key(|address| address.value.contains(':'));
        found
    };
    let named = |name: &str| server.addresses.get(name).into_iter().flatten();
    let others = server
        .addresses
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "private" | "public"));
    let mut addresses = vec![Address::new(AddressKind::Hostname, &server.name)];
    addresses.extend(of(AddressKind::InternalIp, &mut named("private")));
    addresses.extend(of(AddressKind::InternalIp, &mut others.flat_map(|(_, places)| places)));
    addresses.extend(of(AddressKind::ExternalIp, &mut named("public")));
    addresses
}

#[cfg(test)]
mod tests;
