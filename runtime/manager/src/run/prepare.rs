//! What is made on the working runtime before anything runs: clients, the host, providers, drivers.

use std::sync::Arc;

use anyhow::Context;
use cloudwit_controllers::{Clients, Cluster, Controller, Leadership};
use cloudwit_host::http_client::HttpClients;
use cloudwit_host::{Host, Outside, SwappableProvider};
use cloudwit_model::Subject;
use futures::future::join_all;
use prometheus_client::registry::Registry;

use crate::api::server::ApiServer;
use crate::config::settings;
use crate::election::candidate::Candidates;
use crate::flags::args::Args;
use crate::process::memory;
use crate::providers::csi;
use crate::providers::host;
use crate::providers::load;
use crate::providers::swap;
use crate::providers::swap::Reload;
use crate::run::probe;
use crate::ssh_keys::{self, KeySync};

/// What is made on the working runtime.
pub(super) struct Prepared {
    pub(super) cluster: Cluster,
    pub(super) providers: Vec<Arc<SwappableProvider>>,
    pub(super) drivers: Vec<csi::Served>,
    pub(super) ssh_keys: Vec<KeySync>,
    pub(super) registry: Registry,
    pub(super) candidates: Candidates,
}

/// The clients of the controllers, the host and the providers; all that they start belongs to the working runtime.
pub(super) async fn prepare(
    args: Arc<Args>,
    server: Arc<ApiServer>,
    settings: settings::Settings,
    candidates: Candidates,
    mut registry: Registry,
) -> anyhow::Result<Prepared> {
    let clients = clients(&server, &candidates).await?;
    let cluster = candidates.lead(Cluster::new(clients, &mut registry));
    let leadership = candidates.leadership().clone();
    let names: Vec<_> = settings
        .providers
        .iter()
        .map(|source| source.csi_driver_name.clone())
        .collect();
    let providers = load(&args, settings, &cluster, &mut registry, leadership.clone()).await?;
    let drivers = match &args.volumes.csi_socket_dir {
        Some(dir) => {
            let candidate = |(provider, name): (&Arc<SwappableProvider>, _)| csi::Candidate {
                provider: provider.clone(),
                name,
            };
            let candidates = providers.iter().zip(names).map(candidate).collect();
            csi::drivers(dir, candidates, &leadership, args.controllers.dry_run, &mut registry).await?
        }
        None => Vec::new(),
    };
    let ssh_keys = match args.ssh_keys.key_file() {
        Some(file) => {
            // A wrong path is an error now; a file that breaks later costs a warning.
            file.read().await.context("--ssh-keyfile")?;
            let told = (cluster.event_sink(), subject(&args));
            ssh_keys::of_providers(&providers, &file, told, &leadership, args.controllers.dry_run)
        }
        None => Vec::new(),
    };
    for provider in &providers {
        drop(tokio::spawn(probe(provider.clone(), leadership.clone())));
    }
    Ok(Prepared {
        cluster,
        providers,
        drivers,
        ssh_keys,
        registry,
        candidates,
    })
}

/// One client for each controller, with the rights and the leadership that it has.
async fn clients(server: &ApiServer, candidates: &Candidates) -> Result<Clients, kube::Error> {
    let main = candidates.leadership();
    let of = async |controller: Controller| {
        let leading = candidates.leadership_of(controller).unwrap_or(main);
        server.controller_client(controller.client_name(), leading).await
    };
    Ok(Clients {
        caches: server.client("shared-informers").await?,
        events: server.leading_client("events", main).await?,
        cloud_node: of(Controller::CloudNode).await?,
        cloud_node_lifecycle: of(Controller::CloudNodeLifecycle).await?,
        service_lb: of(Controller::ServiceLb).await?,
        node_route: of(Controller::NodeRoute).await?,
        tagging: of(Controller::Tagging).await?,
    })
}

/// The host, and the providers in it.
async fn load(
    args: &Arc<Args>,
    settings: settings::Settings,
    cluster: &Cluster,
    registry: &mut Registry,
    leadership: Leadership,
) -> anyhow::Result<Vec<Arc<SwappableProvider>>> {
    let mut options = host::on_this_system(args.provider.cache_dir.clone());
    options.guest_memory_bytes = settings.guest_memory_bytes;
    options.dry_run = args.controllers.dry_run;
    memory::warn_if_container_is_small(&settings.providers, settings.guest_memory_bytes);
    // Not even a call that is in the middle of something says anything to the cloud after the lead is lost.
    let clients = HttpClients::only_while(move || !leadership.is_over());
    let host = Arc::new(Host::new(options, registry)?.with_http_clients(clients));
    let outside = Outside {
        events: cluster.event_sink(),
        cluster: cluster.view(),
    };
    let subject = subject(args);
    let mut providers = Vec::new();
    let cache_dir = args.provider.cache_dir.clone();
    let pulls = settings
        .providers
        .iter()
        .map(|source| load::component_file(source, cache_dir.as_deref()));
    let files = join_all(pulls).await;
    for with_file in settings.providers.into_iter().zip(files) {
        let reload = reload(args, &with_file.0.settings.name);
        let (outside, subject) = (outside.clone(), subject.clone());
        providers.push(load::start(&host, with_file, cache_dir.clone(), reload, outside, subject).await?);
    }
    Ok(providers)
}

/// What Events about this process are about.
fn subject(args: &Args) -> Subject {
    let election = &args.leader_election;
    swap::subject(
        |variable| std::env::var(variable).ok(),
        &election.leader_elect_resource_namespace,
        &election.leader_elect_resource_name,
    )
}

/// Reads what one provider is loaded from anew.
fn reload(args: &Arc<Args>, name: &str) -> Reload {
    let (args, name) = (args.clone(), name.to_owned());
    Arc::new(move || {
        let settings = settings::resolve(&args).map_err(|problems| problems.to_string())?;
        let mut sources = settings.providers.into_iter();
        sources.find(|source| source.settings.name == name).ok_or_else(|| {
            format!(
                "provider {name:?} is not in the configuration any more; it runs on until the process is started again"
            )
        })
    })
}
