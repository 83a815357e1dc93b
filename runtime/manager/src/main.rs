//! Starts Cloudwit and nothing else.

mod admin;
mod api_server;
mod args;
mod clock;
mod cluster_args;
mod command_line;
mod config;
mod controller_args;
mod credentials;
mod delegation_args;
mod duration;
mod explain;
mod explain_answer;
mod explain_fallback;
mod explain_pages;
mod feature_gates;
mod flag_checks;
mod go_values;
mod leader_migration;
mod leadership;
mod lease;
mod lease_metrics;
mod lease_plan;
mod logging_args;
mod no_effect_args;
mod node_deletion_args;
mod options;
mod provider_args;
mod provider_dir;
mod providers;
mod request_budget;
mod run;
mod secure_serving_args;
mod selection;
mod swap;
mod swap_files;
mod swap_plan;
mod telemetry;
mod tls_options;
mod version;
mod webhook_args;

use std::process::ExitCode;

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("cloudwit: no threads to work with: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(cloudwit());
    // A process that lost the lead ends now: a name look-up or a compilation on another thread must not hold it up.
    runtime.shutdown_background();
    code
}

async fn cloudwit() -> ExitCode {
    let command_line::Parsed { args, matches } = match command_line::parse(std::env::args()) {
        Ok(parsed) => parsed,
        Err(ended) => ended.exit(),
    };
    if let Ok(Some(text)) = args.version.text() {
        print!("{text}");
        return ExitCode::SUCCESS;
    }
    let ended = match args.command {
        // No log: its answer is all that is wanted.
        Some(explain::Command::Explain(args)) => explain::run(args).await,
        None => {
            telemetry::init(&args.logging);
            for note in flag_checks::without_effect(&matches).into_iter().chain(args.features.notes()) {
                tracing::warn!("{note}");
            }
            run::run(args).await.map(|()| ExitCode::SUCCESS)
        }
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
