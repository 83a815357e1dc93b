//! Wiring: API server, provider host, controllers, admin pages.

mod prepare;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use cloudwit_controllers::{ControllersError, Leadership};
use cloudwit_host::SwappableProvider;
use cloudwit_host::bounded_work::bounded;
use cloudwit_model::Cloud as _;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::api::metrics::RestClientMetrics;
use crate::api::server::ApiServer;
use crate::config::options;
use crate::config::settings;
use crate::election::candidate::{Candidacy, Candidates, Election};
use crate::election::clock;
use crate::flags::args::Args;
use crate::process::stop::StopSignals;
use crate::process::watchdog::Watchdog;
use crate::process::work_runtime::{Started, WorkRuntime};
use crate::providers::csi;
use crate::providers::load;
use crate::run::prepare::{Prepared, prepare};
use crate::serving::admin;
use crate::serving::configz;
use crate::serving::explain_pages::ExplainSource;
use crate::serving::health::checks::Checks;
use crate::serving::health::sources;
use crate::serving::https::SecureServing;
use crate::serving::pages;
use crate::serving::pages::Pages;
use crate::status::facts::{Moment, Process};
use crate::status::source::StatusSource;
use crate::telemetry::logs::Verbosity;
use crate::telemetry::process_metrics;
use crate::telemetry::trace_export::Traces;
use crate::volumes::DriverSource;
use crate::volumes::explain::VolumeExplain;
use crate::webhook::metrics::WebhookMetrics;
use crate::webhook::router;
use crate::webhook::volume_label::gather::{Gatherer, Source};

/// How long writes under way may take at the end. Kubernetes kills a Pod 30 s after SIGTERM by default.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// How long the loops may take to end when nothing is written any more. They only wait at awaits; a working thread that is stuck is left behind.
const LAST_LOOPS: Duration = Duration::from_secs(2);

/// How long checks of flags and files may take at the start.
const CHECKS: Duration = Duration::from_secs(60);

/// Runs until stopped. Nothing is written to the cluster before everything that can be checked has been checked.
pub async fn run(
    args: Args,
    identity: String,
    verbosity: Verbosity,
    traces: anyhow::Result<Option<Traces>>,
    work: WorkRuntime,
    mut stop: StopSignals,
) -> anyhow::Result<()> {
    let starting = Start {
        args: Arc::new(args),
        identity,
        verbosity,
        work,
        started: Timestamp::now(),
    };
    let settling = starting.work.clone();
    let started = tokio::select! {
        biased;
        // Nothing is written and no Lease is held: what was begun is dropped.
        _ = stop.requested() => None,
        started = starting.start(traces) => Some(started?),
    };
    let Some(mut started) = started else {
        tracing::info!("stopping before startup completed");
        settling.settle().await;
        return Ok(());
    };
    tokio::select! {
        ended = &mut started.pages => ended.context("the admin pages crashed")?.context("the admin pages ended")?,
        ended = started.loops.join() => ended.context("the controllers")?.context("the controllers ended")?,
        lost = started.candidacy.lost() => return Err(lost),
        _ = stop.requested() => {
            tracing::info!("stopping");
            // From here on no write begins, also on a working thread that is stuck and runs on later. One that is stuck within a write keeps
            // the Lease from being released.
            let all_ended = started.candidacy.resign(LAST_WRITES).await;
            started.shutdown.cancel();
            match tokio::time::timeout(LAST_LOOPS, started.loops.join()).await {
                Ok(ended) => ended.context("the controllers")?.context("the controllers ended")?,
                Err(_) => tracing::warn!("controllers did not stop in time; abandoned"),
            }
            started.candidacy.release(all_ended).await;
        }
    }
    if let Some(traces) = started.traces {
        traces.finish().await;
    }
    Ok(())
}

/// What the start needs.
struct Start {
    args: Arc<Args>,
    identity: String,
    verbosity: Verbosity,
    work: WorkRuntime,
    started: Timestamp,
}

/// What runs after it.
struct Running {
    candidacy: Candidacy,
    pages: JoinHandle<anyhow::Result<()>>,
    loops: Started<Result<(), ControllersError>>,
    shutdown: CancellationToken,
    traces: Option<Traces>,
}

