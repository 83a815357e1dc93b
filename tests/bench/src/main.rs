//! What `cargo xtask bench` runs: does the work that was asked for, prints a table after each piece, and writes the report.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use cloudwit_bench::contestant::Contestants;
use cloudwit_bench::machine::Machine;
use cloudwit_bench::setting::Setting;
use cloudwit_bench::{publish, report, works};
use xtask::bench_work::BenchWork;

/// Measures; `cargo xtask bench --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The component of the provider `sim`.
    #[arg(long, value_name = "FILE")]
    provider: PathBuf,

    /// The folder with the test guests.
    #[arg(long, value_name = "DIR")]
    guests: PathBuf,

    /// Upstream's controllers.
    #[arg(long, value_name = "FILE")]
    peer: PathBuf,

    /// Where the report goes.
    #[arg(long, value_name = "DIR")]
    results: PathBuf,

    /// All sizes.
    #[arg(long)]
    full: bool,

    /// Runs of each side.
    #[arg(long)]
    pairs: usize,

    /// Only these; everything when left out.
    #[arg(long, value_enum)]
    only: Vec<BenchWork>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let programs = std::env::current_exe().context("looking for our own program")?;
    let contestants = Contestants {
        programs: programs.parent().context("our own program is in no folder")?.to_owned(),
        provider: args.provider,
        peer: args.peer,
    };
    let setting = Setting::new(contestants, args.guests, args.full, args.pairs)?;
    println!("{}", Machine::this().sentence());
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for work in BenchWork::value_variants().iter().copied() {
        if !args.only.is_empty() && !args.only.contains(&work) {
            continue;
        }
        match works::run(work, &setting).await {
            Ok(sections) => {
                for section in &sections {
                    println!("{}", report::terminal(section));
                }
                // After each piece, so that one that fails later costs nothing that was measured.
                publish::publish(&args.results, sections.clone())?;
                all.extend(sections);
            }
            Err(error) => {
                println!("\n{}: not measured: {error:#}", work.name());
                failed.push(work.name());
            }
        }
    }
    for line in report::missed(&all) {
        println!("goal missed: {line}");
    }
    println!("written: {}", args.results.display());
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}
