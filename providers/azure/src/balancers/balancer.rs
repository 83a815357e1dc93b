//! A load balancer: what one Service has in it, put in and taken out. It belongs to all Services of the cluster.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::json::{id, items, items_mut, merge, name, reference, retain, text, upsert};
use super::wanted::{Front, Wanted, words};
use crate::arm::ids;

const FRONTS: &str = "frontendIPConfigurations";
const RULES: &str = "loadBalancingRules";
const PROBES: &str = "probes";
const POOLS: &str = "backendAddressPools";

/// Lists whose items lead from a frontend.
const LEADING: [&str; 4] = [RULES, "outboundRules", "inboundNatRules", "inboundNatPools"];

/// Ids of what a load balancer refers to.
pub struct Place {
    /// Of the load balancer.
    pub path: String,
    pub network: String,
    /// Of internal addresses.
    pub subnet: String,
}

/// Whether a name is of the Service whose names begin so.
pub fn is_ours(item_name: &str, base: &str) -> bool {
    let (item_name, base) = (item_name.to_ascii_lowercase(), base.to_ascii_lowercase());
    item_name
        .strip_prefix(&base)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether a name is of some Service: `a` and 31 hexadecimal digits, and a suffix.
fn is_of_a_service(item_name: &str) -> bool {
    let base = item_name.split('-').next().unwrap_or_default();
    base.len() == 32 && base.starts_with(['a', 'A']) && base.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A new one without anything.
pub fn empty(location: &str) -> Value {
    json!({ "location": location, "sku": { "name": "Standard" }, "properties": {} })
}

/// Frontends of a Service: those of its name, and those that its rules lead from.
pub fn fronts<'a>(balancer: &'a Value, base: &str) -> Vec<&'a Value> {
    let rules = items(balancer, RULES).iter().filter(|rule| is_ours(name(rule), base));
    let used: Vec<&str> = rules
        .map(|rule| ids::name(reference(rule, "frontendIPConfiguration")))
        .collect();
    let is_used = |front: &&Value| used.iter().any(|used| used.eq_ignore_ascii_case(name(front)));
    items(balancer, FRONTS)
        .iter()
        .filter(|front| is_used(front) || is_ours(name(front), base))
        .collect()
}

/// All frontends.
pub fn all_fronts(balancer: &Value) -> &[Value] {
    items(balancer, FRONTS)
}

/// Protocol, port and frontend of each rule of other Services.
pub fn of_others<'a>(balancer: &'a Value, base: &str) -> Vec<(&'a str, u64, &'a str)> {
    let rules = items(balancer, RULES).iter().filter(|rule| !is_ours(name(rule), base));
    rules
        .map(|rule| {
            let port = rule.pointer("/properties/frontendPort").and_then(Value::as_u64);
            let front = ids::name(reference(rule, "frontendIPConfiguration"));
            (text(rule, "protocol"), port.unwrap_or_default(), front)
        })
        .collect()
}

/// Whether there is a rule of this Service.
pub fn has_rules(balancer: &Value, base: &str) -> bool {
    items(balancer, RULES).iter().any(|rule| is_ours(name(rule), base))
}

/// Makes it serve a Service. `addresses` are ids of public addresses, one for each of its families; none for internal ones. Whether that is a change.
///
/// # Errors
/// `already-exists` where another Service has a port of a shared address; `failed-precondition` where a pool is of network interfaces.
pub fn serve(balancer: &mut Value, wanted: &Wanted<'_>, addresses: &[String], place: &Place) -> Result<bool, Failure> {
    let (mut changed, mut rules) = (false, Vec::new());
    for (at, front) in wanted.fronts.iter().enumerate() {
        changed |= fill_pool(balancer, &front.pool, &front.nodes, &place.network)?;
        let address = addresses.get(at).map(String::as_str);
        let shown = shared(balancer, front, address).unwrap_or_else(|| front.name.clone());
        if shown == front.name {
            let properties = front_properties(front, address, place);
            changed |= upsert(balancer, FRONTS, &shown, &properties);
        }
        for port in &wanted.service.ports {
            let rule_name = wanted.rule_name(front, port);
            check_free(balancer, wanted, &shown, port)?;
            let mut rule = wanted.rule(port);
            rule["frontendIPConfiguration"] = json!({ "id": format!("{}/{FRONTS}/{shown}", place.path) });
            rule["backendAddressPool"] = json!({ "id": format!("{}/{POOLS}/{}", place.path, front.pool) });
            let probe = wanted.probe(port);
            if let Some(probe) = &probe {
                rule["probe"] = json!({ "id": format!("{}/{PROBES}/{rule_name}", place.path) });
                changed |= upsert(balancer, PROBES, &rule_name, probe);
            }
            changed |= upsert(balancer, RULES, &rule_name, &rule);
            rules.push((rule_name, probe.is_some()));
        }
    }
    let used: Vec<String> = fronts(balancer, &wanted.base)
        .iter()
        .map(|front| name(front).to_owned())
        .collect();
    let is_wanted = |item: &Value| rules.iter().any(|(rule, _)| rule.eq_ignore_ascii_case(name(item)));
    let has_probe = |item: &Value| {
        let mut rules = rules.iter();
        rules.any(|(rule, probe)| *probe && rule.eq_ignore_ascii_case(name(item)))
    };
    changed |= retain(balancer, RULES, |item| {
        !is_ours(name(item), &wanted.base) || is_wanted(item)
    });
    changed |= retain(balancer, PROBES, |item| {
        !is_ours(name(item), &wanted.base) || has_probe(item)
    });
    changed |= drop_fronts(balancer, &used);
    Ok(changed)
}

