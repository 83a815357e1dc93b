//! Server groups of a Classic Load Balancer, and the instances in them.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use crate::api::{Call, Paging, SLB};
use crate::balancers::fields::text;
use crate::balancers::groups::{self, Group};
use crate::balancers::task::{Found, MEMBERS, Member, MemberChanges, Task};
use crate::balancers::wanted::{Members, Wanted};

/// Deletes one.
pub fn deletion(group: &Group) -> Call {
    Call::new(SLB, "DeleteVServerGroup").field("VServerGroupId", &group.id)
}

/// Those of the Service.
pub fn list(task: &Task<'_>, found: &Found) -> Result<Vec<Group>, Failure> {
    let call = Call::new(SLB, "DescribeVServerGroups").field("LoadBalancerId", &found.id);
    let seen: Vec<Value> = task
        .cloud
        .api
        .list(&call, Paging::Whole, "VServerGroups.VServerGroup")?;
    let groups = seen.into_iter().map(|seen| Group {
        id: text(&seen["VServerGroupId"]),
        name: text(&seen["VServerGroupName"]),
        seen,
    });
    Ok(groups.filter(|group| task.names.is_own(&group.name)).collect())
}

/// Makes those that are missing.
pub fn missing(wanted: &Wanted<'_>, groups: &[Group], found: &Found) -> Vec<Call> {
    let mut names: Vec<&str> = wanted.ports.iter().map(|port| port.group.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| groups.iter().all(|group| group.name != *name));
    let create = |name| {
        Call::new(SLB, "CreateVServerGroup")
            .field("LoadBalancerId", &found.id)
            .field("VServerGroupName", name)
    };
    names.into_iter().map(create).collect()
}

/// Brings the instances in groups up to date.
pub fn members(
    task: &Task<'_>,
    wanted: &Members,
    groups: &[Group],
    port_of: impl Fn(&str) -> Option<u16>,
) -> Result<Vec<Call>, Failure> {
    let servers = |group: &Group| {
        let call = Call::new(SLB, "DescribeVServerGroupAttribute").field("VServerGroupId", &group.id);
        task.cloud
            .api
            .list(&call, Paging::Whole, "BackendServers.BackendServer")
    };
    groups::members(task, wanted, groups, port_of, servers, calls)
}

fn calls(group: &Group, changes: &MemberChanges) -> Vec<Call> {
    let kinds = [
        ("RemoveVServerGroupBackendServers", &changes.remove),
        ("AddVServerGroupBackendServers", &changes.add),
        ("SetVServerGroupAttribute", &changes.weigh),
    ];
    let parts = kinds
        .into_iter()
        .flat_map(|(action, members)| members.chunks(MEMBERS).map(move |some| (action, some)));
    let call = |(action, some): (&'static str, &[Member])| {
        let servers: Vec<Value> = some.iter().map(|member| written(member, &group.name)).collect();
        let call = Call::new(SLB, action).field("VServerGroupId", &group.id);
        call.field("BackendServers", Value::from(servers))
    };
    parts.map(call).collect()
}

fn written(member: &Member, group: &str) -> Value {
    json!({
        "ServerId": member.instance, "Port": member.port.to_string(), "Weight": member.weight.to_string(), "Type": "ecs", "Description": group,
    })
}
