//! Sees when work is done: one watch, from before a side starts, whichever side it is.
//!
//! It costs the API server the same for both, one watcher more. When the API server closes the watch, as it does with watchers that are slow for a moment,
//! the list is read again and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cloudwit_test_support::objects;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use xtask::run::progress::Progress;

use crate::scene::contestant::Running;

/// Between two looks whether the side still runs.
const LOOK: Duration = Duration::from_millis(500);

/// Before the watch is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// All objects of a kind, kept current.
pub struct Observer<K> {
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    objects: BTreeMap<String, K>,
    /// Those that a list being read has shown so far.
    listed: BTreeSet<String>,
    changed: Instant,
}

impl<K> Observer<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    /// Reads the list; from now on every change is seen.
    ///
    /// # Errors
    ///
    /// When the API server does not answer.
    pub async fn start(api: Api<K>) -> Result<Self> {
        let mut observer = Self {
            events: watcher(api, watcher::Config::default()).boxed(),
            objects: BTreeMap::new(),
            listed: BTreeSet::new(),
            changed: Instant::now(),
        };
        while let Some(event) = observer
            .events
            .try_next()
            .await
            .context("listing what shall be observed")?
        {
            let complete = matches!(event, Event::InitDone);
            observer.take(event);
            if complete {
                return Ok(observer);
            }
        }
        bail!("the watch ended before it began")
    }

    /// Waits until so many objects are as they shall be. Gives the moment at which the last of them came to be.
    ///
    /// # Errors
    ///
    /// When the side ends or the time is over first.
    pub async fn until(
        &mut self,
        what: &str,
        count: usize,
        done: impl Fn(&K) -> bool,
        running: &Running,
        limit: Duration,
    ) -> Result<Instant> {
        let mut as_wanted: BTreeSet<String> = self
            .objects
            .iter()
            .filter(|(_, object)| done(object))
            .map(|(key, _)| key.clone())
            .collect();
        let mut last = Instant::now();
        let mut progress = Progress::start(&format!("{what}, {running_side}", running_side = running.side()));
        let deadline = Instant::now() + limit;
        while as_wanted.len() < count {
            progress.show(&format!("{} of {count}", as_wanted.len()));
            for key in self
                .next(running, deadline)
                .await
                .with_context(|| format!("{} of {count} are done", as_wanted.len()))?
            {
                if self.objects.get(&key).is_some_and(&done) {
                    as_wanted.insert(key);
                } else {
                    as_wanted.remove(&key);
                }
                last = self.changed;
            }
        }
        progress.finish("done");
        Ok(last)
    }

    /// Waits until none is left. Gives the moment at which the last one went.
    ///
    /// # Errors
    ///
    /// As [`until`](Self::until).
    pub async fn until_none(
        &mut self,
        what: &str,
        which: impl Fn(&K) -> bool,
        running: &Running,
        limit: Duration,
    ) -> Result<Instant> {
        let mut progress = Progress::start(&format!("{what}, {}", running.side()));
        let deadline = Instant::now() + limit;
        loop {
            let left = self.objects.values().filter(|object| which(object)).count();
            if left == 0 {
                progress.finish("done");
                return Ok(self.changed);
            }
            progress.show(&format!("{left} are left"));
            self.next(running, deadline)
                .await
                .with_context(|| format!("{left} are left"))?;
        }
    }

    /// Waits for something to happen; gives what changed.
    async fn next(&mut self, running: &Running, deadline: Instant) -> Result<Vec<String>> {
        loop {
            ensure!(running.runs(), "{} has ended:\n{}", running.side(), running.log_end());
            if Instant::now() > deadline {
                bail!("{} took too long; its log ends:\n{}", running.side(), running.log_end());
            }
            match tokio::time::timeout(LOOK, self.events.next()).await {
                Ok(Some(Ok(event))) => return Ok(self.take(event)),
                // It lists again by itself.
                Ok(Some(Err(_))) => tokio::time::sleep(RETRY).await,
                Ok(None) => bail!("the watch ended"),
                Err(_) => {}
            }
        }
    }

    /// Keeps the objects current; gives the keys of those that changed.
    fn take(&mut self, event: Event<K>) -> Vec<String> {
        self.changed = Instant::now();
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = key(&object);
                self.listed.insert(key.clone());
                self.objects.insert(key.clone(), object);
                vec![key]
            }
            Event::InitDone => {
                let gone: Vec<String> = self
                    .objects
                    .keys()
                    .filter(|key| !self.listed.contains(*key))
                    .cloned()
                    .collect();
                for key in &gone {
                    self.objects.remove(key);
                }
                gone
            }
            Event::Apply(object) => {
                let key = key(&object);
                self.objects.insert(key.clone(), object);
                vec![key]
            }
            Event::Delete(object) => {
                let key = key(&object);
                self.objects.remove(&key);
                vec![key]
            }
        }
    }
}

