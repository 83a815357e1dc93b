//! What happens on a day: users, machines, operators, faults, leaders.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::faults::{Area, Fault, Window, any};
use crate::judge::GRACE;
use crate::kubelet::sync_later;
use crate::object::{
    ANNOUNCED, EXCLUDED, FINALIZER, age, has_finalizer, is_ready, provider_id, taints, text, uid, wants_balancer,
};
use crate::process::die;
use crate::store::Kind;
use crate::world::World;

/// No cluster is larger; the brake lets one Node go in clusters this small.
const MACHINES: usize = 8;
const SERVICES: usize = 5;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happening {
    AddMachine,
    DeleteMachine,
    AnnounceAndDelete,
    ReplaceMachine,
    StopMachine,
    StartMachine,
    MoveMachine,
    Partition,
    DeleteNode,
    Exclude,
    ForeignTaint,
    Heartbeat,
    AddService,
    DeleteService,
    RecreateService,
    ChangePorts,
    FlipType,
    Annotate,
    TakeFinalizer,
    ForceDelete,
    LoseBalancer,
    LoseRoute,
    StrayRoute,
    Blackhole,
    Trouble,
    CutWatches,
    KillLeader,
    StallLeader,
    ResignLeader,
    KillAny,
    EmptyList,
}

/// With their weights. Nobody takes finalizers off while processes may die: who does that gives up what they are for.
const ALL: [(Happening, u32); 29] = [
    (Happening::AddMachine, 4),
    (Happening::DeleteMachine, 4),
    (Happening::AnnounceAndDelete, 1),
    (Happening::ReplaceMachine, 2),
    (Happening::StopMachine, 2),
    (Happening::StartMachine, 2),
    (Happening::MoveMachine, 1),
    (Happening::Partition, 4),
    (Happening::DeleteNode, 2),
    (Happening::Exclude, 2),
    (Happening::ForeignTaint, 2),
    (Happening::Heartbeat, 2),
    (Happening::AddService, 5),
    (Happening::DeleteService, 4),
    (Happening::RecreateService, 3),
    (Happening::ChangePorts, 3),
    (Happening::FlipType, 3),
    (Happening::Annotate, 2),
    (Happening::LoseBalancer, 1),
    (Happening::LoseRoute, 2),
    (Happening::StrayRoute, 2),
    (Happening::Blackhole, 1),
    (Happening::Trouble, 24),
    (Happening::CutWatches, 4),
    (Happening::KillLeader, 2),
    (Happening::StallLeader, 2),
    (Happening::ResignLeader, 1),
    (Happening::KillAny, 1),
    (Happening::EmptyList, 2),
];

/// Draws one.
pub(crate) fn draw(world: &World) -> Happening {
    let total: u32 = ALL.iter().map(|(_, weight)| weight).sum();
    let mut at = world.lock().chance.number(1, total.into());
    for (happening, weight) in ALL {
        match at.checked_sub(weight.into()).filter(|left| *left > 0) {
            Some(left) => at = left,
            None => return happening,
        }
    }
    Happening::Heartbeat
}

fn pick(world: &World, of: &[String]) -> Option<String> {
    world.lock().chance.pick(of).cloned()
}

fn seconds(world: &World, from: u64, to: u64) -> Duration {
    world.lock().chance.seconds(from, to)
}

fn keys(world: &World, kind: Kind, wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let inner = world.lock();
    inner
        .store
        .all(kind)
        .filter(|(_, object)| wanted(object))
        .map(|(key, _)| key.clone())
        .collect()
}

fn machines(world: &World, stopped: Option<bool>) -> Vec<String> {
    let inner = world.lock();
    let machines = inner.cloud.machines.iter();
    machines
        .filter(|(_, one)| stopped.is_none_or(|wanted| one.stopped == wanted))
        .map(|(id, _)| id.clone())
        .collect()
}

/// It happens, if it can. Answers to what, which is empty when it could not.
pub(crate) fn happen(world: &Arc<World>, happening: Happening) -> String {
    let about = act(world, happening).unwrap_or_default();
    if !about.is_empty() {
        world.step(|| format!("-- {happening:?} {about}"));
    }
    about
}

