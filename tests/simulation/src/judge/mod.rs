//! Judges each write of a process at the moment it takes effect.

pub(crate) mod calls;
pub(crate) mod truth;

use std::time::Duration;

use cloudwit_model::Service;
use serde_json::Value;

use crate::api::object::{
    ANNOUNCED, FINALIZER, SHUTDOWN, UNINITIALIZED, age, condition, has_finalizer, is_ready, items, provider_id,
    strings, taints, text, uid, wants_balancer,
};
use crate::api::store::Kind;
use crate::api::{Operation, Verb};
use crate::promise::Promise;
use crate::world::{Inner, World};

/// The time between the two absences, the age and the window of the brake, as the options have them by default.
pub(crate) const CONFIRM_AFTER: Duration = Duration::from_secs(120);
pub(crate) const GRACE: Duration = Duration::from_secs(300);
pub(crate) const WINDOW: Duration = Duration::from_secs(600);

/// So long a process may act on what a watch that is cut again and again has shown it.
const STALE: Duration = Duration::from_secs(900);

/// A Node without a provider id, for which the cloud has no machine by name, stays for so long.
const NEVER_INITIALISED: Duration = Duration::from_secs(3600);

/// Of clusters as small as these, the brake lets one Node go in a window.
const ALLOWED: usize = 1;

/// A change of the cloud or the cluster by a process: it has to lead.
pub(crate) fn judge_writer(world: &World, inner: &mut Inner, process: u32, what: &str) {
    let now = world.now();
    let until = inner
        .processes
        .get(&process)
        .map_or(Duration::ZERO, |state| state.until);
    if now >= until {
        inner.broken(
            world,
            Promise::OneWriter,
            format!("p{process}, whose term ended at {until:?}: {what}"),
        );
    }
}

/// A load balancer is about to be made or changed.
pub(crate) fn judge_balancer(world: &World, inner: &mut Inner, service: &Service) {
    let key = format!("{}/{}", service.namespace, service.name);
    let stored = inner
        .store
        .get(Kind::Services, &key)
        .filter(|stored| uid(stored) == service.uid);
    let carries = stored.is_some_and(has_finalizer);
    let excused = inner
        .unprotected
        .get(&service.uid)
        .is_some_and(|at| world.now() < *at + STALE);
    if !carries && !excused && !inner.cloud.balancers.contains_key(&service.uid) {
        inner.broken(world, Promise::FinalizerFirst, format!("a load balancer for {key}"));
    }
}

/// A patch (with what comes out of it) or a delete.
pub(crate) fn judge(world: &World, process: u32, operation: &Operation, before: &Value, after: Option<&Value>) {
    let mut inner = world.lock();
    let inner = &mut *inner;
    judge_writer(
        world,
        inner,
        process,
        &format!("{:?} of {}", operation.verb, operation.key),
    );
    match (operation.kind, after) {
        (Kind::Nodes, Some(after)) => judge_node(world, inner, before, after),
        (Kind::Nodes, None) if operation.verb == Verb::Delete => judge_deletion(world, inner, process, before),
        (Kind::Services, Some(after)) => judge_service(world, inner, before, after),
        (kind, _) => inner.broken(world, Promise::ForeignEntries, format!("a {} is deleted", kind.name())),
    }
}

