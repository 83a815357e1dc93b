//! The objects of the API server: versions, uids, deletion with finalizers, and the log that watches read.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// What is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Nodes,
    Services,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nodes => "Node",
            Self::Services => "Service",
        }
    }
}

#[derive(Default)]
struct Shelf {
    objects: BTreeMap<String, Value>,
    log: VecDeque<(u64, Bytes)>,
    /// The version up to which the log was cut.
    cut: u64,
}

/// All objects.
#[derive(Default)]
pub(crate) struct Store {
    nodes: Shelf,
    services: Shelf,
    version: u64,
    uids: u64,
}

/// The version is older than the log.
#[derive(Debug)]
pub(crate) struct Expired;

impl Store {
    fn shelf(&self, kind: Kind) -> &Shelf {
        match kind {
            Kind::Nodes => &self.nodes,
            Kind::Services => &self.services,
        }
    }

    fn shelf_mut(&mut self, kind: Kind) -> &mut Shelf {
        match kind {
            Kind::Nodes => &mut self.nodes,
            Kind::Services => &mut self.services,
        }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn get(&self, kind: Kind, key: &str) -> Option<&Value> {
        self.shelf(kind).objects.get(key)
    }

    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = (&String, &Value)> {
        self.shelf(kind).objects.iter()
    }

    /// Stores a new object. False when its key is taken.
    pub(crate) fn create(&mut self, kind: Kind, key: &str, mut object: Value, now: Timestamp) -> bool {
        if self.shelf(kind).objects.contains_key(key) {
            return false;
        }
        self.uids += 1;
        object["apiVersion"] = json!("v1");
        object["kind"] = json!(kind.name());
        object["metadata"]["uid"] = json!(format!("uid-{}", self.uids));
        object["metadata"]["creationTimestamp"] = json!(seconds(now));
        self.put(kind, key, object, "ADDED");
        true
    }

    /// Replaces an object by a changed one. Equal ones change nothing; one that dies and has no finalizers left goes. Answers its new state.
    pub(crate) fn replace(&mut self, kind: Kind, key: &str, object: Value) -> Value {
        if self.get(kind, key) == Some(&object) {
            return object;
        }
        let finalizers = object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        if object["metadata"]["deletionTimestamp"].is_string() && !finalizers {
            return self.put(kind, key, object, "DELETED");
        }
        self.put(kind, key, object, "MODIFIED")
    }

    /// Deletes, or lets it die where it has finalizers. False when there is none.
    pub(crate) fn delete(&mut self, kind: Kind, key: &str, now: Timestamp) -> bool {
        let Some(mut object) = self.get(kind, key).cloned() else {
            return false;
        };
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(seconds(now));
        }
        self.replace(kind, key, object);
        true
    }

    fn put(&mut self, kind: Kind, key: &str, mut object: Value, event: &str) -> Value {
        self.version += 1;
        let version = self.version;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        let line = Bytes::from(format!("{{\"type\":\"{event}\",\"object\":{object}}}\n"));
        let shelf = self.shelf_mut(kind);
        shelf.log.push_back((version, line));
        if event == "DELETED" {
            shelf.objects.remove(key);
        } else {
            shelf.objects.insert(key.to_owned(), object.clone());
        }
        object
    }

    /// The events after a version, with theirs.
    pub(crate) fn since(&self, kind: Kind, version: u64) -> Result<Vec<(u64, Bytes)>, Expired> {
        let shelf = self.shelf(kind);
        if version < shelf.cut {
            return Err(Expired);
        }
        let from = shelf.log.partition_point(|(at, _)| *at <= version);
        Ok(shelf.log.range(from..).cloned().collect())
    }

    /// Forgets the log, as a compaction or a restart does: watches that are behind have to list again.
    pub(crate) fn compact(&mut self) {
        for kind in [Kind::Nodes, Kind::Services] {
            let version = self.version;
            let shelf = self.shelf_mut(kind);
            shelf.cut = version;
            shelf.log.clear();
        }
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
