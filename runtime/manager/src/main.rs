//! Starts Cloudwit and nothing else.

mod access_metrics;
mod admin;
mod admission;
mod api_config;
mod api_credentials;
mod api_server;
mod api_server_args;
mod api_transport;
mod args;
mod authentication;
mod authorization;
mod client_authorities;
mod clock;
mod cluster_args;
mod command_line;
mod config;
mod config_check;
mod config_file;
mod config_keys;
mod config_schema;
mod config_tree;
mod configz;
mod connections;
mod controller_args;
mod credentials;
mod delegation_args;
mod duration;
mod exec_plugin;
mod explain;
mod explain_answer;
mod explain_fallback;
mod explain_pages;
#[cfg(test)]
mod fake_reviews;
mod feature_gates;
mod file_limit;
mod flag_checks;
mod go_values;
mod health;
mod health_slis;
mod health_sources;
mod host_options;
mod html;
mod inspect;
mod install;
mod install_apply;
mod install_bundle;
mod install_check;
mod install_manifests;
#[cfg(test)]
mod install_tests;
mod leader_migration;
mod leadership;
mod lease;
mod lease_board;
mod lease_metrics;
mod lease_plan;
mod lease_watch;
mod logging_args;
mod memory_plan;
mod metric_help;
mod metric_text;
mod metrics_page;
mod mirrored_file;
mod no_effect_args;
mod node_deletion_args;
mod options;
mod pages;
mod process_metrics;
mod provider_args;
mod provider_dir;
mod providers;
mod proxy_headers;
mod request_budget;
mod response_limits;
mod rest_client_metrics;
mod review_cache;
mod review_gate;
mod reviews;
mod run;
mod secure_serving;
mod secure_serving_args;
mod selection;
mod status;
mod status_page;
mod status_pages;
mod status_source;
mod status_verdict;
mod stop;
mod swap;
mod swap_files;
mod swap_plan;
mod telemetry;
mod tls_clients;
mod tls_options;
mod tls_pairs;
mod trace_export;
mod trace_spans;
mod tracing_args;
mod user;
mod version;
mod watchdog;
mod watched_files;
mod webhook_args;
mod work_runtime;
mod yaml;

use std::process::ExitCode;

use crate::stop::StopSignals;
use crate::work_runtime::WorkRuntime;

fn main() -> ExitCode {
    if let Some(code) = cloudwit_host::compile_for_parent(std::env::args()) {
        return code;
    }
    // Before there are threads, which would go by the old limit.
    let files = file_limit::raise();
    let (control, work) = match work_runtime::control().and_then(|control| Ok((control, work_runtime::work()?))) {
        Ok(runtimes) => runtimes,
        Err(error) => {
            eprintln!("cloudwit: no threads to work with: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = control.block_on(cloudwit(WorkRuntime::new(work.handle().clone()), files));
    // A process that lost the lead ends now: a name look-up, a hanging file or a compilation on another thread must not hold it up.
    work.shutdown_background();
    control.shutdown_background();
    code
}

async fn cloudwit(work: WorkRuntime, files: std::io::Result<file_limit::Raised>) -> ExitCode {
    // Before anything else: a signal that comes earlier is lost to the first process of a container.
    let mut stop = match StopSignals::install() {
        Ok(stop) => stop,
        Err(error) => {
            eprintln!("cloudwit: cannot wait for SIGTERM: {error}");
            return ExitCode::FAILURE;
        }
    };
    let command_line::Parsed { args, matches } = match command_line::parse(std::env::args()) {
        Ok(parsed) => parsed,
        Err(ended) => ended.exit(),
    };
    if let Ok(Some(text)) = args.version.text() {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    match args.command {
        // No log: its answer is all that is wanted.
        Some(command) => {
            let running = work.start(run_command(command));
            tokio::select! {
                ended = running.ended() => told(ended.flatten(), false),
                signal = stop.requested() => ExitCode::from(KILLED_BY + signal),
            }
        }
        None => {
            let as_lines = args.logging.logging_format == logging_args::LogFormat::Json;
            let ended = controllers(args, &matches, files, work, stop).await;
            told(ended.map(|()| ExitCode::SUCCESS), as_lines)
        }
    }
}

/// What shells add to the number of the signal that ended a program.
const KILLED_BY: u8 = 128;

async fn run_command(command: explain::Command) -> anyhow::Result<ExitCode> {
    match command {
        explain::Command::Explain(args) => explain::run(args).await,
        explain::Command::Install(args) => install::run(*args).await,
        explain::Command::Config(command) => config_check::run(&command),
        explain::Command::Inspect(args) => inspect::run(args).await,
    }
}

async fn controllers(
    args: args::Args,
    matches: &clap::ArgMatches,
    files: std::io::Result<file_limit::Raised>,
    work: WorkRuntime,
    mut stop: StopSignals,
) -> anyhow::Result<()> {
    let identity = clock::identity();
    // It reads a file. A bad flag of the exporter is told by the checks of `run`, with all others.
    let (tracing, name) = (args.tracing.clone(), identity.clone());
    let traces = work
        .handle()
        .spawn_blocking(move || trace_export::Traces::of(&tracing, &name));
    let traces = tokio::select! {
        traces = tokio::time::timeout(cloudwit_host::bounded_work::FILE_LIMIT, traces) => traces,
        _ = stop.requested() => return Ok(()),
    };
    let traces = traces.unwrap_or_else(|_| Ok(Err(anyhow::anyhow!("--tracing-ca-file: cannot be read in time"))))?;
    let verbosity = telemetry::init(&args.logging, traces.as_ref().ok().and_then(Option::as_ref));
    file_limit::log(&files);
    for note in flag_checks::without_effect(matches)
        .into_iter()
        .chain(args.features.notes())
    {
        tracing::warn!("{note}");
    }
    run::run(args, identity, verbosity, traces, work, stop).await
}

fn told(ended: anyhow::Result<ExitCode>, as_lines: bool) -> ExitCode {
    match ended {
        Ok(code) => code,
        // Whoever reads JSON reads lines of it to the last one.
        Err(error) if as_lines => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