impl Start {
    async fn start(self, traces: anyhow::Result<Option<Traces>>) -> anyhow::Result<Running> {
        let (args, work) = (&self.args, &self.work);
        let read = args.clone();
        let settings = bounded("settings", CHECKS, move || settings::resolve(&read)).await??;
        if args.controllers.dry_run && args.leader_election.leader_elect {
            tracing::info!("dry run: leader election skipped");
        }
        let traces = traces?;
        // The API server and the clouds are reached through one TLS library; only the process may choose its crypto.
        if rustls::crypto::ring::default_provider().install_default().is_err() {
            bail!("another TLS crypto provider is installed already");
        }
        let mut registry = Registry::default();
        let watchdog = Watchdog::new(clock::since_boot(), &mut registry);
        watchdog.start(work);
        let requests = RestClientMetrics::new(&mut registry);
        let server = Arc::new(ApiServer::connect(&args.api_server, &self.identity, requests.clone()).await?);
        let https = SecureServing::bind(args, &requests, &mut registry).await?;
        let webhooks = args.webhooks.selected();
        let webhook_server = match webhooks.is_empty() {
            true => None,
            false => Some(SecureServing::bind_for_webhooks(&args.webhooks.serving()).await?),
        };
        let webhook_metrics = webhook_server.is_some().then(|| WebhookMetrics::new(&mut registry));
        let migration = settings.election.as_ref().and_then(Election::migration);
        let configz = configz::of(args, migration);
        let candidates = Candidates::new(self.identity.clone(), settings.election.clone());
        process_metrics::register(&mut registry);
        traces.iter().for_each(|traces| traces.register(&mut registry));
        let mut options = options::controllers(args, &settings);
        options
            .controllers
            .retain(|controller| candidates.leadership_of(*controller).is_some());
        let routing = settings.routing.clone();

        let prepare = prepare(args.clone(), server.clone(), settings, candidates, registry);
        let Prepared {
            cluster,
            providers: loaded,
            drivers,
            ssh_keys,
            mut registry,
            candidates,
        } = work.start(prepare).ended().await.context("the start")??;
        let mut checks = Checks::beside(work.clone(), watchdog);
        checks.add_of_work(sources::of_providers(&loaded));
        let assigned = load::assigned(loaded.clone(), routing, csi::of_nodes(&drivers))?;

        let shutdown = CancellationToken::new();
        let leadership = candidates.leadership().clone();
        let candidacy = candidates.run(&server, &mut registry).await?;
        checks.add(sources::of_leadership(candidacy.health()));
        let controllers = cluster.health();
        checks.add_of_work(move || sources::of_controllers(&controllers));
        let volumes: Vec<DriverSource> = drivers.iter().map(csi::Served::source).collect();
        for driver in drivers {
            drop(
                work.handle()
                    .spawn(csi::serve(driver, leadership.clone(), shutdown.clone())),
            );
        }
        for sync in ssh_keys {
            let (leadership, shutdown) = (leadership.clone(), shutdown.clone());
            drop(work.handle().spawn(sync.run(leadership, shutdown)));
        }
        let hooks = match (webhook_server, webhook_metrics) {
            (Some(server), Some(metrics)) => {
                let gatherer = work
                    .start(gatherer(loaded.clone()))
                    .ended()
                    .await
                    .context("the webhooks")?;
                Some((server, router::router(&webhooks, &gatherer, &metrics)))
            }
            _ => None,
        };
        let process = Process {
            version: env!("CARGO_PKG_VERSION").into(),
            identity: self.identity,
            started: Moment(self.started),
            cluster: args.cluster.cluster_name.clone(),
        };
        let explain = ExplainSource {
            explain: cluster.explain(),
            volumes: VolumeExplain::new(server.client("explain").await?, volumes.clone(), leadership.clone()),
            work: work.clone(),
            process: process.clone(),
        };
        let status = StatusSource {
            process,
            leadership,
            boards: candidacy.boards(),
            providers: loaded,
            reports: cluster.reports(),
            health: cluster.health(),
            explain: cluster.explain(),
            volumes,
            checks: checks.clone(),
        };
        let router = pages::router(Pages {
            registry: Arc::new(registry),
            checks,
            explain,
            work: work.clone(),
            status,
            configz: Arc::new(configz),
            verbosity: args.secure_serving.profiling.then_some(self.verbosity),
        });
        Ok(Running {
            candidacy,
            pages: tokio::spawn(serve(
                https.map(|https| (https, router.clone())),
                hooks,
                (router, args.admin.admin_address.0),
                shutdown.clone(),
            )),
            loops: work.start(cluster.run(assigned, options, shutdown.clone())),
            shutdown,
            traces,
        })
    }
}

/// A server with what it serves.
type Serving = (SecureServing, axum::Router);

/// Serves pages over HTTPS and on loopback, and webhooks, until one of them ends.
async fn serve(
    pages: Option<Serving>,
    webhooks: Option<Serving>,
    (router, admin): (axum::Router, Option<SocketAddr>),
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    let over_https = async |serving: Option<Serving>| match serving {
        Some((server, router)) => server.serve(router, shutdown.clone()).await,
        None => {
            shutdown.cancelled().await;
            Ok(())
        }
    };
    let plain = admin::serve(router, admin, shutdown.clone());
    tokio::try_join!(plain, over_https(pages), over_https(webhooks)).map(|_| ())
}

/// What webhooks call the providers through; on the working runtime, as all calls.
async fn gatherer(providers: Vec<Arc<SwappableProvider>>) -> Gatherer {
    let sources = providers
        .into_iter()
        .filter(|provider| provider.abilities().volume_labels);
    let source = |provider: Arc<SwappableProvider>| Source {
        name: provider.name().to_owned(),
        cloud: provider,
    };
    Gatherer::start(sources.map(source).collect())
}

/// Says whether the cloud answers, once this process leads; one that waits leaves the cloud alone.
async fn probe(provider: Arc<SwappableProvider>, leadership: Leadership) {
    leadership.begun().await;
    match provider.current().probe().await {
        Ok(()) => tracing::info!(provider = provider.name(), "cloud reachable"),
        Err(error) => tracing::warn!(provider = provider.name(), %error, "cloud not usable yet; retrying"),
    }
}
