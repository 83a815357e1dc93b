//! Starts Cloudwit and nothing else.

mod admin;
mod api_server;
mod args;
mod config;
mod duration;
mod options;
mod provider_dir;
mod run;
mod selection;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let args = args::Args::parse();
    telemetry::init(&args.logging);
    match run::run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cloudwit: {error:#}");
            ExitCode::FAILURE
        }
    }
}
