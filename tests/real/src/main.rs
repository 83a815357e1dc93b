//! A cluster with real Nodes on one machine: `cargo xtask sandbox --real`.
//!
//! Three processes of this one program stand inside each other, so that ending the outer ones ends all:
//!
//! | command | namespaces | what it does |
//! | ------- | ---------- | ------------ |
//! | `run` | those of the machine | starts the hub, and removes control groups when it is gone |
//! | `hub` | its own (mounts, processes, network) | the control plane, the simulated cloud, Cloudwit; starts and ends machines |
//! | `machine` | its own, inside the hub's | containerd, kubelet and kube-proxy of one machine |

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod actuator;
mod checks;
mod cloud;
mod control_groups;
mod control_plane;
mod files;
mod hub;
mod machine;
mod network;
mod outside;
mod pki;
mod process;

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
    /// The first process of the hub.
    #[command(hide = true)]
    Hub(hub::Options),
    /// The first process of a machine.
    #[command(hide = true)]
    Machine(machine::Options),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(options) => outside::run(&options),
        Command::Hub(options) => hub::run(&options),
        Command::Machine(options) => machine::run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            ExitCode::FAILURE
        }
    }
}
