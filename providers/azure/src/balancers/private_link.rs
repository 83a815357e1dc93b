//! Private link services: one at the frontend of a Service, for private endpoints in other networks. It goes before the frontend does.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Map, Value, json};

use super::annotations::Link;
use super::json::{etag, id, items, merge, name, reference, text};
use super::wanted::CLUSTER;
use super::work::Change;
use crate::arm::ids;

/// Tag: the Service whose annotations describe it. Other Services at the frontend share it.
const OWNER: &str = "k8s-azure-owner-service";

const FRONTS: &str = "loadBalancerFrontendIpConfigurations";
const ADDRESSES: &str = "ipConfigurations";

/// Longest name of a configuration.
const NAME: usize = 80;

/// Where it is to be, and whose.
pub struct Site<'a> {
    /// Path of the private link services.
    pub path: &'a str,
    /// Id of the frontend.
    pub front: &'a str,
    /// Id of the subnet of its addresses.
    pub subnet: &'a str,
    pub location: &'a str,
    /// The Service, as tags name it.
    pub owner: &'a str,
    pub cluster: &'a str,
    pub tags: Map<String, Value>,
}

fn tag<'a>(link: &'a Value, key: &str) -> &'a str {
    link.get("tags")
        .and_then(|tags| tags.get(key))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The one at a frontend.
fn at<'a>(all: &'a [Value], front: &str) -> Option<&'a Value> {
    let is_at = |link: &&Value| {
        items(link, FRONTS)
            .iter()
            .any(|one| id(one).eq_ignore_ascii_case(front))
    };
    all.iter().find(is_at)
}

/// # Errors
/// `failed-precondition` where it was not made for this cluster.
fn check_cluster(link: &Value, cluster: &str) -> Result<(), Failure> {
    if tag(link, CLUSTER).trim_ascii().eq_ignore_ascii_case(cluster) {
        return Ok(());
    }
    let text = format!(
        "the private link service {} at the frontend is not of this cluster; delete it",
        name(link)
    );
    Err(Failure::failed_precondition(text))
}

/// The change towards the one that a Service requests; none where it is right, or another Service's at the same frontend.
///
/// # Errors
/// `failed-precondition` where one that cannot become it is at the frontend.
pub fn next(all: &[Value], link: &Link<'_>, site: &Site<'_>) -> Result<Option<Change>, Failure> {
    let there = at(all, site.front);
    if let Some(there) = there {
        check_cluster(there, site.cluster)?;
        let owner = tag(there, OWNER);
        if !owner.eq_ignore_ascii_case(site.owner) {
            let text = format!(
                "the private link service {} belongs to the Service {owner}; remove its annotations from this one",
                name(there)
            );
            return if link.is_specific {
                Err(Failure::failed_precondition(text))
            } else {
                Ok(None)
            };
        }
        if let Some(wanted) = link.name.filter(|wanted| !wanted.eq_ignore_ascii_case(name(there))) {
            let text = format!(
                "the private link service {} cannot be renamed to {wanted}; write its name, or delete it",
                name(there)
            );
            return Err(Failure::failed_precondition(text));
        }
    }
    let link_name = match (there, link.name) {
        (Some(there), _) => name(there).to_owned(),
        (None, Some(wanted)) => wanted.to_owned(),
        (None, None) => format!("pls-{}", ids::name(site.front)),
    };
    let mut body = there
        .cloned()
        .unwrap_or_else(|| json!({ "location": site.location, "properties": { FRONTS: [{ "id": site.front }] } }));
    let mut tags = site.tags.clone();
    tags.insert(OWNER.into(), site.owner.into());
    tags.insert(CLUSTER.into(), site.cluster.into());
    let is_failed = text(&body, "provisioningState").eq_ignore_ascii_case("Failed");
    let mut changed = merge(&mut body, &json!({ "tags": tags })) | is_failed;
    let now = body.pointer("/properties/enableProxyProtocol").and_then(Value::as_bool);
    if now.unwrap_or_default() != link.proxy_protocol {
        changed |= merge(
            &mut body,
            &json!({ "properties": { "enableProxyProtocol": link.proxy_protocol } }),
        );
    }
    for (pointer, wanted, properties) in [
        ("/properties/fqdns", &link.fqdns, json!({ "fqdns": link.fqdns })),
        (
            "/properties/visibility/subscriptions",
            &link.visibility,
            json!({ "visibility": { "subscriptions": link.visibility } }),
        ),
        (
            "/properties/autoApproval/subscriptions",
            &link.auto_approval,
            json!({ "autoApproval": { "subscriptions": link.auto_approval } }),
        ),
    ] {
        if !has_same(body.pointer(pointer), wanted) {
            changed |= merge(&mut body, &json!({ "properties": properties }));
        }
    }
    let wanted = addresses(link, &link_name, site.subnet);
    if shown(items(&body, ADDRESSES)) != shown(&wanted) {
        body["properties"][ADDRESSES] = wanted.into();
        changed = true;
    }
    Ok(changed.then(|| match there {
        Some(_) => Change::put(body),
        None => Change::Put {
            path: format!("{}/{link_name}", site.path),
            body,
            etag: None,
        },
    }))
}

