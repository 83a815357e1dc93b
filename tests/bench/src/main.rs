//! What `cargo xtask bench` runs: measures, and prints a table.
//!
//! | file | what it measures |
//! | ---- | ---------------- |
//! | `sizes` | components, as they are and compressed |
//! | `calls` | loading a component, and a call in a fresh instance |
//! | `node_wave` | many Nodes that wait for Cloudwit on a real API server |

mod calls;
mod node_wave;
mod sizes;

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;

/// Measures; `cargo xtask bench --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The component of the provider `sim`.
    #[arg(long, value_name = "FILE")]
    provider: PathBuf,

    /// The folder with the test guests.
    #[arg(long, value_name = "DIR")]
    guests: PathBuf,

    /// How many Nodes wait to be initialised.
    #[arg(long, default_value_t = 1000)]
    nodes: u16,
}

/// What was measured, in words, and its value with the unit.
type Row = (String, String);

#[tokio::main]
async fn main() -> Result<()> {
    let Args {
        provider,
        guests,
        nodes,
    } = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    print("components (bytes, gzip -9)", &sizes::measure(&provider, &guests)?);
    print("the provider sim in the host", &calls::measure(&provider).await?);
    let title = format!("{nodes} tainted Nodes on a real API server: default flags but no routes, no cloud latency");
    print(&title, &node_wave::measure(&provider, nodes).await?);
    Ok(())
}

fn print(title: &str, rows: &[Row]) {
    println!("\n{title}");
    let width = rows.iter().map(|(what, _)| what.len()).max().unwrap_or_default();
    for (what, value) in rows {
        println!("  {what:width$}  {value:>20}");
    }
}
