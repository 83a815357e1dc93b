//! A cloud made of a map, and the controllers running on it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use cloudwit_controllers::{Cluster, ControllersError, Options};
use cloudwit_model::{
    Abilities, Address, AddressKind, AnnotationChange, Answer, Balancer, Cloud, CloudError, Evidence, Failure,
    FaultKind, Instance, NewRoute, NodeRef, Presence, ProviderFault, ProviderIdentity, Route, RouteOutcome,
    RouteTokens, Service, Target, TargetUpdate,
};
use kube::Client;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What the cloud knows about one machine.
#[derive(Debug, Clone)]
pub enum Machine {
    Runs(Instance),
    Stopped(Instance),
    Fails(Failure),
    /// Asking for it panics, which no provider can make a real cloud do.
    Panics,
}

#[derive(Default)]
struct State {
    machines: HashMap<String, Machine>,
    outage: Option<Failure>,
    digest: String,
    /// Names of Nodes that look-ups were about, from when they begin.
    asked: HashSet<String>,
}

/// Machines by Node name. Looked up by provider id once the Node has one; unknown ids and names are absent.
pub struct FakeCloud {
    prefix: String,
    state: Mutex<State>,
    lookups: AtomicUsize,
    /// Held while a test wants look-ups to wait.
    pub gate: tokio::sync::RwLock<()>,
}

impl FakeCloud {
    /// An empty cloud whose ids begin with `PREFIX://`; each test has its own, since all tests share the API server.
    pub fn new(prefix: &str) -> Arc<Self> {
        Arc::new(Self {
            prefix: format!("{prefix}://"),
            state: Mutex::default(),
            lookups: AtomicUsize::new(0),
            gate: tokio::sync::RwLock::new(()),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }

    pub fn id(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub fn instance(&self, name: &str) -> Instance {
        Instance {
            provider_id: self.id(name),
            instance_type: Some("t1.micro".into()),
            zone: Some("zone-a".into()),
            region: Some("region-1".into()),
            addresses: vec![
                Address::new(AddressKind::InternalIP, "10.0.0.1"),
                Address::new(AddressKind::ExternalIP, "132.143.154.163"),
            ],
            ..Instance::default()
        }
    }

    /// Creates a machine that runs.
    pub fn run(&self, name: &str) {
        self.set(name, Machine::Runs(self.instance(name)));
    }

    pub fn set(&self, name: &str, machine: Machine) {
        self.state().machines.insert(name.into(), machine);
    }

    pub fn remove(&self, name: &str) {
        self.state().machines.remove(name);
    }

    /// Every call fails from now on, or no longer.
    pub fn outage(&self, failure: Option<Failure>) {
        self.state().outage = failure;
    }

    /// As after a swap of the component.
    pub fn swap(&self, digest: &str) {
        self.state().digest = digest.into();
    }

    pub fn lookups(&self) -> usize {
        self.lookups.load(Ordering::Relaxed)
    }

    /// Whether a look-up of this Node has begun.
    pub fn was_asked(&self, name: &str) -> bool {
        self.state().asked.contains(name)
    }

    fn answer(&self, node: &NodeRef) -> Result<Presence, Failure> {
        let name = match &node.provider_id {
            Some(id) => id.strip_prefix(&self.prefix).unwrap_or("no machine has this name"),
            None => &node.name,
        };
        let evidence = if node.provider_id.is_some() {
            Evidence::ById
        } else {
            Evidence::ByName
        };
        let machine = self.state().machines.get(name).cloned();
        match machine {
            Some(Machine::Runs(instance)) => Ok(Presence::Running(instance)),
            Some(Machine::Stopped(instance)) => Ok(Presence::Stopped(instance)),
            Some(Machine::Fails(failure)) => Err(failure),
            Some(Machine::Panics) => panic!("the cloud panics"),
            None => Ok(Presence::Absent(evidence)),
        }
    }
}

fn not_exported<T>() -> Answer<'static, T> {
    let fault = ProviderFault {
        provider: "fake".into(),
        kind: FaultKind::NotExported,
        message: "only machines".into(),
        output: String::new(),
    };
    Box::pin(async move { Err(CloudError::Fault(fault)) })
}

impl Cloud for FakeCloud {
    fn identity(&self) -> ProviderIdentity {
        ProviderIdentity {
            name: "fake".into(),
            version: "1".into(),
            digest: self.state().digest.clone(),
            provider_id_prefixes: vec![self.prefix.clone()],
            ..ProviderIdentity::default()
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            instances: true,
            ..Abilities::default()
        }
    }

    fn lookup<'a>(&'a self, nodes: &'a [NodeRef]) -> Answer<'a, Vec<Result<Presence, Failure>>> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        self.state().asked.extend(nodes.iter().map(|node| node.name.clone()));
        Box::pin(async move {
            let _open = self.gate.read().await;
            if let Some(failure) = self.state().outage.clone() {
                return Err(failure.into());
            }
            Ok(nodes.iter().map(|node| self.answer(node)).collect())
        })
    }

    fn get_balancer<'a>(&'a self, _: &'a Service) -> Answer<'a, Option<Balancer>> {
        not_exported()
    }

    fn ensure_balancer<'a>(&'a self, _: &'a Service, _: &'a [Target], _: Option<&'a str>) -> Answer<'a, Balancer> {
        not_exported()
    }

    fn update_targets_of<'a>(
        &'a self,
        _: &'a [TargetUpdate<'a>],
        _: &'a [Target],
    ) -> Answer<'a, Vec<Result<Vec<AnnotationChange>, Failure>>> {
        not_exported()
    }

    fn delete_balancer<'a>(&'a self, _: &'a Service, _: Option<&'a str>) -> Answer<'a, Vec<AnnotationChange>> {
        not_exported()
    }

    fn list_routes(&self) -> Answer<'_, Vec<Route>> {
        not_exported()
    }

    fn apply_routes<'a>(&'a self, _: &'a [NewRoute], _: &'a [Route], _: &'a RouteTokens) -> Answer<'a, RouteOutcome> {
        not_exported()
    }
}

