//! Wiring: API server, provider host, controllers, admin pages. Ends when one of them ends, on SIGTERM and on Ctrl-C.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use cloudwit_controllers::{Clients, Cluster, Controller, Leadership};
use cloudwit_host::http_client::HttpClients;
use cloudwit_host::{Host, Outside, SwappableProvider};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::api_server::ApiServer;
use crate::args::Args;
use crate::health::Checks;
use crate::leadership::{Candidates, Election};
use crate::pages::Pages;
use crate::rest_client_metrics::RestClientMetrics;
use crate::secure_serving::SecureServing;
use crate::status_source::StatusSource;
use crate::swap::Reload;
use crate::telemetry::Verbosity;
use crate::trace_export::Traces;
use crate::{
    admin, config, configz, health_sources, host_options, memory_plan, options, pages, process_metrics, providers, swap,
};

/// How long writes under way may take at the end. Kubernetes kills a Pod 30 s after SIGTERM by default.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Runs until told to stop. Nothing is written to the cluster before everything that can be checked has been checked.
pub async fn run(
    args: Args,
    identity: String,
    verbosity: Verbosity,
    traces: anyhow::Result<Option<Traces>>,
) -> anyhow::Result<()> {
    let started = Timestamp::now();
    let args = Arc::new(args);
    let settings = config::resolve(&args)?;
    if args.controllers.dry_run && args.leader_election.leader_elect {
        tracing::info!("dry run: no part in leader election; the Lease is neither waited for nor taken");
    }
    let traces = traces?;
    // The API server and the clouds are reached through one TLS library; only the process may choose its crypto.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let mut registry = Registry::default();
    let requests = RestClientMetrics::new(&mut registry);
    let server = ApiServer::connect(&args.api_server, &identity, requests.clone()).await?;
    let https = SecureServing::bind(&args, &requests, &mut registry).await?;
    let migration = settings.election.as_ref().and_then(Election::migration);
    let configz = configz::of(&args, migration);
    let candidates = Candidates::new(identity.clone(), settings.election.clone());
    process_metrics::register(&mut registry);
    traces.iter().for_each(|traces| traces.register(&mut registry));
    let cluster = candidates.lead(Cluster::new(clients(&server, &candidates)?, &mut registry));
    let mut options = options::controllers(&args, &settings);
    options
        .controllers
        .retain(|controller| candidates.leadership_of(*controller).is_some());
    let routing = settings.routing.clone();
    let loaded = load(
        &args,
        settings,
        &cluster,
        &mut registry,
        candidates.leadership().clone(),
    )
    .await?;
    for provider in &loaded {
        tokio::spawn(probe(provider.clone(), candidates.leadership().clone()));
    }
    let mut checks = Checks::default();
    checks.add(health_sources::of_providers(&loaded));
    let cloud = providers::joined(loaded.clone(), routing)?;

    let shutdown = CancellationToken::new();
    let leadership = candidates.leadership().clone();
    let mut candidacy = candidates.run(&server, &mut registry)?;
    checks.add(health_sources::of_leadership(candidacy.health()));
    let controllers = cluster.health();
    checks.add(move || health_sources::of_controllers(&controllers));
    let status = StatusSource {
        identity,
        started,
        leadership,
        boards: candidacy.boards(),
        providers: loaded,
        standing: cluster.standing(),
        health: cluster.health(),
        explain: cluster.explain(),
        checks: checks.clone(),
    };
    let router = pages::router(Pages {
        registry: Arc::new(registry),
        checks,
        explain: cluster.explain(),
        status,
        configz: Arc::new(configz),
        verbosity: args.secure_serving.profiling.then_some(verbosity),
    });
    let mut pages = tokio::spawn(serve(https, router, args.admin.admin_address.0, shutdown.clone()));
    let mut loops = tokio::spawn(cluster.run(cloud, options, shutdown.clone()));
    tokio::select! {
        ended = &mut pages => ended.context("the admin pages crashed")?.context("the admin pages ended")?,
        ended = &mut loops => ended.context("the controllers crashed")?.context("the controllers ended")?,
        lost = candidacy.lost() => return Err(lost),
        () = stop_signal()? => {
            tracing::info!("stopping");
            let all_ended = candidacy.resign(LAST_WRITES).await;
            shutdown.cancel();
            loops.await.context("the controllers crashed")?.context("the controllers ended")?;
            candidacy.release(all_ended).await;
        }
    }
    if let Some(traces) = traces {
        traces.finish().await;
    }
    Ok(())
}

