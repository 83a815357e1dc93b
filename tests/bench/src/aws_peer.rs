//! What `cargo xtask bench --cloud aws` runs: Cloudwit and AWS's own cloud controller manager do the same work, one after the other, on the same
//! moto, and the calls that moto was sent are counted.
//!
//! | file | what it is about |
//! | ---- | ---------------- |
//! | `contest` | one contender: its cluster, its phases, what was measured |
//! | this | both, and the table |

mod contest;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use cloudwit_test_support::moto::Moto;

use crate::contest::{Contender, Measured, Scene};

/// Compares; `cargo xtask bench --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The component of the provider `aws`.
    #[arg(long, value_name = "FILE")]
    provider: PathBuf,

    /// AWS's cloud controller manager.
    #[arg(long, value_name = "FILE")]
    peer: PathBuf,

    /// How many Nodes join.
    #[arg(long, default_value_t = 500)]
    nodes: u16,

    /// How many Services want a load balancer.
    #[arg(long, default_value_t = 20)]
    services: u16,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let moto = Moto::start_lifelike().await?;
    // Both clusters are there before either begins: moto gets slower with each instance it has.
    let mut scenes = Vec::new();
    for contender in [Contender::Ours(args.provider), Contender::Peer(args.peer)] {
        scenes.push(Scene::set(&moto, contender, args.nodes, args.services).await?);
    }
    let mut measured = Vec::new();
    for scene in scenes {
        let name = scene.name();
        eprintln!("{name} at work");
        measured.push(scene.play().await?);
    }
    println!(
        "\n{} Nodes and {} Services of type LoadBalancer on one moto, default flags but no routes",
        args.nodes, args.services
    );
    print(&measured[0], &measured[1]);
    Ok(())
}

/// Ours, theirs, and how many times ours theirs is.
fn print(ours: &Measured, peer: &Measured) {
    let width = ours.rows.iter().map(|row| row.what.len()).max().unwrap_or_default();
    println!(
        "  {:width$}  {:>12}  {:>12}  {:>8}",
        "", "Cloudwit", "upstream", "ratio"
    );
    for (ours, peer) in ours.rows.iter().zip(&peer.rows) {
        let ratio = if ours.value > 0.0 {
            format!("{:.1}", peer.value / ours.value)
        } else {
            "-".to_owned()
        };
        let (value, other) = (ours.shown(), peer.shown());
        println!("  {:width$}  {value:>12}  {other:>12}  {ratio:>8}", ours.what);
    }
    for (name, measured) in [("Cloudwit", ours), ("upstream", peer)] {
        println!("\n  calls of {name}");
        for (action, count) in &measured.actions {
            println!("    {count:>6}  {action}");
        }
    }
}
