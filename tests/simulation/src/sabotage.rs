//! Breaks one promise on purpose, to show that it is watched.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::object::{FINALIZER, SHUTDOWN, UNINITIALIZED, has_finalizer, provider_id};
use crate::api::store::Kind;
use crate::api::{Operation, Verb, carry_out};
use crate::cloud::state::Deceit;
use crate::promise::Promise;
use crate::world::World;

/// What is done wrong, in the name of the leading process or by the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sabotage(pub Promise);

fn write(world: &World, process: u32, verb: Verb, kind: Kind, key: &str, body: Value) {
    let status = kind == Kind::Services;
    let _ = carry_out(
        world,
        process,
        &Operation {
            verb,
            kind,
            key: key.to_owned(),
            status,
            body,
        },
    );
}

/// Does it. All Nodes and Services are as they should be before.
pub(crate) fn perform(world: &Arc<World>, Sabotage(promise): Sabotage) {
    let (leader, node, service) = {
        let inner = world.lock();
        let first = |kind| inner.store.all(kind).next().map(|(key, _)| key.clone());
        let mut guarded = inner
            .store
            .all(Kind::Services)
            .filter(|(_, service)| has_finalizer(service));
        let guarded = guarded.next().map(|(key, _)| key.clone());
        (inner.lease.holder(), first(Kind::Nodes), guarded)
    };
    let (Some(leader), Some(node), Some(service)) = (leader, node, service) else {
        return;
    };
    let patch = |kind, key: &str, body| write(world, leader, Verb::Merge, kind, key, body);
    let deceive = |deceit| world.lock().cloud.deceit = deceit;
    let lose_machine = |name: &str| {
        let mut inner = world.lock();
        let id = inner.cloud.machine_named(name).map(|(id, _)| id.clone());
        id.and_then(|id| inner.cloud.machines.remove(&id));
    };
    match promise {
        Promise::LivingNode => write(world, leader, Verb::Delete, Kind::Nodes, &node, Value::Null),
        Promise::Proof => {
            lose_machine(&node);
            write(world, leader, Verb::Delete, Kind::Nodes, &node, Value::Null);
        }
        Promise::Brake => {
            let now = world.now();
            lose_machine(&node);
            let id = world
                .lock()
                .store
                .get(Kind::Nodes, &node)
                .map(|node| provider_id(node).to_owned());
            world.edit(Kind::Nodes, &node, |node| node["status"]["conditions"] = json!([]));
            if let (Some(id), Some(state)) = (id, world.lock().processes.get_mut(&leader)) {
                state
                    .absences
                    .insert(id, (now.saturating_sub(Duration::from_secs(200)), now, 5));
                state.deletions.push(now);
            }
            write(world, leader, Verb::Delete, Kind::Nodes, &node, Value::Null);
        }
        Promise::OneWriter => {
            if let Some(state) = world.lock().processes.get_mut(&leader) {
                state.until = world.now();
            }
            patch(Kind::Nodes, &node, json!({ "metadata": {} }));
        }
        Promise::FinalizerFirst => {
            deceive(Deceit::None);
            world.edit(Kind::Services, &service, |service| {
                service["metadata"]["finalizers"] = json!([])
            });
            let uid = world
                .lock()
                .store
                .get(Kind::Services, &service)
                .map(|one| crate::api::object::uid(one).to_owned());
            let (namespace, name) = service.split_once('/').unwrap_or_default();
            let view = cloudwit_model::Service {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                uid: uid.unwrap_or_default(),
                ..Default::default()
            };
            let mut inner = world.lock();
            inner.cloud.balancers.clear();
            crate::judge::judge_balancer(world, &mut inner, &view);
        }
        Promise::FinalizerLast => {
            world.edit(Kind::Services, &service, |service| {
                service["spec"]["type"] = json!("ClusterIP")
            });
            let body = json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": [FINALIZER] } });
            write(world, leader, Verb::Strategic, Kind::Services, &service, body);
        }
        Promise::ForeignEntries => patch(Kind::Nodes, &node, json!({ "spec": { "taints": null } })),
        Promise::Initialised => {
            world.edit(Kind::Nodes, &node, |node| {
                node["spec"]["taints"] = json!([{ "key": UNINITIALIZED, "effect": "NoSchedule" }]);
                node["status"]["addresses"] = json!([]);
            });
            patch(Kind::Nodes, &node, json!({ "spec": { "taints": null } }));
        }
        Promise::ProviderIdOnce => patch(Kind::Nodes, &node, json!({ "spec": { "providerID": "sim://other" } })),
        Promise::ShutdownTaint => {
            let taints = world
                .lock()
                .store
                .get(Kind::Nodes, &node)
                .map(|node| node["spec"]["taints"].clone());
            let mut taints = taints.filter(Value::is_array).unwrap_or_else(|| json!([]));
            if let Some(list) = taints.as_array_mut() {
                list.push(json!({ "key": SHUTDOWN, "effect": "NoSchedule" }));
            }
            patch(Kind::Nodes, &node, json!({ "spec": { "taints": taints } }));
        }
        Promise::Balancers => {
            world.lock().cloud.balancers.clear();
            deceive(Deceit::MakesNoBalancer);
        }
        Promise::NoBalancerLeft => {
            // Against the finalizer's promise too, which is watched on its own: here it is one that a Service never had.
            world
                .lock()
                .cloud
                .balancers
                .insert("uid-of-nobody".into(), crate::cloud::state::BalancerState::default());
        }
        Promise::Routes => {
            world.lock().cloud.routes.clear();
            deceive(Deceit::MakesNoRoute);
        }
        Promise::NoRouteLeft => {
            world.lock().cloud.add_route("10.244.255.0/24", None, false);
            deceive(Deceit::KeepsRoutes);
        }
        Promise::Nodes => deceive(Deceit::WrongAddresses),
        Promise::Lifecycle => {
            lose_machine(&node);
            deceive(Deceit::KeepsMachines);
            crate::kubelet::sync_later(world, &node, Duration::from_secs(1));
        }
        // Somebody fights over the finalizer, and the controller takes part; its Events alone are too many.
        Promise::NoNeedlessCall => {
            let world = world.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(Duration::from_secs(1000)).await;
                    world.edit(Kind::Services, &service, |service| {
                        if has_finalizer(service)
                            && let Some(list) = service["metadata"]["finalizers"].as_array_mut()
                        {
                            list.retain(|name| name != FINALIZER);
                        }
                    });
                }
            });
        }
        Promise::Alive => world.violate(Promise::Alive, "a loop ended".into()),
    }
}
