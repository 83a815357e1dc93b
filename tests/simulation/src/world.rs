//! All that there is beside the processes: the API server, the cloud, the Lease, and what went wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cloudwit_controllers::ambient;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::object;
use crate::api::store::{Kind, Store};
use crate::chance::Chance;
use crate::cloud::state::CloudState;
use crate::faults::{Area, Fault, Faults};
use crate::judge::calls::Calls;
use crate::lease::Lease;
use crate::process::ProcessState;
use crate::promise::{Promise, Violation, clock};

/// The world of one day; all tasks share it.
pub(crate) struct World {
    began: Instant,
    tracing: bool,
    nodes_changed: Notify,
    services_changed: Notify,
    broken: Notify,
    inner: Mutex<Inner>,
}

/// What changes.
pub(crate) struct Inner {
    pub(crate) chance: Chance,
    pub(crate) store: Store,
    pub(crate) cloud: CloudState,
    pub(crate) faults: Faults,
    pub(crate) lease: Lease,
    pub(crate) processes: BTreeMap<u32, ProcessState>,
    pub(crate) calls: Calls,
    /// Cuts of all watches so far.
    pub(crate) cuts: u64,
    /// Machines that cannot reach the API server, by name.
    pub(crate) partitioned: BTreeMap<String, Duration>,
    /// Since when each Node has been Ready.
    pub(crate) ready_since: BTreeMap<String, Duration>,
    /// Machines that a cloud with an empty list says do not exist.
    pub(crate) conspiracy: Conspiracy,
    /// When the last lie about a machine began, by its id.
    pub(crate) lies: BTreeMap<String, Duration>,
    /// When somebody took the finalizer off a Service or changed its type, by uid.
    pub(crate) unprotected: BTreeMap<String, Duration>,
    /// Load balancers that somebody deleted in the cloud since the last check, by uid.
    pub(crate) lost: BTreeSet<String>,
    steps: u64,
    violation: Option<Violation>,
}

/// Several machines that a broken cloud says do not exist.
#[derive(Debug, Default)]
pub(crate) struct Conspiracy {
    pub(crate) machines: Vec<String>,
    pub(crate) until: Duration,
}

impl Inner {
    /// A promise is broken; the first counts.
    pub(crate) fn broken(&mut self, world: &World, promise: Promise, text: String) {
        let at = world.now();
        if world.tracing {
            println!("{} !! {promise:?}: {text}", clock(at));
        }
        self.violation.get_or_insert(Violation { promise, text, at });
        world.broken.notify_waiters();
    }
}

impl World {
    pub(crate) fn new(seed: u64, tracing: bool) -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            tracing,
            nodes_changed: Notify::new(),
            services_changed: Notify::new(),
            broken: Notify::new(),
            inner: Mutex::new(Inner {
                chance: Chance::new(seed),
                store: Store::default(),
                cloud: CloudState::default(),
                faults: Faults::default(),
                lease: Lease::default(),
                processes: BTreeMap::new(),
                calls: Calls::default(),
                cuts: 0,
                partitioned: BTreeMap::new(),
                ready_since: BTreeMap::new(),
                conspiracy: Conspiracy::default(),
                lies: BTreeMap::new(),
                unprotected: BTreeMap::new(),
                lost: BTreeSet::new(),
                steps: 0,
                violation: None,
            }),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        // One thread: whoever waited here would wait for ever.
        self.inner.try_lock().expect("nobody holds it across another call")
    }

    /// The time since the day began.
    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Something happens.
    pub(crate) fn step(&self, what: impl FnOnce() -> String) {
        self.lock().steps += 1;
        if self.tracing {
            println!("{} {}", clock(self.now()), what());
        }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.lock().steps
    }

    /// A promise is broken; the first counts.
    pub(crate) fn violate(&self, promise: Promise, text: String) {
        self.lock().broken(self, promise, text);
    }

    pub(crate) fn violation(&self) -> Option<Violation> {
        self.lock().violation.clone()
    }

    /// Waits for the first broken promise.
    pub(crate) async fn broken(&self) -> Violation {
        loop {
            let broken = self.broken.notified();
            if let Some(violation) = self.violation() {
                return violation;
            }
            broken.await;
        }
    }

    /// What goes wrong with the next request or call in this area.
    pub(crate) fn draw(&self, area: Area) -> Option<Fault> {
        let (now, mut inner) = (self.now(), self.lock());
        let Inner { faults, chance, .. } = &mut *inner;
        faults.draw(area, now, chance)
    }

    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        self.lock().chance.millis(from, to)
    }

    pub(crate) fn changed(&self, kind: Kind) -> &Notify {
        match kind {
            Kind::Nodes => &self.nodes_changed,
            Kind::Services => &self.services_changed,
        }
    }

    /// Wakes the watches of a kind.
    pub(crate) fn publish(&self, kind: Kind) {
        self.changed(kind).notify_waiters();
    }

    /// Cuts all watches; after a restart or a compaction they also have to list again.
    pub(crate) fn cut_watches(&self, forget: bool) {
        {
            let mut inner = self.lock();
            inner.cuts += 1;
            if forget {
                inner.store.compact();
            }
        }
        self.publish(Kind::Nodes);
        self.publish(Kind::Services);
    }

    /// Somebody who is not a controller creates an object. False when its key is taken.
    pub(crate) fn create(&self, kind: Kind, key: &str, object: Value) -> bool {
        let created = self.lock().store.create(kind, key, object, ambient::now());
        if created {
            self.step(|| format!("{} {key} is created", kind.name()));
            self.publish(kind);
        }
        created
    }

    /// Somebody who is not a controller changes an object. False when there is none.
    pub(crate) fn edit(&self, kind: Kind, key: &str, change: impl FnOnce(&mut Value)) -> bool {
        let Some(mut object) = self.lock().store.get(kind, key).cloned() else {
            return false;
        };
        change(&mut object);
        self.lock().store.replace(kind, key, object);
        if kind == Kind::Nodes {
            self.note_readiness(key);
        }
        self.publish(kind);
        true
    }

    /// Somebody who is not a controller deletes an object. False when there is none.
    pub(crate) fn delete(&self, kind: Kind, key: &str) -> bool {
        let deleted = self.lock().store.delete(kind, key, ambient::now());
        if deleted {
            self.step(|| format!("{} {key} is deleted by hand", kind.name()));
            self.publish(kind);
        }
        deleted
    }

    /// Remembers since when the Node has been Ready.
    fn note_readiness(&self, name: &str) {
        let (now, mut inner) = (self.now(), self.lock());
        if inner.store.get(Kind::Nodes, name).is_some_and(object::is_ready) {
            inner.ready_since.entry(name.to_owned()).or_insert(now);
        } else {
            inner.ready_since.remove(name);
        }
    }
}
