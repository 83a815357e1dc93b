//! Wiring: API server, provider host, controllers, admin pages. Ends when one of them ends, on SIGTERM and on Ctrl-C.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use cloudwit_controllers::{Clients, Cluster, Controller, Leadership};
use cloudwit_host::{Host, HostOptions, Outside, SwappableProvider};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::args::Args;
use crate::api_server::ApiServer;
use crate::leadership::Candidates;
use crate::swap::{Reload, Source};
use crate::{clock, config, options, providers, swap};

/// How long writes under way may take at the end. Kubernetes kills a Pod 30 s after SIGTERM by default.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// Runs until told to stop. Nothing is written to the cluster before everything that can be checked has been checked.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let args = Arc::new(args);
    let settings = config::resolve(&args)?;
    // The API server and the clouds are reached through one TLS library; only the process may choose its crypto.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let identity = clock::identity();
    let server = ApiServer::connect(&args.api_server, &identity).await?;
    let candidates = Candidates::new(identity, settings.election.clone());
    let mut registry = Registry::default();
    let cluster = candidates.lead(Cluster::new(clients(&server, &candidates)?, &mut registry));
    let mut options = options::controllers(&args, &settings);
    options.controllers.retain(|controller| candidates.leadership_of(*controller).is_some());
    let provider = load(&args, settings, &cluster, &mut registry).await?;
    tokio::spawn(probe(provider.clone(), candidates.leadership().clone()));

    let shutdown = CancellationToken::new();
    let mut candidacy = candidates.run(&server, &mut registry)?;
    let admin = Admin::new(registry, cluster.explain());
    let mut pages = tokio::spawn(admin.serve(args.admin.admin_address.0, shutdown.clone()));
    let mut loops = tokio::spawn(cluster.run(provider, options, shutdown.clone()));
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
    Ok(())
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

/// The host, and the provider in it.
async fn load(
    args: &Arc<Args>,
    settings: config::Settings,
    cluster: &Cluster,
    registry: &mut Registry,
) -> anyhow::Result<Arc<SwappableProvider>> {
    let options = HostOptions {
        cache_dir: args.provider.cache_dir.clone(),
        ..HostOptions::default()
    };
    let host = Arc::new(Host::new(options, registry)?);
    let outside = Outside {
        events: cluster.event_sink(),
        cluster: cluster.view(),
    };
    let reload: Reload = {
        let args = args.clone();
        Arc::new(move || match config::resolve(&args) {
            Ok(settings) => Ok(source(&args, settings)),
            Err(problems) => Err(problems.to_string()),
        })
    };
    let election = &args.leader_election;
    let subject = swap::subject(
        |variable| std::env::var(variable).ok(),
        &election.leader_elect_resource_namespace,
        &election.leader_elect_resource_name,
    );
    providers::start(&host, source(args, settings), reload, outside, subject).await
}

/// What the provider is loaded from.
fn source(args: &Args, settings: config::Settings) -> Source {
    let config = args.provider.cloud_config.as_ref();
    let file = config.map_or("(none)".into(), |file| file.display().to_string());
    Source {
        component: settings.component,
        settings: settings.provider,
        config_origin: format!("--cloud-config={file}"),
        files: config.into_iter().chain(&args.provider.provider_settings).cloned().collect(),
    }
}

/// Says whether the cloud answers, once this process leads; one that waits leaves the cloud alone.
async fn probe(provider: Arc<SwappableProvider>, leadership: Leadership) {
    leadership.begun().await;
    match provider.current().probe().await {
        Ok(()) => tracing::info!("the cloud answers"),
        Err(error) => tracing::warn!(%error, "the cloud cannot be used yet; trying on"),
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
