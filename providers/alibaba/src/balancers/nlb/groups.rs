//! Server groups of Network Load Balancers, and the instances in them.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::{Call, NLB, Paging};
use crate::balancers::fields::{Field, sent, text};
use crate::balancers::groups::{self, Group};
use crate::balancers::names::OWNER_TAG;
use crate::balancers::task::{Found, MemberChanges, Task};
use crate::balancers::wanted::{Members, Wanted};

/// Servers in a request. NLB takes 200.
const MEMBERS: usize = 100;

fn read(mut seen: Value) -> Group {
    // Under the name that requests have for it.
    seen["HealthCheckConfig"] = seen["HealthCheck"].take();
    Group {
        id: text(&seen["ServerGroupId"]),
        name: text(&seen["ServerGroupName"]),
        seen,
    }
}

pub fn status(group: &Group) -> &str {
    group.seen["ServerGroupStatus"].as_str().unwrap_or_default()
}

pub fn is_busy(group: &Group) -> bool {
    status(group) != "Available"
}

/// Whether it is behind a load balancer.
pub fn is_used(group: &Group) -> bool {
    let used_by = group.seen["RelatedLoadBalancerIds"].as_array();
    used_by.is_some_and(|ids| !ids.is_empty())
}

/// Deletes one.
pub fn deletion(group: &Group) -> Call {
    Call::new(NLB, "DeleteServerGroup").field("ServerGroupId", &group.id)
}

/// Those of the Service, by its tag and by their names.
pub fn list(task: &Task<'_>) -> Result<Vec<Group>, Failure> {
    let tag = [(OWNER_TAG.to_owned(), task.names.balancer.clone())];
    let call = Call::new(NLB, "ListServerGroups").tags(&tag);
    let seen: Vec<Value> = task
        .cloud
        .api
        .list(&call, Paging::Token("MaxResults"), "ServerGroups")?;
    let groups = seen.into_iter().map(read);
    Ok(groups.filter(|group| task.names.is_own(&group.name)).collect())
}

/// Makes those that are missing, and brings parameters up to date.
pub fn changes(task: &Task<'_>, wanted: &Wanted<'_>, groups: &[Group], found: &Found) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for port in &wanted.ports {
        match groups.iter().find(|group| group.name == port.group) {
            None => {
                let protocol = if port.protocol == "TCPSSL" {
                    "TCP"
                } else {
                    port.protocol
                };
                let call = Call::new(NLB, "CreateServerGroup")
                    .field("ServerGroupName", &port.group)
                    .field("ServerGroupType", "Instance")
                    .field("Protocol", protocol)
                    .field("VpcId", found.text("VpcId"))
                    .opt("ResourceGroupId", task.cloud.global().resource_group())
                    .tags(&task.names.tags());
                calls.push(sent(call, &port.of_group));
            }
            Some(group) if !is_busy(group) => {
                // What is shown otherwise is sent alone: NLB keeps the rest.
                let differing: Vec<Field> = port
                    .of_group
                    .iter()
                    .filter(|field| !field.is_in(&group.seen))
                    .cloned()
                    .collect();
                if !differing.is_empty() {
                    calls.push(sent(
                        Call::new(NLB, "UpdateServerGroupAttribute").field("ServerGroupId", &group.id),
                        &differing,
                    ));
                }
            }
            Some(_) => {}
        }
    }
    calls
}

/// Brings the instances in groups up to date.
pub fn members(
    task: &Task<'_>,
    wanted: &Members,
    groups: &[Group],
    port_of: impl Fn(&str) -> Option<u16>,
) -> Result<Vec<Call>, Failure> {
    let servers = |group: &Group| {
        let call = Call::new(NLB, "ListServerGroupServers").field("ServerGroupId", &group.id);
        let mut seen: Vec<Value> = task.cloud.api.list(&call, Paging::Token("MaxResults"), "Servers")?;
        seen.retain(|server| server["Status"] != "Removing");
        Ok(seen)
    };
    groups::members(task, wanted, groups, port_of, servers, calls)
}

/// One change of a group at a time.
fn calls(group: &Group, changes: &MemberChanges) -> Vec<Call> {
    let kinds = [
        ("RemoveServersFromServerGroup", &changes.remove),
        ("AddServersToServerGroup", &changes.add),
        ("UpdateServerGroupServersAttribute", &changes.weigh),
    ];
    let Some((action, members)) = kinds.into_iter().find(|(_, members)| !members.is_empty()) else {
        return Vec::new();
    };
    let call = Call::new(NLB, action).field("ServerGroupId", &group.id);
    let members = members.iter().take(MEMBERS).enumerate();
    let call = members.fold(call, |call, (at, member)| {
        let name = |field: &str| format!("Servers.{}.{field}", at + 1);
        let call = call
            .field(name("ServerId"), &member.instance)
            .field(name("ServerType"), "Ecs")
            .field(name("Port"), member.port);
        match action {
            "RemoveServersFromServerGroup" => call,
            _ => call
                .field(name("Weight"), member.weight)
                .field(name("Description"), &group.name),
        }
    });
    vec![call]
}