/// Whether a list has these texts, in whatever order.
fn has_same(list: Option<&Value>, wanted: &[&str]) -> bool {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut now: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    let mut wanted = wanted.to_vec();
    now.sort_unstable();
    wanted.sort_unstable();
    now == wanted
}

/// Its addresses: those that are fixed, and others up to the number; one of them is primary.
fn addresses(link: &Link<'_>, link_name: &str, subnet: &str) -> Vec<Value> {
    let one = |at: usize| {
        let ip = link.ips.get(at);
        let suffix = match ip {
            Some(ip) => format!("-static-{ip}"),
            None => format!("-dynamic-{}", at - link.ips.len()),
        };
        let start = format!("{}-{link_name}", ids::name(subnet));
        let start: String = start.chars().take(NAME.saturating_sub(suffix.len())).collect();
        let mut properties = json!({
            "privateIPAllocationMethod": if ip.is_some() { "Static" } else { "Dynamic" }, "privateIPAddressVersion": "IPv4",
            "subnet": { "id": subnet }, "primary": at == 0,
        });
        if let Some(ip) = ip {
            properties["privateIPAddress"] = (*ip).into();
        }
        json!({ "name": format!("{start}{suffix}"), "properties": properties })
    };
    (0..link.count).map(one).collect()
}

/// What of its addresses has to be as desired, in order: subnet, fixed address, whether it is primary.
fn shown(addresses: &[Value]) -> Vec<(String, &str, bool)> {
    let one = |item| {
        let is_static = text(item, "privateIPAllocationMethod").eq_ignore_ascii_case("Static");
        let ip = if is_static { text(item, "privateIPAddress") } else { "" };
        let primary = item.pointer("/properties/primary").and_then(Value::as_bool);
        (
            reference(item, "subnet").to_ascii_lowercase(),
            ip,
            primary.unwrap_or_default(),
        )
    };
    let mut shown: Vec<_> = addresses.iter().map(one).collect();
    shown.sort_unstable();
    shown
}

/// The change of a subnet that lets private link services have addresses of it; none where they may.
pub fn open(subnet: &Value) -> Option<Change> {
    const POLICIES: &str = "privateLinkServiceNetworkPolicies";
    let mut body = subnet.clone();
    merge(&mut body, &json!({ "properties": { POLICIES: "Disabled" } })).then(|| Change::put(body))
}

/// The next change towards frontends without private link services: the endpoints that are connected to one, then itself.
///
/// # Errors
/// `failed-precondition` where one was not made for this cluster.
pub fn leave(all: &[Value], fronts: &[&str], cluster: &str) -> Result<Option<Change>, Failure> {
    let Some(found) = fronts.iter().find_map(|front| at(all, front)) else {
        return Ok(None);
    };
    check_cluster(found, cluster)?;
    let first = items(found, "privateEndpointConnections").first().unwrap_or(found);
    Ok(Some(Change::Delete {
        path: id(first).into(),
        etag: etag(first).into(),
    }))
}

#[cfg(test)]
mod tests;
