//! A load balancer: what one Service has in it, put in and taken out. It belongs to all Services of the cluster.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::json::{id, items, items_mut, merge, name, reference, retain, text, upsert};
use super::rules::{self, SHARED_PROBE, WantedRule};
use super::wanted::{Front, Wanted};
use crate::arm::ids;

const FRONTS: &str = "frontendIPConfigurations";
const RULES: &str = "loadBalancingRules";
const PROBES: &str = "probes";
const POOLS: &str = "backendAddressPools";

/// Addresses of a pool.
const POOL_ADDRESSES: &str = "loadBalancerBackendAddresses";

/// Protocol of a rule for all ports.
const ALL: &str = "All";

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

/// A frontend by its name.
pub fn front<'a>(balancer: &'a Value, wanted: &str) -> Option<&'a Value> {
    let mut all = all_fronts(balancer).iter();
    all.find(|front| name(front).eq_ignore_ascii_case(wanted))
}

/// Whether a private link service can be at a frontend: at private addresses, and where rules have no floating IP.
pub fn may_be_linked(balancer: &Value, front: &Value) -> bool {
    let mut rules = items(balancer, RULES).iter().map(Rule::new);
    reference(front, "publicIPAddress").is_empty()
        || rules.any(|rule| !rule.is_floating && rule.front.eq_ignore_ascii_case(name(front)))
}

/// A rule that is there.
pub struct Rule<'a> {
    pub protocol: &'a str,
    /// 0 for all ports.
    pub port: u64,
    pub backend_port: u64,
    /// Whether packets keep the address of the frontend.
    pub is_floating: bool,
    /// Name of the frontend.
    pub front: &'a str,
}

impl<'a> Rule<'a> {
    fn new(rule: &'a Value) -> Self {
        let property = |key: &str| rule.get("properties").and_then(|properties| properties.get(key));
        let number = |key: &str| property(key).and_then(Value::as_u64).unwrap_or_default();
        Self {
            protocol: text(rule, "protocol"),
            port: number("frontendPort"),
            backend_port: number("backendPort"),
            is_floating: property("enableFloatingIP")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            front: ids::name(reference(rule, "frontendIPConfiguration")),
        }
    }

    /// Whether it takes packets that another one with this protocol and port would take at the same frontend.
    fn overlaps(&self, protocol: &str, port: u64) -> bool {
        let all = [self.protocol, protocol]
            .iter()
            .any(|one| one.eq_ignore_ascii_case(ALL));
        all || (self.port == port && self.protocol.eq_ignore_ascii_case(protocol))
    }
}

/// The rules of a Service, or those of all others.
pub fn rules_of<'a>(balancer: &'a Value, base: &str, own: bool) -> impl Iterator<Item = Rule<'a>> {
    let rules = items(balancer, RULES).iter();
    rules
        .filter(move |rule| is_ours(name(rule), base) == own)
        .map(Rule::new)
}

/// Makes it serve a Service. `addresses` are ids of public addresses, one for each of its families; none for internal ones. Whether that
/// is a change, and the names of the frontends of its families.
///
/// # Errors
/// `already-exists` where another Service has a port of a shared address; `failed-precondition` where a pool is of network interfaces.
pub fn serve(
    balancer: &mut Value,
    wanted: &Wanted<'_>,
    addresses: &[String],
    place: &Place,
) -> Result<(bool, Vec<String>), Failure> {
    let mut changed = false;
    let (mut rules, mut probes, mut shown_fronts) = (Vec::new(), Vec::new(), Vec::new());
    for (at, front) in wanted.fronts.iter().enumerate() {
        changed |= fill_pool(balancer, &front.pool, &front.nodes, &place.network)?;
        let address = addresses.get(at).map(String::as_str);
        let shown = shared(balancer, front, address).unwrap_or_else(|| front.name.clone());
        if shown == front.name {
            let properties = front_properties(front, address, place);
            changed |= upsert(balancer, FRONTS, &shown, &properties);
        }
        for WantedRule {
            name: rule_name,
            properties: mut rule,
            probe,
        } in rules::of(wanted, front)
        {
            check_free(balancer, &wanted.base, &shown, &rule)?;
            rule["frontendIPConfiguration"] = json!({ "id": format!("{}/{FRONTS}/{shown}", place.path) });
            rule["backendAddressPool"] = json!({ "id": format!("{}/{POOLS}/{}", place.path, front.pool) });
            match probe {
                Some(probe) => {
                    rule["probe"] = json!({ "id": format!("{}/{PROBES}/{}", place.path, probe.name) });
                    changed |= upsert(balancer, PROBES, &probe.name, &probe.properties);
                    probes.push(probe.name);
                }
                None => changed |= drop_probe(balancer, &rule_name),
            }
            changed |= upsert(balancer, RULES, &rule_name, &rule);
            rules.push(rule_name);
        }
        shown_fronts.push(shown);
    }
    let used: Vec<String> = fronts(balancer, &wanted.base)
        .iter()
        .map(|front| name(front).to_owned())
        .filter(|front| !is_one_of(front, &shown_fronts))
        .collect();
    changed |= retain(balancer, RULES, |item| {
        !is_ours(name(item), &wanted.base) || is_one_of(name(item), &rules)
    });
    changed |= retain(balancer, PROBES, |item| {
        !is_ours(name(item), &wanted.base) || is_one_of(name(item), &probes)
    });
    changed |= drop_shared_probe(balancer);
    changed |= drop_fronts(balancer, &used);
    Ok((changed, shown_fronts))
}

