//! Which changes bring Rancher closer to the desired state. Pure.

use cloudwit_guest_sdk::reconcile::diff;
use serde_json::json;

use super::seen::{BalancerService, External, MARK};
use super::wanted::Wanted;
use crate::api::{BALANCERS, Call, EXTERNALS, Stage};

/// How far the external services of a load balancer are.
#[derive(Debug, PartialEq)]
pub enum Backends {
    /// These changes come first.
    Calls(Vec<Call>),
    /// One of this name is on its way out, and another cannot be made before it is gone.
    Waits(String),
    /// All are there: their ids.
    There(Vec<String>),
}

/// External services that are missing are made, those with other addresses changed. That of a Node without an address stays as it is.
pub fn backends(wanted: &Wanted, seen: &[External], stack: &str) -> Backends {
    let wanted: Vec<(&String, &Vec<String>)> = wanted.backends.iter().collect();
    let (leaving, here): (Vec<_>, Vec<_>) = seen.iter().partition(|one| one.stage.is_leaving());
    let found = diff(
        &wanted,
        &here,
        |(name, _), one| one.name == **name,
        |(_, ips), one| ips.is_empty() || one.ips() == **ips,
    );
    let create: Vec<_> = found.create.into_iter().filter(|(_, ips)| !ips.is_empty()).collect();
    let is_leaving = |name: &str| leaving.iter().any(|one| one.name == name && !one.stage.is_gone());
    if let Some((name, _)) = create.iter().find(|(name, _)| is_leaving(name)) {
        return Backends::Waits((*name).clone());
    }
    let create = create.iter().map(|(name, ips)| {
        let body = json!({ "name": name, "stackId": stack, "externalIpAddresses": ips, "metadata": { MARK: "node" } });
        Call::create(EXTERNALS, body)
    });
    let change = found.change.iter().map(|((_, ips), one)| {
        let body = json!({ "externalIpAddresses": ips });
        Call::update(EXTERNALS, &one.id, body)
    });
    let calls: Vec<Call> = create.chain(change).collect();
    match calls.is_empty() {
        false => Backends::Calls(calls),
        true => {
            let of = |(name, _): &(&String, &Vec<String>)| here.iter().find(|one| one.name == **name);
            Backends::There(wanted.iter().filter_map(of).map(|one| one.id.clone()).collect())
        }
    }
}

/// Marks those that upstream's controller made and that this load balancer is about to drop: nothing would find them again. `kept` are ids that stay.
pub fn marks(balancer: &BalancerService, seen: &[External], kept: &[String]) -> Vec<Call> {
    let dropped = |one: &&External| {
        balancer.uses(&one.id) && !kept.contains(&one.id) && !one.is_marked() && !one.stage.is_leaving()
    };
    let mark = |one: &External| Call::update(EXTERNALS, &one.id, json!({ "metadata": one.marked() }));
    seen.iter().filter(dropped).map(mark).collect()
}

/// Whether any is marked and not among those that stay.
pub fn may_leave(seen: &[External], kept: &[String]) -> bool {
    seen.iter().any(|one| is_needless(one, kept))
}

/// Removes those that are marked and behind no load balancer at all.
pub fn sweep(seen: &[External], kept: &[String], balancers: &[BalancerService]) -> Vec<Call> {
    let is_used = |one: &External| balancers.iter().any(|balancer| balancer.uses(&one.id));
    let left = seen.iter().filter(|one| is_needless(one, kept) && !is_used(one));
    left.map(|one| Call::delete(EXTERNALS, &one.id)).collect()
}

fn is_needless(one: &External, kept: &[String]) -> bool {
    one.is_marked() && !one.stage.is_leaving() && !kept.contains(&one.id)
}

/// Starts what is switched off: external services, then the load balancer.
pub fn activation(balancer: &BalancerService, externals: &[External], kept: &[String]) -> Vec<Call> {
    let backends = externals.iter().filter(|one| kept.contains(&one.id));
    let backends = backends.map(|one| (EXTERNALS, &one.id, &one.stage));
    let all = backends.chain([(BALANCERS, &balancer.id, &balancer.stage)]);
    let may_start = |stage: &Stage| stage.state == "inactive" && stage.allows("activate");
    all.filter(|(.., stage)| may_start(stage))
        .map(|(kind, id, _)| Call::act(kind, id, "activate"))
        .collect()
}

/// An external service that cannot be started yet, and its state.
pub fn lagging(externals: &[External], kept: &[String]) -> Option<String> {
    let mut own = externals.iter().filter(|one| kept.contains(&one.id));
    let found = own.find(|one| one.stage.is_unsettled() || one.stage.state == "inactive")?;
    Some(format!("the external service {} is {}", found.name, found.stage.text()))
}
