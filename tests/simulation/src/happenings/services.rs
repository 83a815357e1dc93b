//! What users and other controllers do to Services.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{keys, pick, seconds};
use crate::api::object::{FINALIZER, has_finalizer, is_dying, text, uid, wants_balancer};
use crate::api::store::Kind;
use crate::world::World;

/// No cluster has more.
const SERVICES: usize = 5;

pub(super) fn delete(world: &World) -> Option<String> {
    let key = pick(world, &all(world))?;
    world.delete(Kind::Services, &key);
    Some(key)
}

pub(super) fn recreate(world: &Arc<World>) -> Option<String> {
    let key = pick(world, &all(world))?;
    world.delete(Kind::Services, &key);
    let (again, guarded) = (world.clone(), world.lock().chance.percent(40));
    let (name, after) = (key.clone(), seconds(world, 0, 60));
    tokio::spawn(async move {
        tokio::time::sleep(after).await;
        again.create(Kind::Services, &name, service(&name, 80, false, guarded));
    });
    Some(key)
}

pub(super) fn change_ports(world: &World) -> Option<String> {
    let (key, port) = (pick(world, &all(world))?, world.lock().chance.number(81, 99));
    world.edit(Kind::Services, &key, |service| {
        service["spec"]["ports"][0]["port"] = json!(port)
    });
    Some(format!("{key} to {port}"))
}

pub(super) fn flip_type(world: &World) -> Option<String> {
    let key = pick(
        world,
        &keys(world, Kind::Services, |one| {
            text(one, "/spec/loadBalancerClass").is_empty()
        }),
    )?;
    unprotect(world, &key);
    world.edit(Kind::Services, &key, |service| {
        let wanted = service["spec"]["type"] == "LoadBalancer";
        service["spec"]["type"] = json!(if wanted { "ClusterIP" } else { "LoadBalancer" });
    });
    Some(key)
}

pub(super) fn annotate(world: &World) -> Option<String> {
    let (key, at) = (pick(world, &all(world))?, world.now().as_secs().to_string());
    world.edit(Kind::Services, &key, |service| {
        service["metadata"]["annotations"]["example.com/at"] = json!(at)
    });
    Some(key)
}

pub(super) fn take_finalizer(world: &World) -> Option<String> {
    let key = pick(
        world,
        &keys(world, Kind::Services, |one| wants_balancer(one) && has_finalizer(one)),
    )?;
    unprotect(world, &key);
    world.edit(Kind::Services, &key, |service| {
        if let Some(list) = service["metadata"]["finalizers"].as_array_mut() {
            list.retain(|name| name != FINALIZER);
        }
    });
    Some(key)
}

pub(super) fn force_delete(world: &World) -> Option<String> {
    let key = pick(
        world,
        &keys(world, Kind::Services, |one| wants_balancer(one) && has_finalizer(one)),
    )?;
    unprotect(world, &key);
    world.edit(Kind::Services, &key, |service| {
        service["metadata"]["finalizers"] = json!([])
    });
    world.delete(Kind::Services, &key);
    Some(key)
}

fn all(world: &World) -> Vec<String> {
    keys(world, Kind::Services, |_| true)
}

pub(crate) fn add(world: &World) -> Option<String> {
    let free: Vec<String> = (1..=SERVICES).map(|number| format!("default/s{number}")).collect();
    let free: Vec<String> = free
        .into_iter()
        .filter(|key| world.lock().store.get(Kind::Services, key).is_none())
        .collect();
    let key = pick(world, &free)?;
    let foreign = world.lock().chance.percent(10);
    let guarded = world.lock().chance.percent(40);
    world.create(Kind::Services, &key, service(&key, 80, foreign, guarded));
    Some(key)
}

/// `foreign`: of the class of another controller; `guarded`: with the finalizer of another one.
fn service(key: &str, port: u64, foreign: bool, guarded: bool) -> Value {
    let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
    let mut service = json!({
        "metadata": { "name": name, "namespace": namespace, "annotations": { "example.com/note": "stays" },
            "finalizers": if guarded { json!(["example.com/foreign"]) } else { json!([]) } },
        "spec": { "type": "LoadBalancer", "ports": [{ "name": "a", "port": port, "protocol": "TCP", "nodePort": 30080 }] },
        "status": { "loadBalancer": {} },
    });
    if foreign {
        service["spec"]["loadBalancerClass"] = json!("example.com/other");
    }
    service
}

fn unprotect(world: &World, key: &str) {
    let (now, mut inner) = (world.now(), world.lock());
    if let Some(uid) = inner
        .store
        .get(Kind::Services, key)
        .map(|service| uid(service).to_owned())
    {
        inner.unprotected.insert(uid, now);
    }
}

/// The other controller, whose finalizer it is, lets Services go that die.
pub(crate) fn release_foreign(world: &World) {
    let dying = keys(world, Kind::Services, |one| is_dying(one) && !has_finalizer(one));
    for key in dying {
        world.edit(Kind::Services, &key, |service| {
            service["metadata"]["finalizers"] = json!([])
        });
    }
}