/// Takes a Service out; whether that is a change.
pub fn leave(balancer: &mut Value, base: &str) -> bool {
    let used: Vec<String> = fronts(balancer, base)
        .iter()
        .map(|front| name(front).to_owned())
        .collect();
    let rules = retain(balancer, RULES, |item| !is_ours(name(item), base));
    let probes = retain(balancer, PROBES, |item| !is_ours(name(item), base));
    let shared = drop_shared_probe(balancer);
    drop_fronts(balancer, &used) || rules || probes || shared
}

/// Makes the addresses of a pool those of the Nodes, where there is such a pool or it is to be; whether that is a change.
///
/// # Errors
/// `failed-precondition` where the pool is of network interfaces.
pub fn fill_pool(balancer: &mut Value, pool: &str, nodes: &[String], network: &str) -> Result<bool, Failure> {
    let there = items(balancer, POOLS);
    let found = there.iter().find(|item| name(item).eq_ignore_ascii_case(pool));
    let of_pool = found.is_some_and(|found| !reference(found, "virtualNetwork").is_empty());
    if let Some(found) = found {
        let by_interface = |item: &Value| !reference(item, "networkInterfaceIPConfiguration").is_empty();
        if items(found, POOL_ADDRESSES).iter().any(by_interface) || !items(found, "backendIPConfigurations").is_empty()
        {
            return Err(Failure::failed_precondition(format!(
                "the backend pool {pool} is of network interfaces; set loadBalancerBackendPoolConfigurationType to nodeIP in upstream's configuration \
                 and let it change the pool before"
            )));
        }
        let mut now: Vec<&str> = items(found, POOL_ADDRESSES)
            .iter()
            .map(|item| text(item, "ipAddress"))
            .collect();
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
    Ok(upsert(balancer, POOLS, pool, &json!({ POOL_ADDRESSES: addresses })))
}

/// Addresses in a pool.
pub fn in_pool(balancer: &Value, pool: &str) -> Vec<String> {
    let mut pools = items(balancer, POOLS).iter();
    let found = pools.find(|item| name(item).eq_ignore_ascii_case(pool));
    let addresses = found.map_or(&[][..], |found| items(found, POOL_ADDRESSES)).iter();
    addresses.map(|item| text(item, "ipAddress").to_owned()).collect()
}

fn front_properties(front: &Front, address: Option<&str>, place: &Place) -> Value {
    if let Some(address) = address {
        return json!({ "publicIPAddress": { "id": address } });
    }
    // Without an address of the annotations, the one that the cloud gave stays.
    let mut properties = json!({ "subnet": { "id": place.subnet }, "privateIPAllocationMethod": "Dynamic" });
    if let Some(ip) = &front.ip {
        properties["privateIPAllocationMethod"] = "Static".into();
        properties["privateIPAddress"] = ip.as_str().into();
    }
    if front.v6 {
        properties["privateIPAddressVersion"] = "IPv6".into();
    }
    properties
}

/// Another Service's frontend with the address that this one requests.
fn shared(balancer: &Value, front: &Front, address: Option<&str>) -> Option<String> {
    let has = |item: &&Value| match (address, &front.ip) {
        (Some(address), _) => reference(item, "publicIPAddress").eq_ignore_ascii_case(address),
        (None, Some(ip)) => text(item, "privateIPAddress").eq_ignore_ascii_case(ip),
        (None, None) => false,
    };
    items(balancer, FRONTS)
        .iter()
        .find(has)
        .map(|item| name(item).to_owned())
}

/// Drops the probe of all Services where no rule has it any more; whether that is a change.
fn drop_shared_probe(balancer: &mut Value) -> bool {
    let is_shared = |probe: &str| probe.eq_ignore_ascii_case(SHARED_PROBE);
    let mut rules = items(balancer, RULES).iter();
    !rules.any(|rule| is_shared(ids::name(reference(rule, "probe"))))
        && retain(balancer, PROBES, |item| !is_shared(name(item)))
}

fn is_one_of(item_name: &str, names: &[String]) -> bool {
    names.iter().any(|one| one.eq_ignore_ascii_case(item_name))
}

/// Takes the probe off a rule that is to have none; whether that is a change.
fn drop_probe(balancer: &mut Value, rule: &str) -> bool {
    let mut rules = items_mut(balancer, RULES).into_iter().flatten();
    let found = rules.find(|item| name(item).eq_ignore_ascii_case(rule));
    let properties = found.and_then(|item| item.get_mut("properties")?.as_object_mut());
    properties.is_some_and(|properties| properties.remove("probe").is_some_and(|probe| !probe.is_null()))
}

/// # Errors
/// `already-exists` where another Service has a port of this rule at the frontend.
fn check_free(balancer: &Value, base: &str, front: &str, rule: &Value) -> Result<(), Failure> {
    let protocol = rule["protocol"].as_str().unwrap_or_default();
    let port = rule["frontendPort"].as_u64().unwrap_or_default();
    let mut others = rules_of(balancer, base, false);
    if others.any(|other| other.front.eq_ignore_ascii_case(front) && other.overlaps(protocol, port)) {
        return Err(Failure::already_exists(format!(
            "port {port} of {protocol} of the shared address belongs to another Service; choose another port or address"
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

/// Whether nothing reachable is left in it.
pub fn is_bare(balancer: &mut Value) -> bool {
    items_mut(balancer, FRONTS).is_none_or(|fronts| fronts.is_empty())
}

#[cfg(test)]
mod tests;
