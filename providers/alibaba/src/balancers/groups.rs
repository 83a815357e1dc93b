//! Server groups of the Service, and the instances in them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile;
use serde_json::Value;

use super::fields::text;
use super::requests::Requests;
use super::task::{Found, Task};
use super::wanted::{Members, Wanted};
use super::work::Next;
use crate::api::Call;

/// A server group of the Service.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub id: String,
    pub name: String,
    /// The whole answer.
    pub seen: Value,
}

/// A member of a server group: an instance and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub instance: String,
    pub port: u16,
    pub weight: i64,
}

impl Group {
    /// What the cloud is doing with it, if anything.
    pub fn busy(&self) -> Option<&str> {
        self.seen["ServerGroupStatus"]
            .as_str()
            .filter(|status| *status != "Available")
    }

    /// Whether it is behind a load balancer of which it is no part.
    pub fn is_used(&self) -> bool {
        let used_by = self.seen["RelatedLoadBalancerIds"].as_array();
        used_by.is_some_and(|ids| !ids.is_empty())
    }
}

/// Makes those that are missing, and brings parameters up to date.
pub fn changes<R: Requests>(task: &Task<'_>, wanted: &Wanted<'_>, groups: &[Group], found: &Found) -> Vec<Call> {
    let mut calls = Vec::new();
    for port in &wanted.ports {
        let group = groups.iter().find(|group| group.name == port.group);
        // Several ports may have one group.
        calls.extend(R::change_group(task, found, port, group).filter(|call| !calls.contains(call)));
    }
    calls
}

/// Brings the instances in groups up to date. `port_of` returns the Nodes' port of a group; groups without one stay as they are.
///
/// # Errors
/// The cloud's error.
pub fn member_changes<R: Requests, T>(
    task: &Task<'_>,
    wanted: &Members,
    groups: &[Group],
    port_of: impl Fn(&str) -> Option<u16>,
) -> Result<Option<Next<T>>, Failure> {
    if let Some((group, status)) = groups.iter().find_map(|group| Some((group, group.busy()?))) {
        return Ok(Some(Next::Wait(format!("the server group {} is {status}", group.id))));
    }
    let mut calls = Vec::new();
    for group in groups {
        let Some(port) = port_of(&group.name) else { continue };
        let seen: Vec<Member> = R::members(task, group)?.iter().map(read).collect();
        let changes = MemberChanges::between(wanted, port, &seen).of_existing(task)?;
        let actions = R::MEMBERS
            .into_iter()
            .zip([&changes.remove, &changes.add, &changes.weigh]);
        let requests = actions
            .flat_map(|(action, members)| members.chunks(R::BATCH).map(move |some| (action, some)))
            .map(|(action, some)| R::change_members(action, group, some));
        calls.extend(requests.take(if R::JOBS { 1 } else { usize::MAX }));
    }
    Ok(Next::changes(calls))
}

fn read(seen: &Value) -> Member {
    Member {
        instance: text(&seen["ServerId"]),
        port: text(&seen["Port"]).parse().unwrap_or_default(),
        weight: text(&seen["Weight"]).parse().unwrap_or_default(),
    }
}

/// What has to be done with the members of a server group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MemberChanges {
    pub add: Vec<Member>,
    pub remove: Vec<Member>,
    pub weigh: Vec<Member>,
}

impl MemberChanges {
    /// Between the desired members, with this port, and the observed ones.
    pub fn between(wanted: &Members, port: u16, seen: &[Member]) -> Self {
        let own = |instance: &String| Member {
            instance: instance.clone(),
            port,
            weight: wanted.weight,
        };
        let own: Vec<Member> = wanted.instances.iter().map(own).collect();
        let diff = reconcile::diff(
            &own,
            seen,
            |one, there| one.instance == there.instance && one.port == there.port,
            |one, there| wanted.keep_weights || one.weight == there.weight,
        );
        Self {
            add: diff.create.into_iter().cloned().collect(),
            remove: diff.delete.into_iter().cloned().collect(),
            weigh: diff.change.into_iter().map(|(one, _)| one.clone()).collect(),
        }
    }

    /// Without instances that are to be added and do not exist: one that is gone before its Node would spoil a request for all.
    fn of_existing(mut self, task: &Task<'_>) -> Result<Self, Failure> {
        let mut existing = Vec::new();
        for some in self.add.chunks(100) {
            let ids: Vec<&str> = some.iter().map(|member| member.instance.as_str()).collect();
            existing.extend(task.cloud.instances(&ids)?);
        }
        self.add
            .retain(|member| existing.iter().any(|machine| machine.instance_id == member.instance));
        Ok(self)
    }
}
