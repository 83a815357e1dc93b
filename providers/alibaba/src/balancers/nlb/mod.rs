//! Network Load Balancers: changes are jobs, and server groups are things of their own.

mod balancer;
mod groups;
mod listeners;

use cloudwit_guest_sdk::prelude::*;

use super::annotations;
use super::groups::Group;
use super::listeners::{changes, deletions};
use super::task::{Found, Task};
use super::wanted::{Members, Wanted};
use super::work::Next;
use crate::api::{Call, NLB};
use listeners::Nlb;

/// What comes next, so that it becomes what is wanted; the load balancer when nothing is left.
pub fn next(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Next<Found>, Failure> {
    let Some(found) = task.find()? else {
        return balancer::create(task, wanted).map(Next::change);
    };
    match found.text("LoadBalancerStatus") {
        "Active" => {}
        "CreateFailed" => {
            let call = Call::new(NLB, "DeleteLoadBalancer").field("LoadBalancerId", &found.id);
            return Ok(Next::change(call));
        }
        status => return Ok(Next::Wait(format!("the load balancer {} is {status}", found.id))),
    }
    if let Some(next) = Next::changes(balancer::changes(task, wanted, &found)?) {
        return Ok(next);
    }
    let groups = groups::list(task)?;
    if let Some(next) = Next::changes(groups::changes(task, wanted, &groups, &found)) {
        return Ok(next);
    }
    if let Some(next) = waits(&groups) {
        return Ok(next);
    }
    if let Some(next) = Next::changes(groups::members(task, &wanted.members, &groups, |name| {
        wanted.port_of_group(name)
    })?) {
        return Ok(next);
    }
    if !found.is_users || wanted.overrides {
        let seen = listeners::list(task, &found)?;
        if let Some(listener) = seen.iter().find(|listener| listeners::is_busy(listener)) {
            return Ok(Next::Wait(format!(
                "the listener {} is {}",
                listener.id, listener.status
            )));
        }
        if let Some(next) = Next::changes(changes::<Nlb>(task, wanted, &groups, &seen, &found)?) {
            return Ok(next);
        }
    }
    let unwanted = groups
        .iter()
        .filter(|group| wanted.port_of_group(&group.name).is_none());
    Ok(Next::changes_or(unwanted.map(groups::deletion).collect(), found))
}

fn waits<T>(groups: &[Group]) -> Option<Next<T>> {
    let busy = groups.iter().find(|group| groups::is_busy(group))?;
    Some(Next::Wait(format!(
        "the server group {} is {}",
        busy.id,
        groups::status(busy)
    )))
}

/// The same, of the Nodes behind it alone.
pub fn next_members(task: &Task<'_>, members: &Members) -> Result<Next<()>, Failure> {
    let groups = groups::list(task)?;
    if groups.is_empty() {
        task.found()?;
    }
    if let Some(next) = waits(&groups) {
        return Ok(next);
    }
    let is_of = |port: u16, name: &str| {
        ["TCP", "UDP", "TCPSSL"]
            .iter()
            .any(|protocol| task.names.of_port(port, protocol) == name)
    };
    let port_of = |name: &str| task.node_ports().into_iter().find(|port| is_of(*port, name));
    let calls = groups::members(task, members, &groups, port_of)?;
    Ok(Next::changes_or(calls, ()))
}

/// The same, so that nothing of it is left. One of the user's loses what was made in it.
pub fn next_deletion(task: &Task<'_>) -> Result<Next<()>, Failure> {
    if let Some(found) = task.find_to_delete()? {
        if found.is_users {
            let seen = listeners::list(task, &found)?;
            if let Some(next) = Next::changes(deletions::<Nlb>(task, &found, &seen)) {
                return Ok(next);
            }
        } else if annotations::is_preserved(task.service) {
            // Its server groups stay with it.
            let off = balancer::unprotect(&found).into_iter().chain(task.untag(&found));
            return Ok(Next::changes_or(off.collect(), ()));
        } else {
            if matches!(found.text("LoadBalancerStatus"), "Provisioning" | "Configuring") {
                return Ok(Next::Wait(format!(
                    "the load balancer {} is {}",
                    found.id,
                    found.text("LoadBalancerStatus")
                )));
            }
            if let Some(call) = balancer::unprotect(&found) {
                return Ok(Next::change(call));
            }
            let call = Call::new(NLB, "DeleteLoadBalancer").field("LoadBalancerId", &found.id);
            return Ok(Next::change(call));
        }
    }
    let groups = groups::list(task)?;
    // Those of a load balancer that was kept have lost nothing but its tags.
    let unused = groups.iter().filter(|group| !groups::is_used(group));
    Ok(Next::changes_or(unused.map(groups::deletion).collect(), ()))
}
