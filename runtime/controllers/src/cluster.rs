//! Starts one set of controllers per provider, with the caches, the writer and the Events they share.
//!
//! [`Cluster::new`] needs no network; the view and the Event sink it hands out work from then on (empty and queueing
//! until [`Cluster::run`]). `run` fills the caches at once, starts each loop as soon as this process leads, and lasts until shutdown; a
//! loop that ends or panics ends it with an error that names the loop.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{Cloud, ClusterNode, ClusterView, EventSink};
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ambient::jitter;
use crate::assign::Providers;
use crate::cloud::lookups::NodeLookups;
use crate::cloud::seen_machines::SeenMachines;
use crate::context::Context;
use crate::kube::cache::Cache;
use crate::kube::clients::Clients;
use crate::kube::events::{EventWriter, Events};
use crate::kube::node::Node;
use crate::kube::service::service_type;
use crate::kube::service::view::lenient_service_view;
use crate::kube::watched::Watched;
use crate::kube::writer::Apply;
use crate::leadership::Leadership;
use crate::leadership::dry_run::guarded;
use crate::leadership::fenced_cloud::LeadingCloud;
use crate::metrics::Metrics;
use crate::options::{Controller, Options};
use crate::report::explain::Explain;
use crate::report::health::Health;
use crate::report::snapshot::Reports;
use crate::scope::Scope;

/// Why the controllers ended.
#[derive(Debug, Error)]
pub enum ControllersError {
    /// The options make no sense; nothing was started.
    #[error("{}", .0.join("; "))]
    Options(Vec<String>),
    /// A loop that never ends did.
    #[error("{0} exited unexpectedly (bug)")]
    Ended(&'static str),
    /// A loop panicked.
    #[error("{name} panicked: {message}")]
    Panicked {
        /// Which.
        name: &'static str,
        /// The panic's message.
        message: String,
    },
}

/// What all controllers of a provider have in common.
struct ProviderSet {
    scope: Scope,
    lookups: Arc<NodeLookups>,
    machines: Arc<SeenMachines>,
    options: Arc<Options>,
    shutdown: CancellationToken,
}

/// The Kubernetes side of one process.
pub struct Cluster {
    clients: Clients,
    nodes: Arc<Cache<Node>>,
    services: Arc<Cache<Service>>,
    metrics: Arc<Metrics>,
    events: Events,
    reports: Reports,
    event_writer: EventWriter,
    leading: Leadership,
    leadership_overrides: BTreeMap<Controller, Leadership>,
}

impl Cluster {
    /// Prepares everything and registers the metrics. Leads at once by default.
    pub fn new(clients: impl Into<Clients>, registry: &mut Registry) -> Self {
        let clients = clients.into();
        let metrics = Metrics::new(registry);
        let nodes = Arc::<Cache<Node>>::default();
        let services = Arc::<Cache<Service>>::default();
        let (events, event_writer) =
            Events::new(clients.events.clone(), metrics.clone(), nodes.clone(), services.clone());
        Self {
            clients,
            reports: Reports::new(registry),
            nodes,
            services,
            metrics,
            events,
            event_writer,
            leading: Leadership::always(),
            leadership_overrides: BTreeMap::new(),
        }
    }

    /// Starts the loops when `leading` begins, and writes only while it lasts; other writes are dropped and counted.
    #[must_use]
    pub fn led_by(mut self, leading: Leadership) -> Self {
        self.leading = leading;
        self
    }

    /// The same for one controller that is led apart from the others, as in a migration from another manager.
    #[must_use]
    pub fn controller_led_by(mut self, controller: Controller, leading: Leadership) -> Self {
        self.leadership_overrides.insert(controller, leading);
        self
    }

    /// Takes Events from providers.
    pub fn event_sink(&self) -> Arc<dyn EventSink> {
        Arc::new(self.events.clone())
    }

    /// The cluster as providers may see it.
    pub fn view(&self) -> Arc<dyn ClusterView> {
        Arc::new(View {
            nodes: self.nodes.clone(),
            services: self.services.clone(),
        })
    }

