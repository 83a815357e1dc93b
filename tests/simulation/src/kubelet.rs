//! What kubelets and the node controller of Kubernetes do: Nodes register, become Ready, and stop being it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use crate::api::object::{UNINITIALIZED, condition, provider_id};
use crate::api::store::Kind;
use crate::world::World;

/// Brings a Node in line with its machine after a while.
pub(crate) fn sync_later(world: &Arc<World>, name: &str, after: Duration) {
    let (world, name) = (world.clone(), name.to_owned());
    tokio::spawn(async move {
        sleep(after).await;
        sync(&world, &name);
    });
}

fn sync(world: &Arc<World>, name: &str) {
    let (machine, node, reachable) = {
        let inner = world.lock();
        let machine = inner.cloud.machine_named(name);
        let machine = machine
            .filter(|(_, machine)| !machine.stopped)
            .map(|(id, machine)| (id.clone(), machine.number));
        let reachable = inner.partitioned.get(name).is_none_or(|until| *until <= world.now());
        (machine, inner.store.get(Kind::Nodes, name).cloned(), reachable)
    };
    match (machine, node) {
        (Some((_, number)), None) if reachable => {
            world.create(Kind::Nodes, name, registration(name, number));
            sync_later(world, name, Duration::from_secs(20));
        }
        // The Node of an earlier machine of this name has to go first.
        (Some((id, _)), Some(node)) if !provider_id(&node).is_empty() && provider_id(&node) != id => {
            set_ready(world, name, &node, false);
            sync_later(world, name, Duration::from_secs(60));
        }
        (Some(_), Some(node)) => set_ready(world, name, &node, reachable),
        (None, Some(node)) => set_ready(world, name, &node, false),
        (_, None) => {}
    }
}

fn registration(name: &str, number: u64) -> Value {
    json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name }, "annotations": { "example.com/note": "stays" } },
        "spec": {
            "podCIDRs": [format!("10.244.{}.0/24", number % 250)],
            "taints": [
                { "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" },
                { "key": "example.com/foreign", "effect": "PreferNoSchedule" },
            ],
        },
        "status": {
            "addresses": [{ "type": "Hostname", "address": name }],
            "conditions": [{ "type": "Ready", "status": "False" }],
            "nodeInfo": { "systemUUID": "" },
        },
    })
}

fn set_ready(world: &World, name: &str, node: &Value, ready: bool) {
    let status = if ready { "True" } else { "Unknown" };
    if condition(node, "Ready") == Some(status) {
        return;
    }
    world.step(|| format!("Node {name} is Ready: {status}"));
    world.edit(Kind::Nodes, name, |node| {
        if let Some(conditions) = node["status"]["conditions"].as_array_mut() {
            for condition in conditions.iter_mut().filter(|condition| condition["type"] == "Ready") {
                condition["status"] = json!(status);
            }
        }
    });
}
