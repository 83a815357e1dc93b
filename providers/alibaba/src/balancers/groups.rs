//! Server groups of the Service, and the instances in them.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::fields::text;
use super::task::{Member, MemberChanges, Task, member_changes};
use super::wanted::Members;
use crate::api::Call;

/// A server group of the Service.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub id: String,
    pub name: String,
    /// All that is told.
    pub seen: Value,
}

/// Brings the instances in groups up to date. `port_of` tells the Nodes' port of a group; groups without one stay as they are. `servers` reads what is in a
/// group, `calls` has the requests for changes of it.
///
/// # Errors
/// What the cloud says.
pub fn members(
    task: &Task<'_>,
    wanted: &Members,
    groups: &[Group],
    port_of: impl Fn(&str) -> Option<u16>,
    servers: impl Fn(&Group) -> Result<Vec<Value>, Failure>,
    calls: impl Fn(&Group, &MemberChanges) -> Vec<Call>,
) -> Result<Vec<Call>, Failure> {
    let mut all = Vec::new();
    for group in groups {
        let Some(port) = port_of(&group.name) else { continue };
        let seen: Vec<Member> = servers(group)?.iter().map(read).collect();
        let changes = member_changes(wanted, port, &seen).of_existing(task)?;
        all.extend(calls(group, &changes));
    }
    Ok(all)
}

fn read(seen: &Value) -> Member {
    Member {
        instance: text(&seen["ServerId"]),
        port: text(&seen["Port"]).parse().unwrap_or_default(),
        weight: text(&seen["Weight"]).parse().unwrap_or_default(),
    }
}
