//! What happens to Nodes, from a watch that sees every change: also a taint that is there for a moment.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, ResourceExt};
use tokio::task::JoinHandle;

/// All Nodes since the watch began. It ends when this is dropped.
pub struct Nodes {
    seen: Arc<Mutex<BTreeMap<String, Seen>>>,
    task: JoinHandle<()>,
}

/// A Node.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Taints that it had when it was first seen.
    pub first_taints: Vec<String>,
    /// Taints that it has.
    pub taints: Vec<String>,
    /// Its provider id.
    pub provider_id: Option<String>,
    /// Whether kubelet reports that it is ready.
    pub ready: bool,
    /// The last report of kubelet about its readiness.
    pub heartbeat: Option<Time>,
    /// When it was first without taints and ready.
    pub joined: Option<Instant>,
    /// When it was deleted.
    pub deleted: Option<Instant>,
}

impl Nodes {
    /// Begins to watch.
    pub fn watch(client: Client) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let mut events = pin!(watcher(Api::<Node>::all(client), watcher::Config::default()));
            while let Some(event) = events.next().await {
                let mut all = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Apply(node) | Event::InitApply(node)) => note(&mut all, &node),
                    Ok(Event::Delete(node)) => {
                        let one: &mut Seen = all.entry(node.name_any()).or_default();
                        one.deleted = Some(Instant::now());
                    }
                    // It tries again by itself.
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        Self { seen, task }
    }

    /// A Node, if there ever was one of this name.
    pub fn get(&self, name: &str) -> Option<Seen> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn note(all: &mut BTreeMap<String, Seen>, node: &Node) {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let taints: Vec<String> = taints.map(|taint| taint.key.clone()).collect();
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = conditions.clone().find(|one| one.type_ == "Ready");
    let ready = condition.is_some_and(|one| one.status == "True");
    let one = all.entry(node.name_any()).or_insert_with(|| Seen {
        first_taints: taints.clone(),
        ..Seen::default()
    });
    one.provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    if ready && taints.is_empty() && one.provider_id.is_some() {
        one.joined.get_or_insert_with(Instant::now);
    }
    one.heartbeat = condition.and_then(|one| one.last_heartbeat_time.clone());
    one.taints = taints;
    one.ready = ready;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn taints_of_the_first_moment_are_kept() {
        let mut all = BTreeMap::new();
        let node = |value| serde_json::from_value::<Node>(value).unwrap();
        let taint = json!({ "key": "uninitialized", "effect": "NoSchedule" });
        note(
            &mut all,
            &node(json!({ "metadata": { "name": "a" }, "spec": { "taints": [taint] } })),
        );
        assert!(all["a"].joined.is_none());
        note(
            &mut all,
            &node(
                json!({ "metadata": { "name": "a" }, "spec": { "providerID": "sim://vm-1" },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
            ),
        );
        let seen = &all["a"];
        assert_eq!(seen.first_taints, ["uninitialized"]);
        assert!(seen.taints.is_empty() && seen.ready && seen.joined.is_some());
    }
}
