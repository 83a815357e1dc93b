//! Test doubles: a cloud with scripted answers that counts calls, a context without an API server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{
    Abilities, Address, AddressKind, AnnotationChange, Answer, Balancer, Cloud, CloudError, Failure, FaultKind,
    Instance, NewRoute, NodeRef, Presence, ProviderFault, ProviderIdentity, Route, RouteOutcome, RouteTokens, Service,
    TagChange, Tags, Target, TargetUpdate,
};
use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use kube::api::ObjectMeta;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::assign::Providers;
use crate::cloud::lookups::NodeLookups;
use crate::context::Context;
use crate::kube::cache::Cache;
use crate::kube::events::{EventWriter, Events};
use crate::kube::node::{Node, NodeSpec, NodeStatus};
use crate::kube::writer::Apply;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::scope::Scope;
use crate::sync::lock;

/// Gives every Node the same answer, but for those of which it knows better.
pub struct FakeCloud {
    pub answer: Mutex<Result<Presence, CloudError>>,
    /// Other answers, by the Node's name.
    pub known: Mutex<HashMap<String, Result<Presence, Failure>>>,
    /// A look-up or a change of tags with one of these Nodes in it faults.
    pub faulty: Mutex<HashSet<String>>,
    pub digest: Mutex<String>,
    /// During the next look-up the provider is swapped for the one with this digest.
    pub swapped_for: Mutex<Option<String>>,
    pub routes: Mutex<Result<Vec<Route>, CloudError>>,
    /// So long it takes to make a route; none: it is not noted.
    pub routes_take: Mutex<Option<Duration>>,
    /// When each of them was begun, and what calls asked for: token or none.
    pub routes_begun: Mutex<Vec<Instant>>,
    pub routes_asked: Mutex<Vec<Option<String>>>,
    /// Tags by provider id; each change with its Nodes' names; the answer about Nodes whose machine has none, and about all.
    pub tags: Mutex<HashMap<String, Tags>>,
    pub tag_calls: Mutex<Vec<(TagChange, Vec<String>)>>,
    pub untaggable: Mutex<HashMap<String, Failure>>,
    pub tags_fail: Mutex<Option<CloudError>>,
    pub lists: AtomicUsize,
    pub lookups: AtomicUsize,
    pub nodes: AtomicUsize,
}

impl FakeCloud {
    pub fn new(answer: Result<Presence, CloudError>) -> Arc<Self> {
        Arc::new(Self {
            answer: Mutex::new(answer),
            known: Mutex::default(),
            faulty: Mutex::default(),
            digest: Mutex::default(),
            swapped_for: Mutex::default(),
            routes: Mutex::new(Ok(Vec::new())),
            routes_take: Mutex::default(),
            routes_begun: Mutex::default(),
            routes_asked: Mutex::default(),
            tags: Mutex::default(),
            tag_calls: Mutex::default(),
            untaggable: Mutex::default(),
            tags_fail: Mutex::default(),
            lists: AtomicUsize::new(0),
            lookups: AtomicUsize::new(0),
            nodes: AtomicUsize::new(0),
        })
    }

    pub fn count(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }
}

fn never<T>() -> Answer<'static, T> {
    Box::pin(async { Err(Failure::Other("not asked in these tests".into()).into()) })
}

impl Cloud for FakeCloud {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            provider_id_prefixes: vec!["sim://".into()],
            digest: lock(&self.digest).clone(),
            ..ProviderIdentity::default()
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            instances: true,
            routes: true,
            ..Abilities::default()
        }
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.nodes.fetch_add(nodes.len(), Ordering::Relaxed);
        if let Some(digest) = lock(&self.swapped_for).take() {
            *lock(&self.digest) = digest;
        }
        let mut answer = lock(&self.answer).clone();
        if nodes.iter().any(|node| lock(&self.faulty).contains(&node.name)) {
            answer = Err(fault(FaultKind::Trap));
        }
        let known = lock(&self.known);
        let answer = answer.map(|presence| {
            let of = |node: &NodeRef| known.get(&node.name).cloned().unwrap_or_else(|| Ok(presence.clone()));
            nodes.iter().map(of).collect()
        });
        Box::pin(std::future::ready(answer))
    }

    fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
        never()
    }

    fn ensure_balancer<'a>(&'a self, _: &'a Service, _: &'a [Target], _: Option<&'a str>) -> Answer<'a, Balancer> {
        never()
    }

    fn update_targets_of<'a>(
        &'a self,
        _: &'a [TargetUpdate<'a>],
        _: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        never()
    }

    fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
        never()
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let routes = lock(&self.routes).clone();
        Box::pin(std::future::ready(routes))
    }

    fn apply_routes<'a>(
        &'a self,
        create: &'a [NewRoute],
        delete: &'a [Route],
        tokens: &'a RouteTokens,
    ) -> Answer<'a, RouteOutcome> {
        let Some(takes) = *lock(&self.routes_take) else {
            let outcome = RouteOutcome {
                created: vec![Ok(()); create.len()],
                deleted: vec![Ok(()); delete.len()],
            };
            return Box::pin(std::future::ready(Ok(outcome)));
        };
        let made = |(route, token): (&NewRoute, &Option<String>)| self.make_route(route, token.as_deref(), takes);
        let outcome = RouteOutcome {
            created: create.iter().zip(&tokens.created).map(made).collect(),
            deleted: vec![Ok(()); delete.len()],
        };
        Box::pin(std::future::ready(Ok(outcome)))
    }

    fn change_tags<'a>(&'a self, change: TagChange, nodes: &'a [NodeRef], tags: &'a Tags) -> Answer<'a, Each<()>> {
        let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
        let is_faulty = names.iter().any(|name| lock(&self.faulty).contains(name));
        lock(&self.tag_calls).push((change, names));
        if is_faulty {
            return Box::pin(async { Err(fault(FaultKind::Trap)) });
        }
        if let Some(error) = lock(&self.tags_fail).clone() {
            return Box::pin(async { Err(error) });
        }
        let results = nodes
            .iter()
            .map(|node| self.change_tags_of(change, node, tags))
            .collect();
        Box::pin(std::future::ready(Ok(results)))
    }
}

