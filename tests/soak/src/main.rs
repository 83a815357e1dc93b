//! The soak that `cargo xtask soak` builds and starts: faults by schedule on the real stack, and promises that have to hold meanwhile and in the end.
//!
//! ```text
//!   two replicas --> api_proxy (faults) --> API server
//!        |  ^
//!        |  +--- watch: /livez, memory, descriptors, canaries in every output, each second
//!        v
//!   the simulated cloud (faults), by a name of our own name server (slow)
//! ```
//!
//! | module | what it is about |
//! | ------ | ---------------- |
//! | `faults` | what each fault does; which one when (`schedule`), drawn from a seed; where they are made (`api_proxy`, `dns`, `namespace`) |
//! | `watch`, `canary` | what is observed all the time |
//! | `cluster` | objects and machines, and how they have to be in the end |
//! | `replica`, `files` | the processes, and what they are started from |
//! | `findings`, `report` | broken promises, the table |
//!
//! Exit code 0: all promises held. 1: one was broken. 2: the soak could not be run.

mod canary;
mod cluster;
mod faults;
mod files;
mod findings;
mod replica;
mod report;
mod run;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::faults::schedule::Disturbance;

/// Faults by schedule on the real stack; `cargo xtask soak --help` tells more.
#[derive(Debug, Parser)]
pub struct Args {
    /// For how long faults come and go.
    #[arg(long, default_value_t = 60)]
    pub minutes: u32,
    /// Nodes of the good provider.
    #[arg(long, default_value_t = 10_000)]
    pub nodes: usize,
    /// Services of type LoadBalancer.
    #[arg(long, default_value_t = 200)]
    pub services: usize,
    /// Start of the schedule's random numbers.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Only these faults.
    #[arg(long, value_parser = Disturbance::named, value_delimiter = ',')]
    pub only: Vec<Disturbance>,
    /// The binary `cloudwit`.
    #[arg(long)]
    pub cloudwit: PathBuf,
    /// The component of the provider `sim`.
    #[arg(long)]
    pub provider: PathBuf,
    /// The folder with the test guests.
    #[arg(long)]
    pub guests: PathBuf,
    /// The page that gets the figures.
    #[arg(long)]
    pub write: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if !faults::namespace::inside() {
        match faults::namespace::reenter() {
            Ok(Some(status)) => {
                return status
                    .code()
                    .and_then(|code| u8::try_from(code).ok())
                    .unwrap_or(2)
                    .into();
            }
            // Without one the soak leaves out what needs it, and says so.
            Ok(None) => {}
            Err(error) => {
                eprintln!("soak: {error:#}");
                return 2.into();
            }
        }
    }
    match run::run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => 1.into(),
        Err(error) => {
            eprintln!("soak: {error:#}");
            2.into()
        }
    }
}
