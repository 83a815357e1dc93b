//! A day: eventful hours with faults, then time to settle, a quiet hour, and single events that have to be dealt with soon.

use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::ambient;
use k8s_openapi::jiff::Timestamp;
use tokio::time::sleep;

use crate::api::object::{UNINITIALIZED, is_ready, taints};
use crate::api::store::Kind;
use crate::happenings::{Happening, add_machine, add_service, draw, happen, heal, operate, release_foreign};
use crate::judge::calls::{Calls, Quiet};
use crate::judge::truth::wrong;
use crate::process::{PERIODS, replica};
use crate::promise::{Promise, Violation};
use crate::sabotage::{Sabotage, perform};
use crate::world::World;

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
const EVENTFUL: Duration = Duration::from_secs(3600);
const QUIET: Duration = Duration::from_secs(3600);

/// How long after the last fault a promise has to be kept again: the longest pause after failures in a row, and what the repair takes.
const BOUNDS: [(u32, Promise); 6] = [
    (15, Promise::NoBalancerLeft),
    (15, Promise::Routes),
    (15, Promise::NoRouteLeft),
    (16, Promise::Balancers),
    (26, Promise::Nodes),
    (30, Promise::Lifecycle),
];

/// How long it takes at most until a load balancer that somebody deleted is found to be missing.
const DRIFT: Duration = Duration::from_secs(55 * 60);

/// Single events in a world without faults, and until when they have to be dealt with, in seconds.
const PROBES: [(Happening, u64, &[Promise]); 14] = [
    (Happening::AddService, 120, &[Promise::Balancers]),
    (Happening::ChangePorts, 60, &[Promise::Balancers]),
    (Happening::FlipType, 120, &[Promise::Balancers, Promise::NoBalancerLeft]),
    (Happening::DeleteService, 60, &[Promise::NoBalancerLeft]),
    (
        Happening::RecreateService,
        180,
        &[Promise::Balancers, Promise::NoBalancerLeft],
    ),
    (Happening::TakeFinalizer, 30, &[Promise::Balancers]),
    (Happening::ForceDelete, 60, &[Promise::NoBalancerLeft]),
    (
        Happening::AddMachine,
        240,
        &[Promise::Nodes, Promise::Routes, Promise::Balancers],
    ),
    (
        Happening::DeleteMachine,
        1000,
        &[Promise::Lifecycle, Promise::NoRouteLeft, Promise::Balancers],
    ),
    (Happening::StopMachine, 120, &[Promise::Lifecycle]),
    (Happening::StartMachine, 120, &[Promise::Lifecycle]),
    (
        Happening::DeleteNode,
        240,
        &[Promise::Nodes, Promise::Routes, Promise::Balancers],
    ),
    (Happening::LoseRoute, 420, &[Promise::Routes]),
    (Happening::Exclude, 30, &[Promise::Balancers]),
];

/// What came of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// Requests, calls and events. Equal in each run of a seed.
    pub steps: u64,
    /// A draw after the end. Equal in each run of a seed, and another one as soon as a single step was.
    pub fingerprint: u64,
}

/// Simulates a day, on a runtime with one thread and a paused clock. `tracing` prints each step.
pub async fn day(seed: u64, sabotage: Option<Sabotage>, tracing: bool) -> Report {
    let morning = Timestamp::from_second(1_767_225_600).expect("2026 is within range");
    let _simulation = ambient::simulate(morning, seed);
    // For the jitter of kube's watches.
    fastrand::seed(seed);
    let world = World::new(seed, tracing);
    tokio::select! {
        biased;
        _ = world.broken() => {}
        () = live(&world, sabotage) => {}
    }
    let fingerprint = world.lock().chance.number(0, u64::MAX);
    Report {
        violation: world.violation(),
        steps: world.steps(),
        fingerprint,
    }
}

