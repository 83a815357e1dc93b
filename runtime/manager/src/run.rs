//! Wiring: API server, provider host, controllers, admin pages. Ends when one of them ends, on SIGTERM and on Ctrl-C.

use std::sync::Arc;

use anyhow::{Context, bail};
use cloudwit_controllers::Cluster;
use cloudwit_host::{Host, HostOptions, Outside, Provider};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::admin::Admin;
use crate::args::Args;
use crate::{api_server, config, options};

/// Runs until told to stop. Nothing is written to the cluster before everything that can be checked has been checked.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let settings = config::resolve(&args)?;
    // The API server and the clouds are reached through one TLS library; only the process may choose its crypto.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let client = api_server::connect(args.cluster.kubeconfig.as_deref()).await?;
    let mut registry = Registry::default();
    let cluster = Cluster::new(client, &mut registry);
    let options = options::controllers(&args, &settings);
    let provider = load(&args, settings, &cluster, &mut registry).await?;

    let shutdown = CancellationToken::new();
    let admin = Admin::new(registry, cluster.explain());
    let mut pages = tokio::spawn(admin.serve(args.serving.admin_address, shutdown.clone()));
    let mut loops = tokio::spawn(cluster.run(Arc::new(provider), options, shutdown.clone()));
    tokio::select! {
        ended = &mut pages => ended.context("the admin pages crashed")?.context("the admin pages ended")?,
        ended = &mut loops => ended.context("the controllers crashed")?.context("the controllers ended")?,
        () = stop_signal()? => {
            tracing::info!("stopping");
            shutdown.cancel();
            loops.await.context("the controllers crashed")?.context("the controllers ended")?;
        }
    }
    Ok(())
}

/// Loads the provider and lets it check its configuration; a cloud that does not answer now is no reason not to start.
async fn load(
    args: &Args,
    settings: config::Settings,
    cluster: &Cluster,
    registry: &mut Registry,
) -> anyhow::Result<Provider> {
    let options = HostOptions {
        cache_dir: args.provider.cache_dir.clone(),
        ..HostOptions::default()
    };
    let host = Host::new(options, registry)?;
    let outside = Outside {
        events: cluster.event_sink(),
        cluster: cluster.view(),
    };
    let provider = host.load(&settings.component, settings.provider, outside).await?;
    let problems = provider.check().await?;
    if !problems.is_empty() {
        let list: String = problems
            .iter()
            .map(|problem| format!("\n  - {}: {}", problem.at, problem.message))
            .collect();
        let file = args
            .provider
            .cloud_config
            .as_ref()
            .map_or("(none)".into(), |file| file.display().to_string());
        bail!("the provider does not accept its configuration, --cloud-config={file}:{list}");
    }
    match provider.probe().await {
        Ok(()) => tracing::info!("the cloud answers"),
        Err(error) => tracing::warn!(%error, "the cloud cannot be used yet; trying on"),
    }
    Ok(provider)
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