/// Serves the pages over HTTPS and on loopback, until one of the two ends.
async fn serve(
    https: Option<SecureServing>,
    router: axum::Router,
    admin: Option<SocketAddr>,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let plain = admin::serve(router.clone(), admin, shutdown.clone());
    match https {
        Some(https) => tokio::try_join!(plain, https.serve(router, shutdown)).map(|_| ()),
        None => plain.await,
    }
}

/// One client for each controller, with the rights and the leadership that it has.
fn clients(server: &ApiServer, candidates: &Candidates) -> Result<Clients, kube::Error> {
    let main = candidates.leadership();
    let of = |controller: Controller| {
        let leading = candidates.leadership_of(controller).unwrap_or(main);
        server.controller_client(controller.client_name(), leading)
    };
    Ok(Clients {
        caches: server.client("shared-informers")?,
        events: server.leading_client("events", main)?,
        cloud_node: of(Controller::CloudNode)?,
        cloud_node_lifecycle: of(Controller::CloudNodeLifecycle)?,
        service_lb: of(Controller::ServiceLb)?,
        node_route: of(Controller::NodeRoute)?,
    })
}

/// The host, and the providers in it.
async fn load(
    args: &Arc<Args>,
    settings: config::Settings,
    cluster: &Cluster,
    registry: &mut Registry,
    leadership: Leadership,
) -> anyhow::Result<Vec<Arc<SwappableProvider>>> {
    let mut options = host_options::on_this_system(args.provider.cache_dir.clone());
    options.guest_memory_bytes = settings.guest_memory_bytes;
    memory_plan::warn_if_container_is_small(&settings.providers, settings.guest_memory_bytes);
    // Not even a call that is in the middle of something says anything to the cloud after the lead is lost.
    let clients = HttpClients::only_while(move || !leadership.is_over());
    let host = Arc::new(Host::new(options, registry)?.with_http_clients(clients));
    let outside = Outside {
        events: cluster.event_sink(),
        cluster: cluster.view(),
    };
    let election = &args.leader_election;
    let subject = swap::subject(
        |variable| std::env::var(variable).ok(),
        &election.leader_elect_resource_namespace,
        &election.leader_elect_resource_name,
    );
    let mut providers = Vec::new();
    for source in settings.providers {
        let reload = reload(args, &source.settings.name);
        providers.push(providers::start(&host, source, reload, outside.clone(), subject.clone()).await?);
    }
    Ok(providers)
}

/// Reads what one provider is loaded from anew.
fn reload(args: &Arc<Args>, name: &str) -> Reload {
    let (args, name) = (args.clone(), name.to_owned());
    Arc::new(move || {
        let settings = config::resolve(&args).map_err(|problems| problems.to_string())?;
        let mut sources = settings.providers.into_iter();
        sources.find(|source| source.settings.name == name).ok_or_else(|| {
            format!(
                "provider {name:?} is not in the configuration any more; it runs on until the process is started again"
            )
        })
    })
}

/// Says whether the cloud answers, once this process leads; one that waits leaves the cloud alone.
async fn probe(provider: Arc<SwappableProvider>, leadership: Leadership) {
    leadership.begun().await;
    match provider.current().probe().await {
        Ok(()) => tracing::info!(provider = provider.name(), "the cloud answers"),
        Err(error) => tracing::warn!(provider = provider.name(), %error, "the cloud cannot be used yet; trying on"),
    }
}

/// Ends when the process is asked to stop.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for Ctrl-C")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
