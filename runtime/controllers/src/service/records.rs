//! Records of all Services of one provider.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Service;

use crate::kube::cache::Key;
use crate::kube::service::has_cleanup_finalizer;
use crate::options::classes::Classes;
use crate::queue::Queue;
use crate::report::snapshot::{Object, Unfinished};
use crate::service::explain;
use crate::service::plan::{Step, next_step, wants_balancer};
use crate::service::state::{BalancerState, Record};
use crate::service::targets::{DatedSet, TargetSet};
use crate::sync::lock;

/// The records by key.
pub(crate) struct Records {
    records: Mutex<BTreeMap<Key, Record>>,
    classes: Classes,
}

impl Records {
    pub(crate) fn new(classes: Classes) -> Self {
        Self {
            records: Mutex::default(),
            classes,
        }
    }

    /// Changes the record of a Service; no effect when there is none.
    pub(crate) fn change<T>(&self, key: &str, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        lock(&self.records).get_mut(key).map(change)
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        lock(&self.records).contains_key(key)
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.records).len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn remove(&self, key: &str) {
        lock(&self.records).remove(key);
    }

    /// Remembers a Service of another class, so that its finalizer is left alone when a type change takes the class off the object.
    pub(crate) fn add_foreign(&self, key: &Key, service: &Arc<Service>) {
        if self.classes.is_foreign_class(service) {
            lock(&self.records)
                .entry(key.clone())
                .or_insert_with(|| Record::new(service.clone(), &self.classes));
        }
    }

    /// Takes note of the Service as it stands, and decides what to do next for it.
    pub(crate) fn next_step(&self, key: &Key, current: Option<&Arc<Service>>, targets: &DatedSet) -> Step {
        let mut records = lock(&self.records);
        let Some(service) = current else {
            return records
                .get(key)
                .map_or(Step::Nothing, |record| next_step(record, None, targets));
        };
        let record = records
            .entry(key.clone())
            .or_insert_with(|| Record::new(service.clone(), &self.classes));
        if record.is_about(service) {
            record.observe(service.clone());
        } else if !record.is_touched() {
            *record = Record::new(service.clone(), &self.classes);
        }
        next_step(record, Some(service), targets)
    }

    /// Drops the record of a Service that is gone or none of our business.
    pub(crate) fn remove_idle(&self, key: &Key, current: Option<&Service>) {
        let keep = current.is_some_and(|service| {
            wants_balancer(service, &self.classes)
                || self.classes.is_foreign_class(service)
                || has_cleanup_finalizer(service)
        });
        if !keep {
            self.remove(key);
        }
    }

    /// Whether the failing work on this Service is a delete.
    pub(crate) fn is_cleanup(&self, key: &Key, current: Option<&Service>) -> bool {
        lock(&self.records).get(key).is_some_and(|record| {
            matches!(
                next_step(record, current, &DatedSet::default()),
                Step::Delete | Step::RemoveFinalizer
            )
        })
    }

    /// Whether a load balancer was given nodes, or is being given some at this moment.
    pub(crate) fn any_touched(&self) -> bool {
        lock(&self.records).values().any(Record::is_touched)
    }

    /// The Services whose load balancer has other nodes than these.
    pub(crate) fn outdated(&self, targets: TargetSet) -> Vec<Key> {
        lock(&self.records)
            .iter()
            .filter(
                |(_, record)| matches!(record.state(), BalancerState::Ensured { last, .. } if last.targets.nodes != targets),
            )
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// What there is to say about a Service.
    pub(crate) fn explain(&self, key: &str, service: Option<&Service>, queue: &Queue) -> Option<String> {
        let records = lock(&self.records);
        explain::balancer(service, records.get(key), queue.state(key), &self.classes)
    }

    /// The Services that are not finished. A finished load balancer that is only checked, or brought up to date at the first try, does not
    /// count.
    pub(crate) fn unfinished(&self, queue: &Queue) -> Vec<Unfinished> {
        let records = lock(&self.records);
        let mut keys: HashSet<Key> = queue.keys().into_iter().collect();
        keys.retain(|key| {
            records
                .get(key)
                .is_none_or(|record| !record.is_settled() || record.is_failing())
        });
        let failing = records.iter().filter(|(_, record)| record.is_failing());
        keys.extend(failing.map(|(key, _)| key.clone()));
        let unfinished = |key: Key| {
            let (namespace, name) = key.split_once('/')?;
            Some(Unfinished {
                object: Object::Service(namespace.to_owned(), name.to_owned()),
                since: queue.state(&key).map(|state| state.unfinished),
                failed: records.get(&key).is_some_and(Record::is_failing),
                cause: records.get(&key).and_then(Record::cause),
            })
        };
        keys.into_iter().filter_map(unfinished).collect()
    }
}
