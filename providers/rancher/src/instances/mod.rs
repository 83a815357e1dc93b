//! Machines behind Nodes: by id, and by the names of the environment's hosts.

pub mod host;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::lookup::{Existing, Key, Listing};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::{id_after, is_plain_id};
use serde_json::Value;

use crate::api::HOSTS;
use crate::{PROVIDER_ID_PREFIX, Rancher};
use host::Host;

/// Requests the addresses of hosts with them.
const WITH_ADDRESSES: (&str, &str) = ("include", "ipAddresses");

impl Listing for Rancher {
    type Machine = Host;
    const NOTHING: &'static str = "no host at all is seen; is cattle-url that of the Nodes' environment?";

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        let example = "rancher://0b3a6a5c-5f0e-4c3e-9d5f-1a2b3c4d5e6f";
        let read = |id| id_after(PROVIDER_ID_PREFIX, id).filter(|id| is_plain_id(id));
        Key::read(node, read, "Rancher's", example)
    }

    /// The environment's hosts, each once. One that cannot be read is left out.
    fn each(&self, each: &mut dyn FnMut(Host)) -> Result<(), Failure> {
        let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
        self.api.each(HOSTS, &[WITH_ADDRESSES], |host: Host| {
            if host.is_gone() {
                return;
            }
            match hosts.get_mut(&host.uuid) {
                Some(known) => known.join(host),
                None => drop(hosts.insert(host.uuid.clone(), host)),
            }
        })?;
        hosts.into_values().for_each(each);
        Ok(())
    }

    /// The host of this id. None only where Rancher's list of hosts with exactly this id is empty, or has it as removed.
    fn one(&self, id: &str) -> Result<Option<Host>, Failure> {
        let found: Vec<Value> = self.api.list(HOSTS, &[("uuid", id), WITH_ADDRESSES])?;
        let mut own: Option<Host> = None;
        for item in found {
            let host: Host = serde_json::from_value(item)
                .map_err(|mistake| Failure::other(format!("the host {id} cannot be read: {mistake}")))?;
            if !host.uuid.eq_ignore_ascii_case(id) {
                let other = &host.uuid;
                return Err(Failure::other(format!(
                    "the host {id} was asked for, and the answer has {other}"
                )));
            }
            match &mut own {
                Some(own) => own.join(host),
                None => own = Some(host),
            }
        }
        Ok(own.filter(|host| !host.is_gone()))
    }

    fn sees_any(&self) -> Result<bool, Failure> {
        Ok(self.api.first(HOSTS)?.is_some())
    }

    fn id(host: &Host) -> &str {
        &host.uuid
    }

    fn is_called(&self, host: &Host, name: &str) -> Result<bool, Failure> {
        Ok(host.is_of(name))
    }

    fn label(&self, host: &Host) -> String {
        format!("{} ({})", host.uuid, host.hostname.as_deref().unwrap_or_default())
    }

    fn existing(&self, host: &Host) -> Result<Existing, Failure> {
        host.existing()
    }
}

#[cfg(test)]
mod tests;
