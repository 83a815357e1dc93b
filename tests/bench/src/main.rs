//! What `cargo xtask bench` runs: does the work that was asked for, prints a table after each piece, and writes the report.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use cloudwit_bench::machine::Machine;
use cloudwit_bench::plan::Plan;
use cloudwit_bench::report::ledger::Ledger;
use cloudwit_bench::scene::binary::{self, Binary, Build};
use cloudwit_bench::scene::contestant::Contestants;
use cloudwit_bench::scene::setting::Setting;
use cloudwit_bench::works;
use xtask::commands::bench::work::BenchWork;

/// Measures; `cargo xtask bench --help` tells more.
#[derive(Debug, Parser)]
struct Args {
    /// The Cloudwit that is measured.
    #[arg(long, value_name = "FILE")]
    cloudwit: PathBuf,

    /// How it was built.
    #[arg(long, value_enum)]
    build: Build,

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

    /// Runs of each side; each piece of work has a number of its own when left out.
    #[arg(long)]
    pairs: Option<usize>,

    /// Only these pieces of work or sections; everything when left out.
    #[arg(long)]
    only: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let programs = std::env::current_exe().context("looking for our own program")?;
    binary::forget(&args.peer)?;
    let contestants = Contestants {
        binary: Binary::copy(&args.cloudwit, args.build)?,
        programs: programs.parent().context("our own program is in no folder")?.to_owned(),
        provider: args.provider,
        peer: args.peer,
    };
    let plan = Plan::new(args.full, &args.only, args.pairs);
    if plan.is_empty() {
        bail!(
            "{} is nothing that such a run measures: see tests/bench/src/plan.rs",
            args.only.join(", ")
        );
    }
    let mut ledger = Ledger::open(args.results, Machine::this(args.build), plan.clone())?;
    let setting = Setting::new(contestants, args.guests, args.full, plan)?;
    for work in BenchWork::value_variants().iter().copied() {
        if setting.plan.has(work) {
            works::run(work, &setting, &mut ledger).await?;
        }
    }
    ledger.close()
}
