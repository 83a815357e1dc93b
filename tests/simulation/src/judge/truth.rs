//! Compares what there is with what there should be, once everything has had its time.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde_json::Value;

use crate::api::object::{
    SHUTDOWN, UNINITIALIZED, address, age, condition, has_finalizer, is_ready, is_target, items, ports, provider_id,
    taints, text, uid, wants_balancer,
};
use crate::api::store::Kind;
use crate::cloud::state::CloudState;
use crate::judge::GRACE;
use crate::process::POD_RANGE;
use crate::promise::Promise;
use crate::world::Inner;

/// What is not as it should be, by the promise that it breaks.
pub(crate) fn wrong(inner: &Inner, promise: Promise) -> Vec<String> {
    match promise {
        Promise::Balancers => balancers(inner),
        Promise::NoBalancerLeft => balancers_left(inner),
        Promise::Routes => routes(inner),
        Promise::NoRouteLeft => routes_left(inner),
        Promise::Nodes => nodes(inner),
        Promise::Lifecycle => lifecycle(inner),
        _ => Vec::new(),
    }
}

fn balancers(inner: &Inner) -> Vec<String> {
    let label = |node: &Value| {
        let id = provider_id(node);
        format!(
            "{} {}",
            text(node, "/metadata/name"),
            if id.is_empty() { "-" } else { id }
        )
    };
    let targets: BTreeSet<String> = inner
        .store
        .all(Kind::Nodes)
        .filter(|(_, node)| is_target(node))
        .map(|(_, node)| label(node))
        .collect();
    let check = |(key, service): (&String, &Value)| {
        if !wants_balancer(service) {
            return None;
        }
        let Some(state) = inner.cloud.balancers.get(uid(service)) else {
            return Some(format!("{key} has no load balancer"));
        };
        if state.ports != ports(service) || state.targets != targets {
            return Some(format!(
                "{key} has {state:?}, with nodes {targets:?} and ports {:?}",
                ports(service)
            ));
        }
        let told = address(service) == state.address();
        (!told || !has_finalizer(service)).then(|| format!("{key}: {} in the status, {state:?}", address(service)))
    };
    inner.store.all(Kind::Services).filter_map(check).collect()
}

fn balancers_left(inner: &Inner) -> Vec<String> {
    let wanted: BTreeSet<&str> = inner
        .store
        .all(Kind::Services)
        .filter(|(_, service)| wants_balancer(service))
        .map(|(_, one)| uid(one))
        .collect();
    let left = inner
        .cloud
        .balancers
        .iter()
        .filter(|(uid, _)| !wanted.contains(uid.as_str()));
    let mut wrong: Vec<String> = left.map(|(uid, state)| format!("{uid} is left: {state:?}")).collect();
    let unwanted = inner
        .store
        .all(Kind::Services)
        .filter(|(_, service)| !wants_balancer(service));
    let marked = unwanted.filter(|(_, service)| has_finalizer(service) || !address(service).is_empty());
    wrong.extend(marked.map(|(key, service)| format!("{key} still has its finalizer or address: {service}")));
    wrong
}

/// Pod ranges and their Nodes; those of Nodes that wait for their cloud apart.
fn ranges(inner: &Inner, initialised: bool) -> BTreeMap<&str, &str> {
    let nodes = inner.store.all(Kind::Nodes);
    let nodes = nodes.filter(|(_, node)| initialised != taints(node).contains(UNINITIALIZED));
    nodes
        .flat_map(|(name, node)| items(node, "/spec/podCIDRs").iter().map(move |range| (name, range)))
        .filter_map(|(name, range)| Some((range.as_str()?, name.as_str())))
        .collect()
}

fn routes(inner: &Inner) -> Vec<String> {
    let mut wrong = Vec::new();
    for (range, name) in ranges(inner, true) {
        let there = inner.cloud.routes.values().filter(|route| route.destination == range);
        let there: Vec<_> = there.map(|route| (route.node.as_deref(), route.blackhole)).collect();
        let told = inner
            .store
            .get(Kind::Nodes, name)
            .and_then(|node| condition(node, "NetworkUnavailable"));
        if there != [(Some(name), false)] || told != Some("False") {
            wrong.push(format!("{range} of {name}: {there:?}, NetworkUnavailable {told:?}"));
        }
    }
    wrong
}

fn routes_left(inner: &Inner) -> Vec<String> {
    let mut wanted = ranges(inner, true);
    wanted.extend(ranges(inner, false));
    let pods: Option<IpNet> = POD_RANGE.parse().ok();
    let ours = |text: &str| {
        text.parse::<IpNet>()
            .is_ok_and(|net| pods.is_some_and(|pods| pods.contains(&net)))
    };
    let routes = inner.cloud.routes.values();
    let left = routes.filter(|route| ours(&route.destination) && !wanted.contains_key(route.destination.as_str()));
    left.map(|route| format!("{} to {:?} is left", route.destination, route.node))
        .collect()
}

fn nodes(inner: &Inner) -> Vec<String> {
    let check = |(name, node): (&String, &Value)| {
        let (id, machine) = inner.cloud.machine_named(name)?;
        let own = provider_id(node);
        if !own.is_empty() && own != id {
            return None;
        }
        if own.is_empty() || taints(node).contains(UNINITIALIZED) {
            return Some(format!("{name} is not initialised"));
        }
        let there = items(node, "/status/addresses")
            .iter()
            .map(|one| text(one, "/address").to_owned());
        let (there, wanted): (BTreeSet<String>, BTreeSet<String>) = (
            there.collect(),
            CloudState::addresses(machine)
                .into_iter()
                .map(|one| one.value)
                .collect(),
        );
        (there != wanted).then(|| format!("{name} has the addresses {there:?}, its machine {wanted:?}"))
    };
    inner.store.all(Kind::Nodes).filter_map(check).collect()
}

fn lifecycle(inner: &Inner) -> Vec<String> {
    let check = |(name, node): (&String, &Value)| {
        let id = provider_id(node);
        if id.is_empty() || taints(node).contains(UNINITIALIZED) {
            return None;
        }
        let (ready, marked) = (is_ready(node), taints(node).contains(SHUTDOWN));
        match inner.cloud.machines.get(id) {
            None => (!ready && age(node) > GRACE).then(|| format!("{name} is left, its machine {id} is gone")),
            Some(_) if ready => marked.then(|| format!("{name} is Ready and marked as shut down")),
            Some(machine) => {
                (machine.stopped && !marked).then(|| format!("{name} is not marked, its machine is stopped"))
            }
        }
    };
    inner.store.all(Kind::Nodes).filter_map(check).collect()
}
