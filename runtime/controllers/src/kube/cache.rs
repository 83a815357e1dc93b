//! Caches of Nodes and Services: one watch per kind, shared by all controllers.
//!
//! Of a Node only what the controllers read is decoded ([`Node`](crate::kube::node::Node)), and Services are trimmed on arrival, so that thousands
//! stay small. The list comes as a stream where the API server can (one object in memory at a time), else in pages;
//! errors back off and the watch continues where it stopped; one that ends without an error is reopened at the pace of
//! [`kube::watch_pace`](crate::kube::watch_pace). Listeners get old and new object together, which is why this
//! is not `kube`'s own store.
//!
//! A write puts its answer into the cache at once ([`Cache::observe`]): the next look at the object then sees the
//! write even where the watch lags, so stale updates never repeat work (kubernetes/kubernetes#75285).

use std::collections::{BTreeMap, HashSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use tokio::sync::SetOnce;
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::ambient::jitter;
use crate::kube::rights::with_advice;
use crate::kube::watch_pace::{WatchPace, paced};
use crate::kube::watched::Watched;
use crate::metrics::Metrics;
use crate::sync::{lock, read, write};

/// Pause before a watch whose version the API server no longer has begins with a list.
const EXPIRED_PAUSE: Duration = Duration::from_secs(1);

/// Name of an object in its cache: `name`, or `namespace/name`.
pub type Key = Arc<str>;

/// What happened to an object.
#[derive(Debug)]
pub enum Change<'a, K> {
    /// It is new in the cache.
    Added(&'a Arc<K>),
    /// It changed.
    Updated {
        /// Before.
        old: &'a Arc<K>,
        /// After.
        new: &'a Arc<K>,
    },
    /// It is gone; the last state that was seen.
    Deleted(&'a Arc<K>),
}

impl<'a, K> Change<'a, K> {
    /// The object as it is now, unless it was deleted.
    pub fn current(&self) -> Option<&'a Arc<K>> {
        match self {
            Self::Added(new) | Self::Updated { new, .. } => Some(new),
            Self::Deleted(_) => None,
        }
    }
}

type Listener<K> = Box<dyn Fn(&Key, Change<'_, K>) + Send + Sync>;

struct Cached<K> {
    object: Arc<K>,
    /// The version of our own last write; older news from the watch is dropped until this version arrives. 0 for none.
    floor: u64,
}

/// All objects of one kind, as last seen. Cheap to share; reading never waits for the network.
pub struct Cache<K> {
    objects: RwLock<BTreeMap<Key, Cached<K>>>,
    listeners: RwLock<Vec<Listener<K>>>,
    synced: SetOnce<()>,
}

impl<K: Watched> Default for Cache<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            listeners: RwLock::default(),
            synced: SetOnce::new(),
        }
    }
}

impl<K: Watched> Cache<K> {
    /// The object, if it exists.
    pub fn get(&self, key: &str) -> Option<Arc<K>> {
        read(&self.objects).get(key).map(|entry| entry.object.clone())
    }

    /// All objects, by name.
    pub fn all(&self) -> Vec<Arc<K>> {
        read(&self.objects).values().map(|entry| entry.object.clone()).collect()
    }

