//! Puts the crate together: caches, writer, Events, and the loops that are enabled and that the provider can serve.
//!
//! [`Cluster::new`] needs no network; the view and the Event sink it hands out work from then on (empty and queueing
//! until [`Cluster::run`]). `run` lasts until shutdown; a loop that ends or panics ends it with an error that names
//! the loop.

use std::sync::Arc;

use cloudwit_model::{Cloud, ClusterNode, ClusterView, EventSink};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use thiserror::Error;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::apply::{Apply, Leadership};
use crate::dry_run::guarded;
use crate::events::{EventWriter, Events};
use crate::explain::Explain;
use crate::metrics::Metrics;
use crate::options::{Controller, Options};
use crate::service_helpers::service_type;
use crate::service_view::lenient_service_view;
use crate::watch::{Cache, Watched};

/// Why the controllers ended.
#[derive(Debug, Error)]
pub enum ControllersError {
    /// The options make no sense; nothing was started.
    #[error("{}", .0.join("; "))]
    Options(Vec<String>),
    /// A loop that never ends did.
    #[error("{0} ended by itself; this is a defect")]
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

/// What every loop has at hand; clones share it.
#[derive(Clone)]
pub struct Context {
    /// The cloud.
    pub cloud: Arc<dyn Cloud>,
    /// All Nodes.
    pub nodes: Arc<Cache<Node>>,
    /// All Services.
    pub services: Arc<Cache<Service>>,
    /// The writer.
    pub apply: Apply,
    /// For `kubectl describe`.
    pub events: Events,
    /// For `cloudwit explain`.
    pub explain: Explain,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Settings.
    pub options: Arc<Options>,
    /// Fires when the loops shall stop.
    pub shutdown: CancellationToken,
}

/// The Kubernetes side of one process.
pub struct Cluster {
    client: Client,
    nodes: Arc<Cache<Node>>,
    services: Arc<Cache<Service>>,
    metrics: Arc<Metrics>,
    events: Events,
    explain: Explain,
    event_writer: EventWriter,
    leading: Leadership,
}

impl Cluster {
    /// Prepares everything and registers the metrics.
    pub fn new(client: Client, registry: &mut Registry) -> Self {
        let metrics = Metrics::new(registry);
        let nodes = Arc::<Cache<Node>>::default();
        let (events, event_writer) = Events::new(client.clone(), metrics.clone(), nodes.clone());
        let services = Arc::<Cache<Service>>::default();
        Self {
            client,
            explain: Explain::new(nodes.clone(), services.clone()),
            nodes,
            services,
            metrics,
            events,
            event_writer,
            leading: Arc::new(|| true),
        }
    }

    /// Writes only while `leading` answers true; other writes are dropped and counted.
    #[must_use]
    pub fn while_leading(mut self, leading: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.leading = Arc::new(leading);
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

    /// Answers what an object waits for.
    pub fn explain(&self) -> Explain {
        self.explain.clone()
    }

    /// Runs the enabled controllers until `shutdown`.
    ///
    /// A controller whose interface the provider does not export is left out with a warning, as upstream does.
    pub async fn run(
        self,
        cloud: Arc<dyn Cloud>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Result<(), ControllersError> {
        let mistakes = options.mistakes();
        if !mistakes.is_empty() {
            return Err(ControllersError::Options(mistakes));
        }
        let apply = Apply::new(
            self.client.clone(),
            self.metrics.clone(),
            self.leading.clone(),
            options.dry_run,
        );
        let context = Context {
            cloud: guarded(cloud, &apply),
            nodes: self.nodes,
            services: self.services,
            apply,
            events: self.events,
            explain: self.explain,
            metrics: self.metrics,
            options: Arc::new(options),
            shutdown: shutdown.clone(),
        };
        let mut tasks = Tasks::default();
        start_controllers(&mut tasks, &context);
        let dry_run = context.options.dry_run;
        tasks.start("the writer of Events", self.event_writer.run(self.leading, dry_run));
        tasks.start(
            "the watch of Nodes",
            watch(context.nodes.clone(), self.client.clone(), context.metrics.clone()),
        );
        tasks.start(
            "the watch of Services",
            watch(context.services.clone(), self.client, context.metrics.clone()),
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
}

fn start_controllers(tasks: &mut Tasks, context: &Context) {
    let abilities = context.cloud.abilities();
    for controller in context.options.controllers.iter().copied() {
        let supported = match controller {
            Controller::CloudNode | Controller::CloudNodeLifecycle => abilities.instances,
            Controller::ServiceLb => abilities.load_balancers,
            Controller::NodeRoute => abilities.routes,
        };
        if !supported {
            let provider = context.cloud.identity().name;
            warn!(
                controller = controller.name(),
                provider, "not started: the provider does not export the interface it needs"
            );
            continue;
        }
        if controller == Controller::NodeRoute
            && let Some(reason) = crate::node_route::not_started_because(&context.options.route)
        {
            warn!(controller = controller.name(), "not started: {reason}");
            continue;
        }
        info!(controller = controller.name(), "starting");
        // Each `prepare` registers its listeners before it returns the loop, so nothing that a watch brings is missed.
        match controller {
            Controller::CloudNode => tasks.start(controller.name(), crate::cloud_node::prepare(context.clone())),
            Controller::CloudNodeLifecycle => {
                tasks.start(controller.name(), crate::cloud_node_lifecycle::prepare(context.clone()));
            }
            Controller::ServiceLb => tasks.start(controller.name(), crate::service_lb::prepare(context.clone())),
            Controller::NodeRoute => tasks.start(controller.name(), crate::node_route::prepare(context.clone())),
        }
    }
}

async fn watch<K: Watched>(cache: Arc<Cache<K>>, client: Client, metrics: Arc<Metrics>) {
    cache.run(Api::all(client), metrics).await;
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
            .map(|node| crate::node_view::cluster_node(node))
            .collect()
    }

    fn services(&self) -> Vec<cloudwit_model::Service> {
        let balancers = self
            .services
            .matching(|service| service_type(service) == "LoadBalancer");
        balancers.iter().map(|service| lenient_service_view(service)).collect()
    }
}