fn judge_deletion(world: &World, inner: &mut Inner, process: u32, node: &Value) {
    let (now, id, name) = (world.now(), provider_id(node), text(node, "/metadata/name"));
    if inner.cloud.machines.contains_key(id) {
        return inner.broken(
            world,
            Promise::LivingNode,
            format!("{name} is deleted, whose machine {id} exists"),
        );
    }
    let age = age(node);
    if id.is_empty() {
        if inner.cloud.machine_named(name).is_some() {
            return inner.broken(
                world,
                Promise::LivingNode,
                format!("{name} is deleted, whose machine exists"),
            );
        }
        if is_ready(node) || age < NEVER_INITIALISED {
            inner.broken(
                world,
                Promise::Proof,
                format!("{name} is deleted, {age:?} old and without a provider id"),
            );
        }
        return;
    }
    let state = inner.processes.get(&process);
    let proof = state.and_then(|state| state.absences.get(id)).copied();
    let proven = proof.is_some_and(|(first, last, answers)| answers >= 2 && last >= first + CONFIRM_AFTER);
    if is_ready(node) || age < GRACE || !proven {
        let text = format!(
            "{name} is deleted: Ready {:?}, age {age:?}, absences {proof:?}",
            condition(node, "Ready")
        );
        return inner.broken(world, Promise::Proof, text);
    }
    if taints(node).contains(ANNOUNCED) {
        return;
    }
    let Some(state) = inner.processes.get_mut(&process) else {
        return;
    };
    state.deletions.retain(|at| now < *at + WINDOW);
    state.deletions.push(now);
    let count = state.deletions.len();
    if count > ALLOWED {
        inner.broken(
            world,
            Promise::Brake,
            format!("{name} is the {count}th Node deleted within ten minutes"),
        );
    }
}

fn judge_node(world: &World, inner: &mut Inner, before: &Value, after: &Value) {
    let name = text(before, "/metadata/name");
    let (had, has) = (taints(before), taints(after));
    let ours = [UNINITIALIZED, SHUTDOWN];
    let foreign = |taints: &std::collections::BTreeSet<&str>| -> Vec<String> {
        taints
            .iter()
            .filter(|key| !ours.contains(key))
            .map(|key| (*key).to_owned())
            .collect()
    };
    if foreign(&had) != foreign(&has) || has.difference(&had).any(|key| *key != SHUTDOWN) {
        inner.broken(
            world,
            Promise::ForeignEntries,
            format!("taints of {name}: {had:?} become {has:?}"),
        );
    }
    let (old, new) = (provider_id(before), provider_id(after));
    let its_own = inner.cloud.ever.get(new).is_some_and(|machine| machine == name);
    if old != new && !(old.is_empty() && its_own) {
        inner.broken(
            world,
            Promise::ProviderIdOnce,
            format!("of {name}: {old:?} becomes {new:?}"),
        );
    }
    if had.contains(UNINITIALIZED) && !has.contains(UNINITIALIZED) {
        let addresses = items(after, "/status/addresses");
        if new.is_empty() || !addresses.iter().any(|address| address["type"] == "InternalIP") {
            inner.broken(
                world,
                Promise::Initialised,
                format!("{name} loses its taint: {new:?}, {addresses:?}"),
            );
        }
    }
    if has.contains(SHUTDOWN) && !had.contains(SHUTDOWN) {
        let recently = |at: Duration| world.now() < at + Duration::from_secs(400);
        let machine = inner.cloud.machines.get(new);
        if machine.is_some_and(|machine| !machine.stopped && !machine.started.is_some_and(recently)) {
            inner.broken(
                world,
                Promise::ShutdownTaint,
                format!("{name} gets the taint although its machine runs"),
            );
        }
    }
}

fn judge_service(world: &World, inner: &mut Inner, before: &Value, after: &Value) {
    let name = text(before, "/metadata/name");
    let foreign = |service: &Value| -> Vec<String> {
        let all = strings(service, "/metadata/finalizers");
        all.into_iter()
            .filter(|name| *name != FINALIZER)
            .map(str::to_owned)
            .collect()
    };
    let notes = |service: &Value| service.pointer("/metadata/annotations").cloned();
    let stays = foreign(before) == foreign(after) && notes(before) == notes(after) && before["spec"] == after["spec"];
    if !stays {
        inner.broken(
            world,
            Promise::ForeignEntries,
            format!("{name} loses entries of others: {after}"),
        );
    }
    if has_finalizer(before) && !has_finalizer(after) {
        inner.unprotected.insert(uid(before).to_owned(), world.now());
    }
    if has_finalizer(before) && !has_finalizer(after) && !wants_balancer(before) {
        let left = inner.cloud.balancers.get(uid(before)).cloned();
        if let Some(left) = left {
            inner.broken(
                world,
                Promise::FinalizerLast,
                format!("{name} is let go, and there is {left:?}"),
            );
        }
    }
}
