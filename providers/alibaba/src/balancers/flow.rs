//! What comes next for a Service, of either kind of load balancer.

use cloudwit_guest_sdk::prelude::*;

use super::annotations;
use super::requests::Requests;
use super::task::{Found, Task};
use super::wanted::{Members, Wanted};
use super::work::Next;
use super::{groups, listeners};
use crate::api::Call;

/// The next change towards the desired state; the load balancer when nothing is left.
pub fn next<R: Requests>(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Next<Found>, Failure> {
    let Some(found) = task.find()? else {
        if !wanted.internal && task.cloud.global().disable_public_slb {
            let text = "the cloud config has disablePublicSLB: write intranet into the annotation address-type";
            return Err(Failure::invalid(text));
        }
        let tags = [task.names.tags(), wanted.tags.clone()].concat();
        return Ok(Next::change(R::create(task, wanted)?.tags(&tags)));
    };
    if let Some(next) = R::first(task, &found)? {
        return Ok(next);
    }
    let mut changes: Vec<Call> = task.tag(wanted, &found).into_iter().collect();
    changes.extend(R::changes(task, wanted, &found)?);
    if let Some(next) = Next::changes(changes) {
        return Ok(next);
    }
    let groups = R::groups(task, Some(&found))?;
    if let Some(next) = Next::changes(groups::changes::<R>(task, wanted, &groups, &found)) {
        return Ok(next);
    }
    let port_of = |name: &str| wanted.port_of_group(name);
    if let Some(next) = groups::member_changes::<R, _>(task, &wanted.members, &groups, port_of)? {
        return Ok(next);
    }
    if (!found.is_users || wanted.overrides)
        && let Some(next) = listeners::changes::<R>(task, wanted, &groups, &found)?
    {
        return Ok(next);
    }
    let unwanted = groups.iter().filter(|group| port_of(&group.name).is_none());
    Ok(Next::changes_or(unwanted.map(R::delete_group).collect(), found))
}

/// The same, of the Nodes behind it alone.
pub fn next_members<R: Requests>(task: &Task<'_>, members: &Members) -> Result<Next<()>, Failure> {
    let groups = R::groups_alone(task)?;
    let is_of = |port: &u16, name: &str| {
        let mut protocols = ["TCP", "UDP", "TCPSSL"].iter();
        protocols.any(|protocol| task.names.of_port(*port, protocol) == name)
    };
    let node_ports = || task.service.ports.iter().filter_map(|port| port.node_port);
    let port_of = |name: &str| node_ports().find(|port| is_of(port, name));
    let next = groups::member_changes::<R, _>(task, members, &groups, port_of)?;
    Ok(next.unwrap_or(Next::Done(())))
}

/// The same, so that nothing of it is left. One of the user's loses what was made in it.
pub fn next_deletion<R: Requests>(task: &Task<'_>) -> Result<Next<()>, Failure> {
    let found = task.find_to_delete()?;
    match &found {
        Some(found) if found.is_users => {
            if let Some(next) = Next::changes(listeners::deletions::<R>(task, found)?) {
                return Ok(next);
            }
        }
        Some(found) => return deletion::<R>(task, found),
        None => {}
    }
    let groups = R::groups(task, found.as_ref())?;
    // Those of a load balancer that was kept have lost nothing but its tags.
    let unused = groups.iter().filter(|group| !group.is_used());
    Ok(Next::changes_or(unused.map(R::delete_group).collect(), ()))
}

/// Of the load balancer, which is the Service's own.
fn deletion<R: Requests>(task: &Task<'_>, found: &Found) -> Result<Next<()>, Failure> {
    let mut calls: Vec<Call> = R::unprotect(task, found).into_iter().collect();
    if annotations::is_preserved(task.service) {
        // Its server groups stay with it.
        calls.extend(task.untag(found));
        return Ok(Next::changes_or(calls, ()));
    }
    let status = found.text("LoadBalancerStatus");
    if matches!(status, "Provisioning" | "Configuring") {
        return Ok(Next::Wait(format!("the load balancer {} is {status}", found.id)));
    }
    if calls.is_empty() || !R::JOBS {
        calls.push(task.deletion(found));
    }
    Ok(Next::Changes(calls))
}