    /// The objects for which `wanted` holds, by name. Holds the lock meanwhile.
    pub fn matching(&self, wanted: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        read(&self.objects)
            .values()
            .filter(|entry| wanted(&entry.object))
            .map(|entry| entry.object.clone())
            .collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        read(&self.objects).len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `listener` on every change from now on. It runs on the watch's task, so it must be quick: put the key
    /// into a queue.
    pub fn listen(&self, listener: impl Fn(&Key, Change<'_, K>) + Send + Sync + 'static) {
        write(&self.listeners).push(Box::new(listener));
    }

    /// As [`listen`](Self::listen), and brings what is there already as [`Change::Added`]. A change that comes at the same moment may be
    /// told twice.
    pub fn listen_from_start(&self, listener: impl Fn(&Key, Change<'_, K>) + Send + Sync + 'static) {
        // Changes are sent after the objects are stored, so what is not sent because of this lock is found in the objects.
        let mut listeners = write(&self.listeners);
        let known: Vec<(Key, Arc<K>)> = read(&self.objects)
            .iter()
            .map(|(key, entry)| (key.clone(), entry.object.clone()))
            .collect();
        known
            .iter()
            .for_each(|(key, object)| listener(key, Change::Added(object)));
        listeners.push(Box::new(listener));
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        self.synced.wait().await;
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.synced.initialized()
    }

    /// Takes over the API server's answer to a write, unless the cache is newer or holds another object of that name.
    pub fn observe(&self, object: K) {
        self.observed(object);
    }

    /// As [`observe`](Self::observe), and hands the answer back, shared with the cache.
    pub fn observed(&self, mut object: K) -> Arc<K> {
        object.trim();
        let object = Arc::new(object);
        self.take_over(&object);
        object
    }

    fn take_over(&self, object: &Arc<K>) {
        let (key, version) = (key_of(&**object), version_of(&**object));
        let old = {
            let mut objects = write(&self.objects);
            let Some(entry) = objects.get_mut(&key) else { return };
            if entry.object.meta().uid != object.meta().uid || version_of(&*entry.object) >= version {
                return;
            }
            entry.floor = version;
            std::mem::replace(&mut entry.object, object.clone())
        };
        self.notify(&key, Change::Updated { old: &old, new: object });
    }

    /// Watches for ever and keeps the cache current. `scope` says which objects of the kind.
    pub async fn run(&self, client: Client, scope: impl Fn(Client) -> Api<K>, metrics: Arc<Metrics>) {
        let mut streaming = true;
        let pace = Arc::<Mutex<WatchPace>>::default();
        let api = scope(paced(client, pace.clone()));
        loop {
            let config = watcher::Config::default();
            let config = if streaming { config.streaming_lists() } else { config };
            let mut events = pin!(watcher(api.clone(), config).default_backoff());
            let mut seen = HashSet::new();
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => {
                        if matches!(event, watcher::Event::Apply(_) | watcher::Event::Delete(_)) {
                            lock(&pace).delivered();
                        }
                        self.take(event, &mut seen);
                    }
                    Err(watcher::Error::WatchStartFailed(kube::Error::Api(status)))
                        if streaming && matches!(status.code, 400 | 422) =>
                    {
                        debug!(kind = K::KIND, %status.message, "API server does not stream lists; reading pages");
                        streaming = false;
                        break;
                    }
                    // Some API servers and proxies say this as an answer and not as an event; kube then requests the same version for ever.
                    Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410 => {
                        metrics.watch_errors(K::KIND).inc();
                        warn!(kind = K::KIND, %status.message, "watch expired; listing again");
                        sleep(EXPIRED_PAUSE.mul_f64(jitter(1.0..2.0))).await;
                        break;
                    }
                    Err(error) => {
                        metrics.watch_errors(K::KIND).inc();
                        let error = with_advice(&error.to_string());
                        warn!(kind = K::KIND, error, "watch interrupted; retrying");
                    }
                }
            }
        }
    }

    /// As if a list had brought these.
    #[cfg(test)]
    pub(crate) fn fill(&self, objects: Vec<K>) {
        let mut seen = HashSet::new();
        objects
            .into_iter()
            .for_each(|object| self.take(watcher::Event::InitApply(object), &mut seen));
        self.take(watcher::Event::InitDone, &mut seen);
    }

    /// Takes one event from the watch. `seen` collects the keys of a list in progress.
    fn take(&self, event: watcher::Event<K>, seen: &mut HashSet<Key>) {
        match event {
            watcher::Event::Init => seen.clear(),
            watcher::Event::InitApply(object) => {
                seen.insert(self.put(object, true));
            }
            watcher::Event::InitDone => {
                let gone: Vec<Key> = read(&self.objects)
                    .keys()
                    .filter(|key| !seen.contains(*key))
                    .cloned()
                    .collect();
                gone.iter().for_each(|key| self.remove(key, None));
                *seen = HashSet::new();
                // Every list but the first finds it set.
                let _ = self.synced.set(());
            }
            watcher::Event::Apply(object) => {
                self.put(object, false);
            }
            watcher::Event::Delete(object) => self.remove(&key_of(&object), object.uid().as_deref()),
        }
    }

    /// Stores an object from the watch. A list is believed as it is (an API server restored from a backup counts from
    /// a lower version); a single event that is older than our own last write is not.
    fn put(&self, mut object: K, from_list: bool) -> Key {
        object.trim();
        let key = key_of(&object);
        let version = version_of(&object);
        let object = Arc::new(object);
        let old = {
            let mut objects = write(&self.objects);
            match objects.get_mut(&key) {
                Some(entry) => {
                    if entry.object.meta().resource_version == object.meta().resource_version {
                        entry.floor = 0;
                        return key;
                    }
                    if !from_list && version < entry.floor {
                        return key;
                    }
                    entry.floor = 0;
                    Some(std::mem::replace(&mut entry.object, object.clone()))
                }
                None => {
                    objects.insert(
                        key.clone(),
                        Cached {
                            object: object.clone(),
                            floor: 0,
                        },
                    );
                    None
                }
            }
        };
        match &old {
            Some(old) => self.notify(&key, Change::Updated { old, new: &object }),
            None => self.notify(&key, Change::Added(&object)),
        }
        key
    }

    fn remove(&self, key: &Key, uid: Option<&str>) {
        let old = {
            let mut objects = write(&self.objects);
            let same = |entry: &Cached<K>| uid.is_none() || entry.object.meta().uid.as_deref() == uid;
            if objects.get(key).is_some_and(same) {
                objects.remove(key)
            } else {
                None
            }
        };
        if let Some(old) = old {
            self.notify(key, Change::Deleted(&old.object));
        }
    }

    fn notify(&self, key: &Key, change: Change<'_, K>) {
        for listener in read(&self.listeners).iter() {
            let change = match &change {
                Change::Added(new) => Change::Added(new),
                Change::Updated { old, new } => Change::Updated { old, new },
                Change::Deleted(old) => Change::Deleted(old),
            };
            listener(key, change);
        }
    }
}

/// The object's key.
pub fn key_of<K: Resource>(object: &K) -> Key {
    match object.meta().namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()).into(),
        None => object.name_any().into(),
    }
}

/// The resource version as a number, 0 where it is none: Kubernetes guarantees the order of versions of one object
/// since 1.35 and has counted upwards ever since.
fn version_of<K: Resource>(object: &K) -> u64 {
    object
        .meta()
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests;
