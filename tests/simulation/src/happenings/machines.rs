//! What happens to machines and their Nodes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{keys, pick, seconds};
use crate::api::object::{ANNOUNCED, EXCLUDED, is_ready, taints};
use crate::api::store::Kind;
use crate::kubelet::sync_later;
use crate::world::World;

/// No cluster is larger; the brake lets one Node go in clusters this small.
const MACHINES: usize = 8;

pub(super) fn replace(world: &Arc<World>) -> Option<String> {
    let id = pick(world, &ids(world, None))?;
    let name = delete(world, &id)?;
    let now = world.now();
    world.lock().cloud.add_machine(&name, now);
    sync_later(world, &name, seconds(world, 20, 90));
    Some(name)
}

pub(super) fn relocate(world: &World) -> Option<String> {
    let id = pick(world, &ids(world, None))?;
    let mut inner = world.lock();
    inner.cloud.machines.get_mut(&id)?.moves += 1;
    Some(id)
}

pub(super) fn partition_one(world: &Arc<World>) -> Option<String> {
    let name = pick(world, &keys(world, Kind::Nodes, is_ready))?;
    let time = seconds(world, 60, 1500);
    partition(world, &name, time);
    Some(name)
}

pub(super) fn delete_node(world: &Arc<World>) -> Option<String> {
    let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
    world.delete(Kind::Nodes, &name);
    sync_later(world, &name, seconds(world, 5, 60));
    Some(name)
}

pub(super) fn exclude(world: &World) -> Option<String> {
    let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
    world.edit(Kind::Nodes, &name, |node| {
        toggle(&mut node["metadata"]["labels"], EXCLUDED)
    });
    Some(name)
}

pub(super) fn foreign_taint(world: &World) -> Option<String> {
    let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
    world.edit(Kind::Nodes, &name, |node| toggle_taint(node, "example.com/other"));
    Some(name)
}

pub(super) fn heartbeat(world: &World) -> Option<String> {
    let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
    let at = world.now().as_secs();
    world.edit(Kind::Nodes, &name, |node| node["status"]["images"] = json!(at));
    Some(name)
}

pub(crate) fn add(world: &Arc<World>) -> Option<String> {
    let mut inner = world.lock();
    if inner.cloud.machines.len() >= MACHINES {
        return None;
    }
    let numbers: Vec<u64> = (1..=u64::try_from(MACHINES).unwrap_or(0) + 2).collect();
    let free: Vec<String> = numbers.iter().map(|number| format!("n{number}")).collect();
    // A Node that has waited for its machine for long is looked up with long pauses, and does not say when the machine is back.
    let unused =
        |name: &String| inner.cloud.machine_named(name).is_none() && inner.store.get(Kind::Nodes, name).is_none();
    let free: Vec<String> = free.into_iter().filter(unused).collect();
    let name = inner.chance.pick(&free).cloned()?;
    let late = if inner.chance.percent(30) {
        inner.chance.seconds(5, 90)
    } else {
        Duration::ZERO
    };
    inner.cloud.add_machine(&name, world.now() + late);
    let registers = inner.chance.seconds(10, 40);
    drop(inner);
    sync_later(world, &name, registers);
    Some(name)
}

fn spare(world: &World) -> Vec<String> {
    let all = ids(world, None);
    if all.len() > 2 { all } else { Vec::new() }
}

fn delete(world: &Arc<World>, id: &str) -> Option<String> {
    let name = world.lock().cloud.machines.remove(id)?.name;
    sync_later(world, &name, seconds(world, 20, 60));
    Some(name)
}

/// As the cluster autoscaler does. Not while a broken cloud says that machines are gone: what is announced does not count for the brake.
pub(super) fn announce_and_delete(world: &Arc<World>) -> Option<String> {
    let id = pick(world, &spare(world))?;
    let name = world.lock().cloud.machines.get(&id)?.name.clone();
    if world.lock().conspiracy.until > world.now() {
        return None;
    }
    world.edit(Kind::Nodes, &name, |node| {
        if !taints(node).contains(ANNOUNCED) {
            toggle_taint(node, ANNOUNCED);
        }
    });
    delete(world, &id)
}

pub(super) fn stop(world: &Arc<World>, stopped: bool) -> Option<String> {
    let id = pick(world, &ids(world, Some(!stopped)))?;
    let now = world.now();
    let name = {
        let mut inner = world.lock();
        let machine = inner.cloud.machines.get_mut(&id)?;
        machine.stopped = stopped;
        if !stopped {
            machine.started = Some(now);
        }
        machine.name.clone()
    };
    sync_later(
        world,
        &name,
        if stopped {
            Duration::from_secs(40)
        } else {
            seconds(world, 10, 30)
        },
    );
    Some(name)
}

pub(super) fn partition(world: &Arc<World>, name: &str, time: Duration) {
    let until = world.now() + time;
    world.lock().partitioned.insert(name.to_owned(), until);
    sync_later(world, name, Duration::from_secs(40));
    sync_later(world, name, time + Duration::from_secs(5));
}

fn ids(world: &World, stopped: Option<bool>) -> Vec<String> {
    let inner = world.lock();
    let machines = inner.cloud.machines.iter();
    machines
        .filter(|(_, one)| stopped.is_none_or(|wanted| one.stopped == wanted))
        .map(|(id, _)| id.clone())
        .collect()
}

fn toggle(map: &mut Value, key: &str) {
    if map[key].is_string() {
        map.as_object_mut().map(|map| map.remove(key));
    } else {
        map[key] = json!("");
    }
}

fn toggle_taint(node: &mut Value, key: &str) {
    if !node["spec"]["taints"].is_array() {
        node["spec"]["taints"] = json!([]);
    }
    let Some(list) = node["spec"]["taints"].as_array_mut() else {
        return;
    };
    let before = list.len();
    list.retain(|taint| taint["key"] != key);
    if list.len() == before {
        list.push(json!({ "key": key, "effect": "NoSchedule" }));
    }
}

pub(super) fn delete_spare(world: &Arc<World>) -> Option<String> {
    delete(world, &pick(world, &spare(world))?)
}
