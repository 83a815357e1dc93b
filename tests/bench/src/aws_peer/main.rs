//! What `cargo xtask bench --cloud aws` runs: Cloudwit and AWS's own cloud controller manager do the same work in turn, several times, each time on a
//! fresh moto, and the calls that moto was sent are counted.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | `contest` | one contender: its cluster, its phases, what was measured |
//! | this | both, in turn, and the table |

mod contest;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use cloudwit_bench::machine::Machine;
use cloudwit_bench::measure::Section;
use cloudwit_bench::measure::pairs::{Reading, pairs};
use cloudwit_bench::report;
use cloudwit_bench::report::publish;
use cloudwit_bench::report::publish::Stamp;
use cloudwit_bench::scene::binary::{self, Binary, Build};
use cloudwit_bench::scene::contestant::Side;
use cloudwit_test_support::clouds::moto::Moto;

use crate::contest::{Contender, Scene};

/// Compares; `cargo xtask bench --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The Cloudwit that is measured.
    #[arg(long, value_name = "FILE")]
    cloudwit: PathBuf,

    /// How it was built.
    #[arg(long, value_enum)]
    build: Build,

    /// The component of the provider `aws`.
    #[arg(long, value_name = "FILE")]
    provider: PathBuf,

    /// AWS's cloud controller manager.
    #[arg(long, value_name = "FILE")]
    peer: PathBuf,

    /// Where the report goes.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// Runs of each side.
    #[arg(long)]
    pairs: usize,

    /// How many Nodes join.
    #[arg(long, default_value_t = 500)]
    nodes: u16,

    /// How many Services want a load balancer.
    #[arg(long, default_value_t = 20)]
    services: u16,
}

/// How often each action was called, the most frequent first, by whom. Of the last run: there is no difference between runs but for waiting.
type Actions = RefCell<BTreeMap<Side, Vec<(String, usize)>>>;

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let (machine, stamp) = (Machine::this(args.build), Stamp::now());
    println!("{}", machine.sentence());
    publish::warn_of_another(&args.results, &machine)?;
    let binary = Binary::copy(&args.cloudwit, args.build)?;
    binary::forget(&args.peer)?;
    let Args { nodes, services, .. } = args;
    let title = format!("AWS: {nodes} Nodes and {services} Services of type LoadBalancer, beside AWS's own controller");
    let conditions = "Each run on a fresh moto, in a cluster of its own there. Default flags of both, but no routes; Cloudwit compiles its component at the \
                      start. Nodes register with --provider-id";
    let mut section = Section::new(format!("aws-{nodes}-{services}"), &title, conditions);
    let actions = Actions::default();
    section.measures = pairs(&title, args.pairs, |side| run(&args, &binary, side, &actions)).await?;
    println!("{}", report::terminal(&section));
    for (side, actions) in actions.take() {
        println!("  calls of {side}");
        for (action, count) in actions {
            println!("    {count:>6}  {action}");
        }
    }
    publish::publish(&args.results, &machine, &stamp, vec![section])?;
    println!("written: {}", args.results.display());
    Ok(())
}

/// One side, once. A moto of its own, since moto gets slower with each thing that it has.
async fn run(args: &Args, binary: &Binary, side: Side, actions: &Actions) -> Result<Vec<Reading>> {
    let contender = match side {
        Side::Ours => Contender::Ours {
            folder: binary.folder().to_owned(),
            component: args.provider.clone(),
        },
        Side::Peer => Contender::Peer(args.peer.clone()),
    };
    let moto = Moto::start_lifelike().await?;
    let scene = Scene::set(&moto, contender, args.nodes, args.services).await?;
    let measured = scene.play().await?;
    actions.borrow_mut().insert(side, measured.actions);
    Ok(measured.readings)
}
