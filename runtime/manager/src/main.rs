//! Starts Cloudwit and nothing else.

mod admin;
mod api_server;
mod args;
mod clock;
mod config;
mod credentials;
mod duration;
mod explain;
mod explain_answer;
mod explain_fallback;
mod explain_pages;
mod leader_migration;
mod leadership;
mod lease;
mod lease_metrics;
mod lease_plan;
mod options;
mod provider_dir;
mod providers;
mod request_budget;
mod run;
mod selection;
mod swap;
mod swap_files;
mod swap_plan;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    telemetry::init(&args.logging);
    let ended = match args.command {
        Some(explain::Command::Explain(args)) => explain::run(args).await,
        None => run::run(args).await.map(|()| ExitCode::SUCCESS),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