fn act(world: &Arc<World>, happening: Happening) -> Option<String> {
    match happening {
        Happening::AddMachine => add_machine(world),
        Happening::DeleteMachine => delete_machine(world, &pick(world, &spare_machines(world))?),
        Happening::AnnounceAndDelete => announce_and_delete(world),
        Happening::ReplaceMachine => {
            let id = pick(world, &machines(world, None))?;
            let name = delete_machine(world, &id)?;
            let now = world.now();
            world.lock().cloud.add_machine(&name, now);
            sync_later(world, &name, seconds(world, 20, 90));
            Some(name)
        }
        Happening::StopMachine => stop(world, true),
        Happening::StartMachine => stop(world, false),
        Happening::MoveMachine => {
            let id = pick(world, &machines(world, None))?;
            let mut inner = world.lock();
            inner.cloud.machines.get_mut(&id)?.moves += 1;
            Some(id)
        }
        Happening::Partition => {
            let name = pick(world, &keys(world, Kind::Nodes, is_ready))?;
            let time = seconds(world, 60, 1500);
            partition(world, &name, time);
            Some(name)
        }
        Happening::DeleteNode => {
            let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
            world.delete(Kind::Nodes, &name);
            sync_later(world, &name, seconds(world, 5, 60));
            Some(name)
        }
        Happening::Exclude => {
            let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
            world.edit(Kind::Nodes, &name, |node| {
                toggle(&mut node["metadata"]["labels"], EXCLUDED)
            });
            Some(name)
        }
        Happening::ForeignTaint => {
            let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
            world.edit(Kind::Nodes, &name, |node| toggle_taint(node, "example.com/other"));
            Some(name)
        }
        Happening::Heartbeat => {
            let name = pick(world, &keys(world, Kind::Nodes, |_| true))?;
            let at = world.now().as_secs();
            world.edit(Kind::Nodes, &name, |node| node["status"]["images"] = json!(at));
            Some(name)
        }
        Happening::AddService => add_service(world),
        Happening::DeleteService => {
            let key = pick(world, &services(world))?;
            world.delete(Kind::Services, &key);
            Some(key)
        }
        Happening::RecreateService => {
            let key = pick(world, &services(world))?;
            world.delete(Kind::Services, &key);
            let (again, guarded) = (world.clone(), world.lock().chance.percent(40));
            let (name, after) = (key.clone(), seconds(world, 0, 60));
            tokio::spawn(async move {
                tokio::time::sleep(after).await;
                again.create(Kind::Services, &name, service(&name, 80, false, guarded));
            });
            Some(key)
        }
        Happening::ChangePorts => {
            let (key, port) = (pick(world, &services(world))?, world.lock().chance.number(81, 99));
            world.edit(Kind::Services, &key, |service| {
                service["spec"]["ports"][0]["port"] = json!(port)
            });
            Some(format!("{key} to {port}"))
        }
        Happening::FlipType => {
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
        Happening::Annotate => {
            let (key, at) = (pick(world, &services(world))?, world.now().as_secs().to_string());
            world.edit(Kind::Services, &key, |service| {
                service["metadata"]["annotations"]["example.com/at"] = json!(at)
            });
            Some(key)
        }
        Happening::TakeFinalizer => {
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
        Happening::ForceDelete => {
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
        Happening::LoseBalancer => {
            let mut inner = world.lock();
            let all: Vec<String> = inner.cloud.balancers.keys().cloned().collect();
            let uid = inner.chance.pick(&all).cloned()?;
            inner.cloud.balancers.remove(&uid);
            inner.lost.insert(uid.clone());
            Some(uid)
        }
        Happening::LoseRoute | Happening::Blackhole => {
            let mut inner = world.lock();
            let all: Vec<String> = inner.cloud.routes.keys().cloned().collect();
            let id = inner.chance.pick(&all).cloned()?;
            if happening == Happening::LoseRoute {
                inner.cloud.routes.remove(&id);
            } else {
                inner.cloud.routes.get_mut(&id)?.blackhole = true;
            }
            Some(id)
        }
        Happening::StrayRoute => {
            let mut inner = world.lock();
            let range = format!("10.244.{}.0/24", inner.chance.number(251, 255));
            inner.cloud.add_route(&range, None, false);
            Some(range)
        }
        Happening::Trouble => Some(trouble(world)),
        Happening::CutWatches => {
            let forget = world.lock().chance.percent(50);
            world.cut_watches(forget);
            Some(format!("forget: {forget}"))
        }
        Happening::KillLeader => {
            let leader = world.lock().lease.holder()?;
            die(world, leader);
            Some(format!("p{leader}"))
        }
        Happening::StallLeader => {
            let until = world.now() + seconds(world, 60, 400);
            let leader = world.lock().lease.holder()?;
            world.lock().processes.get_mut(&leader)?.stalled = until;
            Some(format!("p{leader}"))
        }
        Happening::ResignLeader => {
            let leader = world.lock().lease.holder()?;
            world.lock().processes.get(&leader)?.resigns.notify_one();
            Some(format!("p{leader}"))
        }
        Happening::KillAny => {
            let alive: Vec<u32> = {
                let inner = world.lock();
                inner
                    .processes
                    .iter()
                    .filter(|(_, state)| !state.dead)
                    .map(|(id, _)| *id)
                    .collect()
            };
            let process = world.lock().chance.pick(&alive).copied()?;
            die(world, process);
            Some(format!("p{process}"))
        }
        Happening::EmptyList => empty_list(world),
    }
}

pub(crate) fn add_machine(world: &Arc<World>) -> Option<String> {
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

fn spare_machines(world: &World) -> Vec<String> {
    let all = machines(world, None);
    if all.len() > 2 { all } else { Vec::new() }
}

fn delete_machine(world: &Arc<World>, id: &str) -> Option<String> {
    let name = world.lock().cloud.machines.remove(id)?.name;
    sync_later(world, &name, seconds(world, 20, 60));
    Some(name)
}

/// As the cluster autoscaler does. Not while a broken cloud says that machines are gone: what is announced does not count for the brake.
fn announce_and_delete(world: &Arc<World>) -> Option<String> {
    let id = pick(world, &spare_machines(world))?;
    let name = world.lock().cloud.machines.get(&id)?.name.clone();
    if world.lock().conspiracy.until > world.now() {
        return None;
    }
    world.edit(Kind::Nodes, &name, |node| {
        if !taints(node).contains(ANNOUNCED) {
            toggle_taint(node, ANNOUNCED);
        }
    });
    delete_machine(world, &id)
}

fn stop(world: &Arc<World>, stopped: bool) -> Option<String> {
    let id = pick(world, &machines(world, Some(!stopped)))?;
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

fn partition(world: &Arc<World>, name: &str, time: Duration) {
    let until = world.now() + time;
    world.lock().partitioned.insert(name.to_owned(), until);
    sync_later(world, name, Duration::from_secs(40));
    sync_later(world, name, time + Duration::from_secs(5));
}

/// The cloud's list is empty for minutes, while several Nodes are not Ready whose machines run. All of them are older than the grace
/// period: younger ones do not count for the brake.
fn empty_list(world: &Arc<World>) -> Option<String> {
    let names = keys(world, Kind::Nodes, |node| {
        is_ready(node) && age(node) > GRACE * 2 && !taints(node).contains(ANNOUNCED)
    });
    if names.len() < 2 {
        return None;
    }
    let time = seconds(world, 120, 1200);
    let (now, mut inner) = (world.now(), world.lock());
    let ids: Vec<String> = names
        .iter()
        .filter_map(|name| {
            inner
                .store
                .get(Kind::Nodes, name)
                .map(|node| provider_id(node).to_owned())
        })
        .filter(|id| inner.cloud.machines.contains_key(id))
        .collect();
    // After this, none of them is lied about alone.
    for id in &ids {
        inner
            .lies
            .insert(id.clone(), now.saturating_sub(Duration::from_secs(100)));
    }
    inner.conspiracy.machines = ids;
    inner.conspiracy.until = now + time;
    drop(inner);
    let count = usize::try_from(world.lock().chance.number(2, names.len() as u64)).unwrap_or(2);
    for name in names.iter().take(count) {
        partition(world, name, time + Duration::from_secs(10));
    }
    Some(names[..count].join(" "))
}

fn services(world: &World) -> Vec<String> {
    keys(world, Kind::Services, |_| true)
}

pub(crate) fn add_service(world: &World) -> Option<String> {
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
    let dying = keys(world, Kind::Services, |one| {
        crate::object::is_dying(one) && !has_finalizer(one)
    });
    for key in dying {
        world.edit(Kind::Services, &key, |service| {
            service["metadata"]["finalizers"] = json!([])
        });
    }
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

fn trouble(world: &World) -> String {
    let now = world.now();
    let mut inner = world.lock();
    let area = inner.chance.pick(&Area::ALL).copied().unwrap_or(Area::Requests);
    let outage = inner.chance.percent(35);
    let window = if outage {
        let fault = Some(any(area, &mut inner.chance));
        let fault = fault.filter(|fault| !matches!(fault, Fault::DieBefore | Fault::DieAfter));
        Window {
            until: now + inner.chance.seconds(10, 480),
            percent: 100,
            fault: fault.or(Some(Fault::Unavailable)),
        }
    } else {
        let percent = u32::try_from(inner.chance.number(5, 40)).unwrap_or(5);
        Window {
            until: now + inner.chance.seconds(60, 900),
            percent,
            fault: None,
        }
    };
    inner.faults.open(area, window);
    format!("{area:?} {window:?}")
}

/// All is well again: no faults, Nodes reach the API server, and the operator deletes the Nodes that the brake holds.
pub(crate) fn heal(world: &Arc<World>) {
    world.step(|| "-- all faults end".into());
    let names: Vec<String> = {
        let mut inner = world.lock();
        inner.faults.close_all();
        inner.conspiracy.until = Duration::ZERO;
        for state in inner.processes.values_mut() {
            state.stalled = Duration::ZERO;
        }
        std::mem::take(&mut inner.partitioned).into_keys().collect()
    };
    for name in names {
        sync_later(world, &name, Duration::from_secs(1));
    }
}

/// Deletes the Nodes of machines that are gone, but one: together they are more than the brake lets go.
pub(crate) fn operate(world: &Arc<World>) {
    let gone: Vec<String> = {
        let inner = world.lock();
        let is_gone = |id: &str| !id.is_empty() && !inner.cloud.machines.contains_key(id);
        let nodes = inner
            .store
            .all(Kind::Nodes)
            .filter(|(_, node)| is_gone(provider_id(node)));
        nodes.map(|(name, _)| name.clone()).collect()
    };
    for name in gone.iter().skip(1) {
        world.delete(Kind::Nodes, name);
        sync_later(world, name, Duration::from_secs(5));
    }
}
