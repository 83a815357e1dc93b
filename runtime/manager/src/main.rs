//! Starts Cloudwit and nothing else.

mod access_metrics;
mod admin;
mod admission;
mod api_server;
mod api_server_args;
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
mod controller_args;
mod credentials;
mod delegation_args;
mod duration;
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
mod metrics_page;
mod no_effect_args;
mod node_deletion_args;
mod options;
mod pages;
mod peer_limit;
mod process_metrics;
mod provider_args;
mod provider_dir;
mod providers;
mod proxy_headers;
mod request_budget;
mod rest_client_metrics;
mod review_cache;
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
mod watched_files;
mod webhook_args;
mod yaml;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = cloudwit_host::compile_for_parent(std::env::args()) {
        return code;
    }
    // Before there are threads, which would go by the old limit.
    let files = file_limit::raise();
    let runtime = match threads() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cloudwit: no threads to work with: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(cloudwit(files));
    // A process that lost the lead ends now: a name look-up or a compilation on another thread must not hold it up.
    runtime.shutdown_background();
    code
}

/// One thread does all that waits for the network and runs guests, unless `TOKIO_WORKER_THREADS` says otherwise: several mostly wake each other,
/// which costs a wave of Nodes a quarter more CPU. A guest that calculates gives way every 10 ms; what blocks has threads of its own.
fn threads() -> std::io::Result<tokio::runtime::Runtime> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        runtime.worker_threads(1);
    }
    runtime.enable_all().build()
}

async fn cloudwit(files: std::io::Result<file_limit::Raised>) -> ExitCode {
    let command_line::Parsed { args, matches } = match command_line::parse(std::env::args()) {
        Ok(parsed) => parsed,
        Err(ended) => ended.exit(),
    };
    if let Ok(Some(text)) = args.version.text() {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    let as_lines = args.logging.logging_format == logging_args::LogFormat::Json;
    let mut logs = false;
    let ended = match args.command {
        // No log: its answer is all that is wanted.
        Some(explain::Command::Explain(args)) => explain::run(args).await,
        Some(explain::Command::Install(args)) => install::run(*args).await,
        Some(explain::Command::Config(command)) => config_check::run(&command),
        Some(explain::Command::Inspect(args)) => inspect::run(args).await,
        None => {
            let identity = clock::identity();
            // A bad flag of the exporter is told by the checks of `run`, with all others.
            let traces = trace_export::Traces::of(&args.tracing, &identity);
            logs = true;
            let verbosity = telemetry::init(&args.logging, traces.as_ref().ok().and_then(Option::as_ref));
            file_limit::log(&files);
            for note in flag_checks::without_effect(&matches)
                .into_iter()
                .chain(args.features.notes())
            {
                tracing::warn!("{note}");
            }
            run::run(args, identity, verbosity, traces)
                .await
                .map(|()| ExitCode::SUCCESS)
        }
    };
    match ended {
        Ok(code) => code,
        // Whoever reads JSON reads lines of it to the last one.
        Err(error) if logs && as_lines => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
