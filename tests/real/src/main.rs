//! A cluster with real Nodes on one machine: `cargo xtask sandbox --real`.
//!
//! Processes of this one program stand inside each other, so that ending the outer ones ends all:
//!
//! | command | namespaces | what it does |
//! | ------- | ---------- | ------------ |
//! | `run` | those of the machine | starts the hub, and checks that it leaves nothing behind |
//! | `hub` | its own (mounts, processes, network) | the control plane, the simulated cloud, Cloudwit; starts and ends machines |
//! | `machine` | its own, inside the hub's | containerd, kubelet and kube-proxy of one machine |
//! | `client` | its own network, inside the hub's | requests to load balancers from outside of the cloud |
//! | `sweep` | those of the machine | removes control groups when `run` has ended |

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod checks;
mod cloud;
mod hub;
mod manager;
mod outside;
mod process;
mod volumes;
mod waiting;

#[derive(Debug, Parser)]
#[command(name = "cloudwit-real")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Starts the cluster and waits for its end.
    Run(hub::Options),
    /// Prints what a cluster could leave behind on this machine.
    Traces(outside::TracesOptions),
    /// The first process of the hub.
    #[command(hide = true)]
    Hub(hub::Options),
    /// The first process of a machine.
    #[command(hide = true)]
    Machine(hub::machine::Options),
    /// The client outside of the cloud.
    #[command(hide = true)]
    Client,
    /// Joins a control group and becomes another program.
    #[command(hide = true)]
    Join(outside::control_groups::JoinOptions),
    /// Removes a control group when standard input closes.
    #[command(hide = true)]
    Sweep(outside::sweep::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(options) => outside::run(&options),
        Command::Traces(options) => outside::traces(&options),
        Command::Hub(options) => hub::run(&options),
        Command::Machine(options) => hub::machine::run(&options),
        Command::Client => cloud::client::run(),
        Command::Join(options) => outside::control_groups::join(&options),
        Command::Sweep(options) => outside::sweep::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}
