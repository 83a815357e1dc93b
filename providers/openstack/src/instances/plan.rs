//! How to request each Node's server from Nova, and what a server means for its Node. Pure.
//!
//! A Node with a provider id is looked up by that id and by nothing else: only then can the answer be "absent, by id". A Node without one
//! is searched by its name, as the kubelet has it.

use cloudwit_guest_sdk::lookup::Key;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;

use crate::PROVIDER_ID_PREFIX;
use crate::instances::servers::Server;

/// So many servers are requested one by one, whatever the project's size. Nova has no filter that takes several ids, and on MySQL it escapes the `|`
/// of a pattern of names (`_safe_regex_mysql`).
const FEW: usize = 3;

/// Which of the cloud's hosts a Node is on; the label of upstream's provider.
const HOST_LABEL: &str = "topology.openstack.org/host-id";

/// How the server of this Node is found. The forms of provider ids are upstream's: `openstack:///ID`, `openstack://REGION/ID`, and both without what is
/// before the slashes.
pub fn key<'n>(node: &'n NodeRef, region: Option<&str>) -> Result<Key<'n>, Failure> {
    let Some(provider_id) = node.provider_id.as_deref().filter(|id| !id.is_empty()) else {
        return Ok(Key::Name(&node.name));
    };
    let rest = match provider_id
        .split_once(':')
        .is_some_and(|(_, rest)| rest.starts_with("//"))
    {
        true => provider_id.strip_prefix(PROVIDER_ID_PREFIX),
        false => Some(provider_id),
    };
    let parts = rest.and_then(|rest| rest.split_once('/'));
    let wrong = |why: &[&str]| Err(Failure::invalid(format!("provider id {provider_id}{}", why.concat())));
    match parts {
        Some((of, id)) if !id.is_empty() && !id.contains('/') => match region {
            _ if of.is_empty() => Ok(Key::Id(id)),
            Some(region) if region == of => Ok(Key::Id(id)),
            region => wrong(&[
                " is of region ",
                of,
                ", and the region of [Global] is ",
                region.unwrap_or("not set"),
            ]),
        },
        _ => wrong(&[" is none of OpenStack's; they look like openstack:///ID or openstack://REGION/ID"]),
    }
}

/// Whether so many servers are requested one by one: when that takes fewer requests than a listing of the project's servers, which has so
/// many pages; none when that is not known.
pub fn is_few(requests: usize, pages: Option<usize>) -> bool {
    requests <= FEW || pages.is_some_and(|pages| requests < pages)
}

/// Whether a server in this status does not run. Upstream has only `SHUTOFF`; in the others its volumes are attached and nothing runs, too.
pub fn is_stopped(status: &str) -> bool {
    matches!(
        status,
        "SHUTOFF" | "SUSPENDED" | "PAUSED" | "SHELVED" | "SHELVED_OFFLOADED" | "SOFT_DELETED"
    )
}

/// The name or, where it is no value for a label, the id of a server's flavor. `flavors` are names and ids.
pub fn instance_type(server: &Server, flavors: &[(String, String)]) -> Option<String> {
    if is_label(&server.flavor_name) {
        return Some(server.flavor_name.clone());
    }
    let flavor = flavors
        .iter()
        .find(|(name, id)| *name == server.flavor_name || *id == server.flavor_id);
    let (name, id) = flavor.map_or(("", server.flavor_id.as_str()), |(name, id)| (name, id));
    [name, id].into_iter().find(|text| is_label(text)).map(String::from)
}

/// Whether the flavors have to be requested.
pub fn needs_flavors(server: &Server) -> bool {
    !is_label(&server.flavor_name)
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && label_value(text) == text
}

/// What is reported to the controller of a server, except its addresses.
pub fn instance(server: &Server, provider_id: String, region: Option<&str>, flavors: &[(String, String)]) -> Instance {
    let mut instance = Instance::new(provider_id);
    instance.instance_type = instance_type(server, flavors);
    instance.zone = Some(label_value(&server.zone)).filter(|zone| !zone.is_empty());
    instance.region = region.map(String::from);
    let host = label_value(&server.host_id);
    if !host.is_empty() {
        instance.labels.push(Pair::new(HOST_LABEL, host));
    }
    instance
}

#[cfg(test)]
mod tests;