/// Takes a Service out; whether that is a change.
pub fn leave(balancer: &mut Value, base: &str) -> bool {
    let used: Vec<String> = fronts(balancer, base)
        .iter()
        .map(|front| name(front).to_owned())
        .collect();
    let rules = retain(balancer, RULES, |item| !is_ours(name(item), base));
    let probes = retain(balancer, PROBES, |item| !is_ours(name(item), base));
    drop_fronts(balancer, &used) || rules || probes
}

/// Makes the addresses of a pool those of the Nodes, where there is such a pool or it is to be; whether that is a change.
///
/// # Errors
/// `failed-precondition` where the pool is of network interfaces.
pub fn fill_pool(balancer: &mut Value, pool: &str, nodes: &[String], network: &str) -> Result<bool, Failure> {
    const LIST: &str = "loadBalancerBackendAddresses";
    let there = items(balancer, POOLS);
    let found = there.iter().find(|item| name(item).eq_ignore_ascii_case(pool));
    let of_pool = found.is_some_and(|found| !reference(found, "virtualNetwork").is_empty());
    if let Some(found) = found {
        let by_interface = |item: &Value| !reference(item, "networkInterfaceIPConfiguration").is_empty();
        if items(found, LIST).iter().any(by_interface) || !items(found, "backendIPConfigurations").is_empty() {
            return Err(Failure::failed_precondition(format!(
                "the backend pool {pool} is of network interfaces; set loadBalancerBackendPoolConfigurationType to nodeIP in upstream's configuration \
                 and let it change the pool before"
            )));
        }
        let mut now: Vec<&str> = items(found, LIST).iter().map(|item| text(item, "ipAddress")).collect();
        now.sort_unstable();
        if now.iter().eq(nodes.iter()) {
            return Ok(false);
        }
    }
    let addresses = nodes.iter().map(|ip| {
        let mut properties = json!({ "ipAddress": ip });
        if !of_pool {
            properties["virtualNetwork"] = json!({ "id": network });
        }
        json!({ "name": ip, "properties": properties })
    });
    let addresses: Vec<Value> = addresses.collect();
    Ok(upsert(balancer, POOLS, pool, &json!({ LIST: addresses })))
}

fn front_properties(front: &Front<'_>, address: Option<&str>, place: &Place) -> Value {
    match (address, front.ip) {
        (Some(address), _) => json!({ "publicIPAddress": { "id": address } }),
        (None, Some(ip)) => {
            json!({ "subnet": { "id": place.subnet }, "privateIPAllocationMethod": "Static", "privateIPAddress": ip })
        }
        // The address that the cloud gave it stays.
        (None, None) => json!({ "subnet": { "id": place.subnet }, "privateIPAllocationMethod": "Dynamic" }),
    }
}

/// Another Service's frontend with the address that this one asks for.
fn shared(balancer: &Value, front: &Front<'_>, address: Option<&str>) -> Option<String> {
    let has = |item: &&Value| match (address, front.ip) {
        (Some(address), _) => reference(item, "publicIPAddress").eq_ignore_ascii_case(address),
        (None, Some(ip)) => text(item, "privateIPAddress") == ip,
        (None, None) => false,
    };
    items(balancer, FRONTS)
        .iter()
        .find(has)
        .map(|item| name(item).to_owned())
}

fn check_free(balancer: &Value, wanted: &Wanted<'_>, front: &str, port: &ServicePort) -> Result<(), Failure> {
    let protocol = words(port.protocol).1;
    let others = of_others(balancer, &wanted.base);
    let taken = |(other, number, of): &(&str, u64, &str)| {
        of.eq_ignore_ascii_case(front) && *number == u64::from(port.port) && other.eq_ignore_ascii_case(protocol)
    };
    if others.iter().any(taken) {
        return Err(Failure::already_exists(format!(
            "port {} of {protocol} of the shared address belongs to another Service; choose another port or address",
            port.port
        )));
    }
    Ok(())
}

/// Those of Services that nothing leads from any more go; whether that is a change.
fn drop_fronts(balancer: &mut Value, candidates: &[String]) -> bool {
    let mut led: Vec<String> = Vec::new();
    for list in LEADING {
        for item in items(balancer, list) {
            led.push(ids::name(reference(item, "frontendIPConfiguration")).to_ascii_lowercase());
            let many = items(item, "frontendIPConfigurations");
            led.extend(many.iter().map(|front| ids::name(id(front)).to_ascii_lowercase()));
        }
    }
    retain(balancer, FRONTS, |front| {
        let front = name(front);
        let candidate = candidates.iter().any(|name| name.eq_ignore_ascii_case(front));
        !candidate || !is_of_a_service(front) || led.contains(&front.to_ascii_lowercase())
    })
}

/// With these tags beside those that it has; whether that is a change.
pub fn add_tags(resource: &mut Value, tags: &serde_json::Map<String, Value>) -> bool {
    !tags.is_empty() && merge(resource, &json!({ "tags": tags }))
}

/// Whether nothing is left in it that anybody could reach.
pub fn is_bare(balancer: &mut Value) -> bool {
    items_mut(balancer, FRONTS).is_none_or(|fronts| fronts.is_empty())
}

#[cfg(test)]
mod tests;