async fn live(world: &Arc<World>, sabotage: Option<Sabotage>) {
    let replicas = world.lock().chance.number(1, 2);
    for _ in 0..replicas {
        tokio::spawn(replica(world.clone()));
    }
    let machines = world.lock().chance.number(3, 6);
    for _ in 0..machines {
        add_machine(world);
    }
    for _ in 0..2 {
        add_service(world);
    }
    settle(world).await;
    if let Some(sabotage) = sabotage {
        perform(world, sabotage);
    }
    while world.now() < DAY {
        // What is broken on purpose is repaired in vain, so it is not quiet.
        if sabotage.is_some_and(|Sabotage(promise)| promise != Promise::NoNeedlessCall) {
            settle(world).await;
        }
        quiet(world).await;
        for _ in 0..3 {
            probe(world).await;
        }
        be_eventful(world).await;
        heal(world);
        settle(world).await;
    }
}

async fn be_eventful(world: &Arc<World>) {
    let end = world.now() + EVENTFUL;
    while world.now() < end {
        let pause = world.lock().chance.seconds(1, 180);
        sleep(pause).await;
        // Now and then several things happen at once.
        let count = if world.lock().chance.once_in(4) { 3 } else { 1 };
        for _ in 0..count {
            let happening = draw(world);
            happen(world, happening);
        }
        release_foreign(world);
    }
}

/// Waits until each promise has to be kept again, and checks that it is.
async fn settle(world: &Arc<World>) {
    let began = world.now();
    sleep(2 * MINUTE).await;
    operate(world);
    release_foreign(world);
    for (minutes, promise) in BOUNDS {
        sleep((began + minutes * MINUTE).saturating_sub(world.now())).await;
        if promise != Promise::Balancers || world.lock().lost.is_empty() {
            check(world, promise);
        }
    }
    if !std::mem::take(&mut world.lock().lost).is_empty() {
        sleep((began + DRIFT).saturating_sub(world.now())).await;
    }
    BOUNDS.iter().for_each(|(_, promise)| check(world, *promise));
}

fn check(world: &World, promise: Promise) {
    let wrong = wrong(&world.lock(), promise);
    if !wrong.is_empty() {
        world.violate(promise, wrong.join("; "));
    }
}

/// Nothing changes for an hour, so nothing is written.
async fn quiet(world: &Arc<World>) {
    // What the last repair wrote may still be told in Events.
    sleep(5 * MINUTE).await;
    world.step(|| "-- a quiet hour begins".into());
    let waiting = |world: &World| {
        let inner = world.lock();
        inner
            .store
            .all(Kind::Nodes)
            .filter(|(_, node)| taints(node).contains(UNINITIALIZED))
            .count() as u64
    };
    let uninitialised = waiting(world);
    world.lock().calls = Calls::default();
    for _ in 0..6 {
        sleep(QUIET / 6).await;
        happen(world, Happening::Heartbeat);
    }
    let (calls, there) = {
        let inner = world.lock();
        let nodes = || inner.store.all(Kind::Nodes).map(|(_, node)| node);
        let there = Quiet {
            services: inner.store.all(Kind::Services).count() as u64,
            uninitialised,
            unready: nodes().any(|node| !is_ready(node)),
        };
        (inner.calls, there)
    };
    if let Some(needless) = calls.needless(QUIET, &there, &PERIODS) {
        world.violate(Promise::NoNeedlessCall, needless);
    }
}

/// One event, which has to be dealt with soon.
async fn probe(world: &Arc<World>) {
    let (happening, seconds, promises) = {
        let mut inner = world.lock();
        *inner.chance.pick(&PROBES).unwrap_or(&PROBES[0])
    };
    if happen(world, happening).is_empty() {
        return;
    }
    sleep(Duration::from_secs(seconds)).await;
    release_foreign(world);
    promises.iter().for_each(|promise| check(world, *promise));
    // What else there may be to do: deletions wait for the brake's window.
    sleep(20 * MINUTE).await;
}
