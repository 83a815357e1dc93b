//! `cloudwit provider conformance`: tests the promises of the contract on a component and a cloud.
//!
//! ```text
//!   trial          the provider, loaded with a wire that can fail, and the objects it is tried with
//!   config         describe and check, whatever the configuration
//!   instances      order, length, evidence; a cloud that fails is never absence
//!   balancers      ensure, get, update-targets, delete: idempotent, found again, gone
//!   routes         apply and list: idempotent, gone
//!   small          clusters, DNS: what changes nothing
//!   volumes        create, get, attach, detach, delete: idempotent, in order, gone; extras: what counts beside them
//!   tagging        tags of machines: set, taken off, idempotent
//!   secrets        nothing that was written contains one
//!   faults         the wire: fails on demand, else records or answers from a recording
//!   report         for people, and JUnit for CI
//! ```

mod balancers;
mod config;
mod faults;
mod instances;
mod report;
mod routes;
mod secrets;
mod small;
mod tagging;
mod trial;
mod volumes;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use cloudwit_host::grants::HttpGrant;
use cloudwit_model::{Cloud as _, NodeRef};
use reqwest::Url;
use serde_json::Value;
use tempfile::TempDir;

use crate::commands::calls::objects;
use crate::commands::conformance::report::Report;
use crate::commands::conformance::trial::Trial;
use crate::commands::provider::source::{self, SourceArgs};
use crate::commands::recordings::cassette::Cassette;

/// Arguments of `provider conformance`.
#[derive(Debug, clap::Args)]
pub struct ConformanceArgs {
    #[command(flatten)]
    source: SourceArgs,

    /// The cloud that it is tried on, such as http://127.0.0.1:8080: the only destination that is granted. Without it the destinations of the settings are.
    #[arg(long, value_name = "URL")]
    stand_in: Option<Url>,

    /// Try it on what --record wrote in the place of a cloud: with its settings, machines, Service and route.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stand_in", "node", "service", "route", "record", "provider_config", "provider_cloud_config", "provider_settings"])]
    cassette: Option<PathBuf>,

    /// Write what went to the cloud and came back to this file, for --cassette. Secrets are not in it.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// A machine that the cloud has: NAME, or NAME=PROVIDER-ID. May be given again.
    #[arg(long = "node", value_name = "NODE", value_parser = objects::node)]
    node: Vec<NodeRef>,

    /// The manifest of the Service whose load balancer is made and deleted; without it a Service with one port.
    #[arg(long, value_name = "FILE")]
    service: Option<PathBuf>,

    /// The Pod range that is routed to the first Node and taken away again.
    #[arg(long, value_name = "CIDR", default_value = "10.251.0.0/24")]
    route: String,

    /// Write the results to this file as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// The Service that is used when none is given.
const SERVICE: &str = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "conformance", "namespace": "default"},
    "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]}}"#;

/// Tries all that the component exports, and prints what it finds.
pub async fn run(args: ConformanceArgs) -> anyhow::Result<ExitCode> {
    follow_logs();
    let prepared = match &args.cassette {
        Some(file) => Prepared::from_recording(&args, file).await?,
        None => Prepared::on_the_cloud(&args).await?,
    };
    let Prepared {
        mut trial,
        service,
        route,
        _folder,
    } = prepared;
    let nodes = trial.nodes.clone();
    let abilities = trial.provider.abilities();
    if trial.nodes.is_empty() && (abilities.instances || abilities.routes || abilities.volumes.basic) {
        bail!("no machine is given to look up; name one or more that the cloud has with --node=NAME");
    }
    let mut report = Report::default();
    config::run(&trial, &mut report).await;
    if abilities.instances {
        let known = instances::run(&trial, &mut report).await;
        if known.len() == trial.nodes.len() {
            trial = trial.on(known).await?;
        }
    }
    if abilities.load_balancers {
        balancers::run(&trial, &mut report).await;
    }
    if abilities.routes {
        routes::run(&trial, &route, &mut report).await;
    }
    if abilities.tagging {
        tagging::run(&trial, &mut report).await;
    }
    if abilities.volumes.basic {
        volumes::run(&trial, &mut report).await;
    }
    small::run(&trial, &mut report).await;
    secrets::run(&trial, &mut report);
    report.memory = trial.provider.guest_memory().peak;
    if let Some(file) = &args.record {
        trial.recording(service, &route, &nodes).write(file)?;
    }
    print!("{}", report.text());
    if let Some(file) = &args.junit {
        let name = &trial.provider.description().name;
        std::fs::write(file, report.junit(name)).with_context(|| format!("{}: cannot be written", file.display()))?;
    }
    Ok(match report.failed() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// A trial that can begin.
struct Prepared {
    trial: Trial,
    /// The manifest of its Service.
    service: Value,
    route: String,
    /// Files of a recording.
    _folder: Option<TempDir>,
}

impl Prepared {
    async fn on_the_cloud(args: &ConformanceArgs) -> anyhow::Result<Self> {
        let mut from = args.source.read()?;
        if let Some(url) = &args.stand_in {
            from.settings.grants.http = vec![grant(url)?];
        }
        from.settings.cluster_cidrs = vec![args.route.clone()];
        let service: Value = match &args.service {
            Some(file) => objects::manifest(file)?,
            None => serde_json::from_str(SERVICE)?,
        };
        let trial = Trial::begin(from, args.node.clone(), objects::service(service.clone())?).await?;
        Ok(Self {
            trial,
            service,
            route: args.route.clone(),
            _folder: None,
        })
    }

    async fn from_recording(args: &ConformanceArgs, file: &Path) -> anyhow::Result<Self> {
        let mut cassette = Cassette::read(file)?;
        let Some(recorded) = cassette.trial.take() else {
            bail!(
                "{}: it is not a recording of `provider conformance --record`; make the calls in it again with `provider replay`",
                file.display()
            );
        };
        let folder = tempfile::tempdir()?;
        let component = PathBuf::from(&args.source.provider);
        let mut from = source::of_recording(component, file, &cassette, folder.path())?;
        from.settings.cluster_cidrs = vec![recorded.route.clone()];
        let (nodes, service) = (recorded.nodes(), objects::service(recorded.service.clone())?);
        let trial = Trial::again(from, recorded.exchanges, cassette.time(), nodes, service).await?;
        Ok(Self {
            trial,
            service: recorded.service,
            route: recorded.route,
            _folder: Some(folder),
        })
    }
}

/// Has all log lines of providers written, to nowhere: only then is it noted which of them contain a secret.
fn follow_logs() {
    let lines = tracing_subscriber::fmt().with_writer(std::io::sink);
    // Fails where there is a log already, which has them.
    let _ = lines.with_max_level(tracing::Level::TRACE).try_init();
}

fn grant(url: &Url) -> anyhow::Result<HttpGrant> {
    let host = url
        .host_str()
        .context("--stand-in: this URL names no host; write http://127.0.0.1:8080")?;
    let grant = serde_json::json!({
        "scheme": url.scheme(), "host": host, "port": url.port_or_known_default(), "allowLoopback": true,
        "methods": ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"],
    });
    serde_json::from_value(grant).context("--stand-in: this is not an http or https URL")
}
