//! Public addresses: the one of a Service, made or chosen, and those that it does not need any more. Several Services may use one: its tag names them.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Map, Value, json};

use super::Change;
use super::json::{etag, id, merge, name, text};
use super::wanted::{CLUSTER, Front, SERVICES, Wanted};

/// What is to be done for one.
pub enum Address {
    /// It is there: its id and the address.
    There(String, String),
    /// It has to be written before.
    Change(Change),
}

fn tag<'a>(address: &'a Value, key: &str) -> Option<&'a str> {
    address
        .get("tags")
        .and_then(|tags| tags.get(key))
        .and_then(Value::as_str)
}

/// Services that use it; none where it is not made for Services.
fn services(address: &Value) -> Option<Vec<&str>> {
    let text = tag(address, SERVICES)?;
    Some(
        text.split(',')
            .map(str::trim_ascii)
            .filter(|name| !name.is_empty())
            .collect(),
    )
}

/// Whether this cluster made it for this Service, perhaps among others.
fn is_ours(address: &Value, service: &str, cluster: &str) -> bool {
    tag(address, CLUSTER) == Some(cluster) && services(address).is_some_and(|all| all.contains(&service))
}

/// The one for a family of a Service.
///
/// # Errors
/// `failed-precondition` where the one that is requested does not exist or is of the other family; `pending` where it has no address yet.
pub fn of(
    all: &[Value],
    wanted: &Wanted<'_>,
    front: &Front,
    group: &str,
    location: &str,
    tags: &Map<String, Value>,
) -> Result<Address, Failure> {
    let asked = wanted.asked.address_name[usize::from(wanted.fronts.len() > 1 && front.v6)];
    let found = match (asked, front.ip.as_deref()) {
        (Some(asked), _) => Some(
            all.iter()
                .find(|one| name(one).eq_ignore_ascii_case(asked))
                .ok_or_else(|| Failure::failed_precondition(format!("there is no public address {asked}; make it")))?,
        ),
        (None, Some(ip)) => Some(
            all.iter()
                .find(|one| text(one, "ipAddress") == ip)
                .ok_or_else(|| Failure::failed_precondition(format!("there is no public address {ip}; make it")))?,
        ),
        (None, None) => all.iter().find(|one| name(one).eq_ignore_ascii_case(&front.address)),
    };
    let version = if front.v6 { "IPv6" } else { "IPv4" };
    let Some(found) = found else {
        let mut body = json!({
            "location": location, "sku": { "name": "Standard" },
            "properties": { "publicIPAllocationMethod": "Static", "publicIPAddressVersion": version },
            "tags": tags,
        });
        if let Some(prefix) = wanted.asked.prefix[usize::from(wanted.fronts.len() > 1 && front.v6)] {
            body["properties"]["publicIPPrefix"] = json!({ "id": prefix });
        }
        for (key, value) in [(SERVICES, &wanted.tag()), (CLUSTER, &wanted.cluster)] {
            body["tags"][key] = value.as_str().into();
        }
        label(&mut body, wanted);
        return Ok(Address::Change(Change::Put {
            path: format!("{group}/{}", front.address),
            body,
            etag: None,
        }));
    };
    if !matches!(text(found, "publicIPAddressVersion"), "") && text(found, "publicIPAddressVersion") != version {
        let text = format!(
            "the public address {} is not of {version}; choose another one",
            name(found)
        );
        return Err(Failure::failed_precondition(text));
    }
    if let Some(change) = used_by(found, wanted, front) {
        return Ok(Address::Change(change));
    }
    match text(found, "ipAddress") {
        "" => Err(Failure::pending(super::SOON, "", "the public address is being made")),
        ip => Ok(Address::There(id(found).into(), ip.into())),
    }
}

/// The change that makes it name this Service, where it is not the user's own.
fn used_by(found: &Value, wanted: &Wanted<'_>, front: &Front) -> Option<Change> {
    let named = name(found).eq_ignore_ascii_case(&front.address);
    let mut users = match services(found) {
        Some(users) => users,
        None if named => Vec::new(),
        None => return None,
    };
    let mut body = found.clone();
    let own = wanted.tag();
    if !users.contains(&own.as_str()) {
        users.push(&own);
    }
    let mut changed = merge(&mut body, &json!({ "tags": { SERVICES: users.join(",") } }));
    if named {
        changed |= merge(&mut body, &json!({ "tags": { CLUSTER: wanted.cluster } }));
        changed |= label(&mut body, wanted);
    }
    changed.then(|| Change::put(body))
}

fn label(body: &mut Value, wanted: &Wanted<'_>) -> bool {
    let Some(label) = wanted.asked.dns_label else {
        return false;
    };
    merge(
        body,
        &json!({ "properties": { "dnsSettings": { "domainNameLabel": label } } }),
    )
}

/// The addresses themselves of those that name this Service.
pub fn named_by<'a>(all: &'a [Value], service: &str, cluster: &str) -> Vec<&'a str> {
    let ours = all.iter().filter(|one| is_ours(one, service, cluster));
    ours.map(|one| text(one, "ipAddress"))
        .filter(|ip| !ip.is_empty())
        .collect()
}

/// The first change towards a state in which only these ids name this Service, and of which: what no Service uses is deleted.
pub fn unused<'a>(all: &'a [Value], service: &str, cluster: &str, kept: &[String]) -> Option<(Change, &'a str)> {
    let is_kept = |one: &Value| kept.iter().any(|kept| kept.eq_ignore_ascii_case(id(one)));
    let gone = all.iter().find(|one| is_ours(one, service, cluster) && !is_kept(one))?;
    let mut users = services(gone).unwrap_or_default();
    users.retain(|user| *user != service);
    if users.is_empty() {
        let change = Change::Delete {
            path: id(gone).into(),
            etag: etag(gone).into(),
        };
        return Some((change, id(gone)));
    }
    let mut body = gone.clone();
    merge(&mut body, &json!({ "tags": { SERVICES: users.join(",") } }));
    Some((Change::put(body), id(gone)))
}
