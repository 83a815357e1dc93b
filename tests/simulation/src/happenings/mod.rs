//! What happens on a day: users, machines, operators, faults, leaders.

mod cloud;
mod machines;
mod processes;
mod services;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::api::object::provider_id;
use crate::api::store::Kind;
use crate::kubelet::sync_later;
use crate::world::World;

pub(crate) use self::machines::add as add_machine;
pub(crate) use self::services::{add as add_service, release_foreign};

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
        Happening::AddMachine => machines::add(world),
        Happening::DeleteMachine => machines::delete_spare(world),
        Happening::AnnounceAndDelete => machines::announce_and_delete(world),
        Happening::ReplaceMachine => machines::replace(world),
        Happening::StopMachine => machines::stop(world, true),
        Happening::StartMachine => machines::stop(world, false),
        Happening::MoveMachine => machines::relocate(world),
        Happening::Partition => machines::partition_one(world),
        Happening::DeleteNode => machines::delete_node(world),
        Happening::Exclude => machines::exclude(world),
        Happening::ForeignTaint => machines::foreign_taint(world),
        Happening::Heartbeat => machines::heartbeat(world),
        Happening::AddService => services::add(world),
        Happening::DeleteService => services::delete(world),
        Happening::RecreateService => services::recreate(world),
        Happening::ChangePorts => services::change_ports(world),
        Happening::FlipType => services::flip_type(world),
        Happening::Annotate => services::annotate(world),
        Happening::TakeFinalizer => services::take_finalizer(world),
        Happening::ForceDelete => services::force_delete(world),
        Happening::LoseBalancer => cloud::lose_balancer(world),
        Happening::LoseRoute | Happening::Blackhole => cloud::spoil_route(world, happening == Happening::Blackhole),
        Happening::StrayRoute => cloud::stray_route(world),
        Happening::Trouble => Some(cloud::trouble(world)),
        Happening::CutWatches => {
            let forget = world.lock().chance.percent(50);
            world.cut_watches(forget);
            Some(format!("forget: {forget}"))
        }
        Happening::KillLeader => processes::kill_leader(world),
        Happening::StallLeader => processes::stall_leader(world),
        Happening::ResignLeader => processes::resign_leader(world),
        Happening::KillAny => processes::kill_any(world),
        Happening::EmptyList => cloud::empty_list(world),
    }
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