    /// Answers whether the loops are alive.
    pub fn health(&self) -> Health {
        Health {
            nodes: self.nodes.clone(),
            services: self.services.clone(),
            metrics: self.metrics.clone(),
            reports: self.reports.clone(),
        }
    }

    /// Answers what an object waits for.
    pub fn explain(&self) -> Explain {
        Explain::new(self.nodes.clone(), self.services.clone(), self.reports.clone())
    }

    /// What the controllers report about themselves.
    pub fn reports(&self) -> Reports {
        self.reports.clone()
    }

    /// Fills the caches, waits for leadership, and runs the enabled controllers until `shutdown`.
    ///
    /// Each provider has a set of controllers of its own. One whose interface no provider exports is left out with a warning, as upstream does.
    pub async fn run(
        self,
        providers: impl Into<Providers>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Result<(), ControllersError> {
        let mistakes = options.mistakes();
        if !mistakes.is_empty() {
            return Err(ControllersError::Options(mistakes));
        }
        let mut tasks = Tasks::default();
        // The caches come first, so that a replica that waits can take over at once.
        let caches = &self.clients.caches;
        tasks.start(
            "the watch of Nodes",
            watch(self.nodes.clone(), caches.clone(), self.metrics.clone()),
        );
        tasks.start(
            "the watch of Services",
            watch(self.services.clone(), caches.clone(), self.metrics.clone()),
        );
        let options = Arc::new(options);
        for controller in Controller::ALL {
            if !options.controllers.contains(&controller) {
                let reason = match controller.is_on_by_default() {
                    true => "switched off by --controllers, or another manager's in a leader migration",
                    false => "not switched on by --controllers",
                };
                self.reports.off(controller, reason.to_owned());
            }
        }
        let machines = Arc::<SeenMachines>::default();
        let shared = |scope: Scope| ProviderSet {
            // The controllers share look-ups of Nodes.
            lookups: NodeLookups::new(scope.clone(), self.metrics.clone()),
            scope,
            machines: machines.clone(),
            options: options.clone(),
            shutdown: shutdown.clone(),
        };
        let sets: Vec<ProviderSet> = Scope::all(&Arc::new(providers.into()))
            .into_iter()
            .map(shared)
            .collect();
        let mut start_after = Duration::ZERO;
        for controller in options.controllers.iter().copied() {
            if self.start(&mut tasks, controller, start_after, &sets) {
                start_after += options.start_interval.mul_f64(jitter(1.0..2.0));
            }
        }
        tasks.start(
            "the writer of Events",
            self.event_writer.run(self.leading, options.dry_run),
        );
        tokio::select! {
            // First, since loops end by themselves then.
            biased;
            () = shutdown.cancelled() => {
                tasks.set.shutdown().await;
                Ok(())
            }
            error = tasks.first_end() => Err(error),
        }
    }

    /// Has a controller of each provider start so long after its leadership begins, unless the options or all providers leave nothing for it to do.
    fn start(&self, tasks: &mut Tasks, controller: Controller, after: Duration, sets: &[ProviderSet]) -> bool {
        let able = |set: &&ProviderSet| is_supported(controller, set.scope.provider().cloud.as_ref());
        let able: Vec<&ProviderSet> = sets.iter().filter(able).collect();
        if let Some(reason) = not_started_because(controller, sets, &able) {
            warn!(controller = controller.name(), "not started: {reason}");
            self.reports.off(controller, reason);
            return false;
        }
        able.into_iter()
            .for_each(|set| self.start_for(tasks, controller, after, set));
        true
    }

    fn start_for(&self, tasks: &mut Tasks, controller: Controller, after: Duration, set: &ProviderSet) {
        let ProviderSet { scope, options, .. } = set;
        let cloud = &scope.provider().cloud;
        let leading = self
            .leadership_overrides
            .get(&controller)
            .unwrap_or(&self.leading)
            .clone();
        let apply = Apply::new(
            self.clients.of(controller).clone(),
            self.metrics.clone(),
            leading.clone(),
            options.dry_run,
        );
        let context = Context {
            scope: scope.clone(),
            cloud: guarded(
                Arc::new(LeadingCloud::over(cloud.clone(), leading.clone())),
                apply.dry_run(),
            ),
            lookups: set.lookups.clone(),
            machines: set.machines.clone(),
            nodes: self.nodes.clone(),
            services: self.services.clone(),
            apply,
            events: self.events.clone(),
            reports: self.reports.clone(),
            metrics: self.metrics.clone(),
            options: options.clone(),
            shutdown: set.shutdown.clone(),
        };
        tasks.start(controller.name(), async move {
            leading.begun().await;
            tokio::time::sleep(after).await;
            info!(controller = controller.name(), "starting");
            match controller {
                Controller::CloudNode => crate::node::run(context).await,
                Controller::CloudNodeLifecycle => crate::lifecycle::run(context).await,
                Controller::ServiceLb => crate::service::run(context).await,
                Controller::NodeRoute => crate::route::run(context).await,
                Controller::Tagging => crate::tagging::run(context).await,
            }
        });
    }
}

/// Whether the provider exports what the controller needs.
fn is_supported(controller: Controller, cloud: &dyn Cloud) -> bool {
    let abilities = cloud.abilities();
    match controller {
        Controller::CloudNode | Controller::CloudNodeLifecycle => abilities.instances,
        Controller::ServiceLb => abilities.load_balancers,
        Controller::NodeRoute => abilities.routes,
        Controller::Tagging => abilities.tagging,
    }
}

/// Why there is nothing for this controller to do; none when there is.
fn not_started_because(controller: Controller, all: &[ProviderSet], able: &[&ProviderSet]) -> Option<String> {
    match (controller, able) {
        (_, []) => {
            let names: Vec<String> = all.iter().map(|set| set.scope.identity().name).collect();
            let names = names.join(", ");
            Some(format!(
                "the provider {names} does not export the interface it needs, or its configuration disables it"
            ))
        }
        (Controller::NodeRoute, [set, ..]) => crate::route::not_started_because(&set.options.route),
        _ => None,
    }
}

async fn watch<K: Watched>(cache: Arc<Cache<K>>, client: Client, metrics: Arc<Metrics>) {
    cache.run(client, Api::all, metrics).await;
}

/// The running loops by name.
#[derive(Default)]
struct Tasks {
    set: JoinSet<()>,
    names: Vec<(Id, &'static str)>,
}

impl Tasks {
    fn start(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.set.spawn(task).id();
        self.names.push((id, name));
    }