/// The controllers at work.
pub struct Running {
    registry: Registry,
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), ControllersError>>,
}

impl Running {
    pub fn start(client: Client, cloud: &Arc<FakeCloud>, options: Options) -> Self {
        Self::start_with(client, cloud.clone(), options, |cluster| cluster)
    }

    pub fn start_with(
        client: Client,
        cloud: Arc<dyn Cloud>,
        options: Options,
        change: impl FnOnce(Cluster) -> Cluster,
    ) -> Self {
        let (mut registry, shutdown) = (Registry::default(), CancellationToken::new());
        let cluster = change(Cluster::new(client, &mut registry));
        let task = tokio::spawn(cluster.run(cloud, options, shutdown.clone()));
        Self {
            registry,
            shutdown,
            task,
        }
    }

    /// The value of a metric, given with its labels as it is exposed; 0 when it is not there.
    pub fn metric(&self, name: &str) -> f64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        line.unwrap_or(0.0)
    }

    /// How many writes of this kind succeeded.
    pub fn writes(&self, resource: &str, verb: &str) -> f64 {
        self.writes_with(resource, verb, "ok")
    }

    pub fn writes_with(&self, resource: &str, verb: &str, result: &str) -> f64 {
        self.metric(&format!(
            "cloudwit_api_writes_total{{resource=\"{resource}\",verb=\"{verb}\",result=\"{result}\"}}"
        ))
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        self.task.await.expect("no panic").expect("a clean end");
    }

    /// Waits for the controllers to end by themselves, which they only do with an error.
    pub async fn failed(self) -> ControllersError {
        self.task.await.expect("no panic").expect_err("an error")
    }
}

/// Defaults, made quick: passes every 50 ms, confirmation after a second, no grace.
pub fn quick() -> Options {
    let mut options = Options::default();
    options.node.status_update_frequency = Duration::from_millis(100);
    options.lifecycle.monitor_period = Duration::from_millis(50);
    options.lifecycle.confirm_after = Duration::from_secs(1);
    options.lifecycle.registration_grace = Duration::ZERO;
    // Most tests share the API server, and a Node without an id could be anybody's.
    options.lifecycle.by_name_after = None;
    options
}