fn key<K: Resource>(object: &K) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

/// What only the cloud knows of a Node, and both sides write down.
const FROM_THE_CLOUD: [&str; 3] = [
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Whether a Node has lost its taint and has an address, a provider id and labels from the cloud. All of it: a controller may fail between its writes,
/// and one that left something out would be the quicker for it.
pub fn is_initialised(node: &Node) -> bool {
    let addresses = node.status.as_ref().and_then(|status| status.addresses.as_deref());
    let addressed = addresses
        .unwrap_or_default()
        .iter()
        .any(|address| address.type_ == "InternalIP");
    let labelled = FROM_THE_CLOUD.iter().all(|label| node.labels().contains_key(*label));
    addressed && labelled && objects::provider_id(node).is_some() && !objects::is_uninitialised(node)
}

/// Whether a Service has an address.
pub fn is_published(service: &Service) -> bool {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    balancer.is_some_and(|balancer| balancer.ingress.as_ref().is_some_and(|points| !points.is_empty()))
}

/// Whether a Service is one of the benchmark's.
pub fn is_balanced(service: &Service) -> bool {
    service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("LoadBalancer")
}

#[cfg(test)]
mod tests {
    use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
    use futures::stream;

    use super::*;

    fn observer(events: Vec<Event<Node>>) -> Observer<Node> {
        Observer {
            events: stream::iter(events.into_iter().map(Ok)).boxed(),
            objects: BTreeMap::new(),
            listed: BTreeSet::new(),
            changed: Instant::now(),
        }
    }

    #[test]
    fn node_is_initialised_with_full_cloud_data_and_no_taint() {
        let labelled = |labels: &[&str]| {
            labels
                .iter()
                .fold(NodeBuilder::new("a"), |node, label| node.label(label, "x"))
        };
        let node = || labelled(&FROM_THE_CLOUD);
        let known = |node: NodeBuilder| node.provider_id("sim://a");
        let addressed = |node: NodeBuilder| node.node_ip("10.0.0.1");
        assert!(is_initialised(&known(addressed(node())).initialised().build()));
        assert!(!is_initialised(&known(addressed(node())).build()));
        assert!(!is_initialised(&known(node()).initialised().build()));
        assert!(!is_initialised(&addressed(node()).initialised().build()));
        let unlabelled = labelled(&FROM_THE_CLOUD[1..]);
        assert!(!is_initialised(&known(addressed(unlabelled)).initialised().build()));
    }

    #[test]
    fn benchmark_services_differ_from_the_clusters_own() {
        assert!(is_balanced(&ServiceBuilder::new("a").build()));
        assert!(!is_balanced(
            &ServiceBuilder::new("a").spec(|spec| spec.type_ = None).build()
        ));
        assert!(!is_published(&ServiceBuilder::new("a").build()));
    }

    #[test]
    fn what_a_list_read_again_does_not_show_is_gone() {
        let node = |name: &str| NodeBuilder::new(name).build();
        let mut observer = observer(Vec::new());
        for event in [
            Event::Init,
            Event::InitApply(node("a")),
            Event::InitApply(node("b")),
            Event::InitDone,
        ] {
            observer.take(event);
        }
        assert_eq!(observer.take(Event::Apply(node("c"))), ["/c"]);
        observer.take(Event::Init);
        observer.take(Event::InitApply(node("b")));
        assert_eq!(observer.take(Event::InitDone), ["/a", "/c"]);
        assert_eq!(observer.take(Event::Delete(node("b"))), ["/b"]);
        assert!(observer.objects.is_empty());
    }
}