    /// Waits for the first loop to end, which none of them should.
    async fn first_end(&mut self) -> ControllersError {
        match self.set.join_next_with_id().await {
            Some(Ok((id, ()))) => ControllersError::Ended(self.name(id)),
            Some(Err(error)) => ControllersError::Panicked {
                name: self.name(error.id()),
                message: panic_message(error),
            },
            None => ControllersError::Ended("every loop"),
        }
    }

    fn name(&self, id: Id) -> &'static str {
        self.names
            .iter()
            .find(|(known, _)| *known == id)
            .map_or("a loop", |(_, name)| name)
    }
}

fn panic_message(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "cancelled".into();
    };
    panic
        .downcast_ref::<&str>()
        .map(ToString::to_string)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into())
}

/// The read-only view for providers, straight from the caches.
struct View {
    nodes: Arc<Cache<Node>>,
    services: Arc<Cache<Service>>,
}

impl ClusterView for View {
    fn nodes(&self) -> Vec<ClusterNode> {
        self.nodes
            .all()
            .iter()
            .map(|node| crate::kube::node::view::cluster_node(node))
            .collect()
    }

    fn services(&self) -> Vec<cloudwit_model::Service> {
        let balancers = self
            .services
            .matching(|service| service_type(service) == "LoadBalancer");
        balancers.iter().map(|service| lenient_service_view(service)).collect()
    }
}
