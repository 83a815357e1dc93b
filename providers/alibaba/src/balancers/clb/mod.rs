//! Classic Load Balancers: changes are made at once, a listener has a server group of the load balancer.

mod balancer;
mod groups;
mod listeners;

use cloudwit_guest_sdk::prelude::*;

use super::annotations;
use super::listeners::{changes, deletions};
use super::task::{Found, Task};
use super::wanted::{Members, Wanted};
use super::work::Next;
use crate::api::{Call, SLB};
pub use balancer::REASON;
use listeners::Clb;

/// What comes next, so that it becomes what is wanted; the load balancer when nothing is left.
pub fn next(task: &Task<'_>, wanted: &Wanted<'_>) -> Result<Next<Found>, Failure> {
    let Some(found) = task.find()? else {
        return balancer::create(task, wanted).map(Next::change);
    };
    let status = found.text("LoadBalancerStatus");
    if status == "locked" {
        return Err(Failure::failed_precondition(format!(
            "the load balancer {} is locked, since it was not paid or is not safe",
            found.id
        )));
    }
    if let Some(next) = Next::changes(balancer::changes(task, wanted, &found)?) {
        return Ok(next);
    }
    let groups = groups::list(task, &found)?;
    if let Some(next) = Next::changes(groups::missing(wanted, &groups, &found)) {
        return Ok(next);
    }
    if let Some(next) = Next::changes(groups::members(task, &wanted.members, &groups, |name| {
        wanted.port_of_group(name)
    })?) {
        return Ok(next);
    }
    if !found.is_users || wanted.overrides {
        let seen = listeners::list(task, &found)?;
        if let Some(next) = Next::changes(changes::<Clb>(task, wanted, &groups, &seen, &found)?) {
            return Ok(next);
        }
    }
    let unwanted = groups
        .iter()
        .filter(|group| wanted.port_of_group(&group.name).is_none());
    Ok(Next::changes_or(unwanted.map(groups::deletion).collect(), found))
}

/// The same, of the Nodes behind it alone.
pub fn next_members(task: &Task<'_>, members: &Members) -> Result<Next<()>, Failure> {
    let found = task.found()?;
    let groups = groups::list(task, &found)?;
    let port_of = |name: &str| {
        task.node_ports()
            .into_iter()
            .find(|port| task.names.of_port(*port, "") == name)
    };
    let calls = groups::members(task, members, &groups, port_of)?;
    Ok(Next::changes_or(calls, ()))
}

/// The same, so that nothing of it is left. One of the user's loses what was made in it.
pub fn next_deletion(task: &Task<'_>) -> Result<Next<()>, Failure> {
    let Some(found) = task.find_to_delete()? else {
        return Ok(Next::Done(()));
    };
    if found.is_users {
        let seen = listeners::list(task, &found)?;
        if let Some(next) = Next::changes(deletions::<Clb>(task, &found, &seen)) {
            return Ok(next);
        }
        let groups = groups::list(task, &found)?;
        return Ok(Next::changes_or(groups.iter().map(groups::deletion).collect(), ()));
    }
    let mut calls = Vec::new();
    if found.text("DeleteProtection") == "on" {
        calls.push(balancer::protect(&found, "off"));
    }
    match annotations::is_preserved(task.service) {
        true => {
            calls.extend(task.untag(&found));
            Ok(Next::changes_or(calls, ()))
        }
        false => {
            calls.push(Call::new(SLB, "DeleteLoadBalancer").field("LoadBalancerId", &found.id));
            Ok(Next::Changes(calls))
        }
    }
}