impl FakeCloud {
    fn change_tags_of(&self, change: TagChange, node: &NodeRef, tags: &Tags) -> Result<(), Failure> {
        if let Some(failure) = lock(&self.untaggable).get(&node.name) {
            return Err(failure.clone());
        }
        let mut all = lock(&self.tags);
        let own = all.entry(node.provider_id.clone().unwrap_or_default()).or_default();
        match change {
            TagChange::Add => own.extend(tags.clone()),
            TagChange::Remove => own.retain(|key, value| tags.get(key) != Some(value)),
        }
        Ok(())
    }

    fn make_route(&self, route: &NewRoute, token: Option<&str>, takes: Duration) -> Result<(), Failure> {
        lock(&self.routes_asked).push(token.map(str::to_owned));
        let mut begun = lock(&self.routes_begun);
        let number = token.map_or(begun.len(), |token| token.parse().unwrap());
        if token.is_none() {
            begun.push(Instant::now());
        }
        if begun[number].elapsed() < takes {
            return Err(Failure::Pending {
                after: Duration::from_secs(5),
                token: number.to_string(),
                message: "it builds".into(),
            });
        }
        lock(&self.routes).as_mut().unwrap().push(Route {
            id: number.to_string(),
            destination: route.destination.clone(),
            node: Some(route.node.name.clone()),
            next_hops: Vec::new(),
            blackhole: false,
        });
        Ok(())
    }
}

/// A fault of this kind.
pub fn fault(kind: FaultKind) -> CloudError {
    CloudError::Fault(ProviderFault {
        provider: "fake 1".into(),
        kind,
        message: "there it goes".into(),
        output: String::new(),
    })
}

/// A machine that runs.
pub fn running(id: &str) -> Presence {
    Presence::Running(Instance {
        provider_id: id.into(),
        addresses: vec![Address::new(AddressKind::InternalIP, "10.0.0.1")],
        ..Instance::default()
    })
}

/// A context whose API server does not exist; for loops that shall not write. Its metrics come with it.
pub fn context(cloud: Arc<dyn Cloud>, options: Options) -> (Context, Registry) {
    let (context, _, registry) = context_on(nowhere(), cloud, options);
    (context, registry)
}

/// The scope of a single provider.
pub fn only(cloud: Arc<dyn Cloud>) -> Scope {
    Scope::all(&Arc::new(Providers::from(cloud))).remove(0)
}

/// An API server that does not exist.
pub fn nowhere() -> Client {
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

/// A context with this API server, and what writes its Events.
pub fn context_on(client: Client, cloud: Arc<dyn Cloud>, options: Options) -> (Context, EventWriter, Registry) {
    let scope = only(cloud.clone());
    let mut registry = Registry::default();
    let metrics = Metrics::new(&mut registry);
    let nodes = Arc::<Cache<Node>>::default();
    let (events, writer) = Events::new(client.clone(), metrics.clone(), nodes.clone(), Arc::default());
    let context = Context {
        lookups: NodeLookups::new(scope.clone(), metrics.clone()),
        scope,
        machines: Arc::default(),
        cloud,
        reports: crate::report::snapshot::Reports::default(),
        nodes,
        services: Arc::default(),
        apply: Apply::new(
            client,
            metrics.clone(),
            crate::leadership::Leadership::always(),
            options.dry_run,
        ),
        events,
        metrics,
        options: Arc::new(options),
        shutdown: CancellationToken::new(),
    };
    (context, writer, registry)
}

/// A Node with these taints, and the status of its Ready condition.
pub fn node(name: &str, ready: &str, taints: &[&str]) -> Node {
    let taint = |key: &&str| Taint {
        key: (*key).into(),
        effect: "NoSchedule".into(),
        ..Taint::default()
    };
    let condition = NodeCondition {
        type_: "Ready".into(),
        status: ready.into(),
        ..NodeCondition::default()
    };
    Node {
        metadata: ObjectMeta {
            name: Some(name.into()),
            uid: Some(format!("uid-{name}")),
            resource_version: Some("1".into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec {
            provider_id: Some(format!("sim://{name}")),
            taints: Some(taints.iter().map(taint).collect()),
            ..NodeSpec::default()
        }),
        status: Some(NodeStatus {
            conditions: Some(vec![condition]),
            ..NodeStatus::default()
        }),
        ..Node::default()
    }
}
