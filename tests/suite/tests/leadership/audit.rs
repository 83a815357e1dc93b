//! Who asked for what and when, from the API server's audit log.

use std::path::Path;

use serde::Deserialize;

/// One request, at the moment when the API server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// RFC 3339 with microseconds, so that its order is the order in time.
    pub at: String,
    /// As in RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// Resource with its subresource: `nodes/status`.
    pub resource: String,
    /// The user whose rights were used.
    pub user: String,
    /// Identity of the process, from its user agent.
    pub identity: String,
}

impl Seen {
    fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    stage: String,
    verb: String,
    #[serde(default)]
    user_agent: String,
    user: User,
    object_ref: Option<Object>,
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    resource: String,
    subresource: Option<String>,
}

/// All requests of Cloudwit's processes for objects, in the order in which they were received.
pub fn requests(log: &Path) -> Vec<Seen> {
    let text = std::fs::read_to_string(log).unwrap();
    // The last line may be half written.
    let records = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let mut requests: Vec<Seen> = records.filter_map(seen).collect();
    requests.sort_by(|one, other| one.at.cmp(&other.at));
    requests
}

/// All writes but those of the Lease itself.
pub fn writes(log: &Path) -> Vec<Seen> {
    let mut requests = requests(log);
    requests.retain(|seen| seen.is_write() && seen.resource != "leases");
    requests
}

fn seen(record: Record) -> Option<Seen> {
    let object = record.object_ref?;
    if !record.user_agent.starts_with("cloudwit/") || record.stage != "RequestReceived" {
        return None;
    }
    let (_, identity) = record.user_agent.rsplit_once(' ')?;
    Some(Seen {
        at: record.request_received_timestamp,
        verb: record.verb,
        resource: match object.subresource {
            Some(part) => format!("{}/{part}", object.resource),
            None => object.resource,
        },
        user: record.user.username,
        identity: identity.to_owned(),
    })
}

/// The processes that wrote, in the order of their first write.
///
/// # Panics
///
/// When one of them wrote again after another one had begun.
pub fn writers_in_turn(writes: &[Seen]) -> Vec<String> {
    let mut writers: Vec<String> = Vec::new();
    for write in writes {
        if writers.last() == Some(&write.identity) {
            continue;
        }
        assert!(
            !writers.contains(&write.identity),
            "{} wrote after {} had begun: {write:?}",
            write.identity,
            writers.last().unwrap()
        );
        writers.push(write.identity.clone());
    }
    writers
}
