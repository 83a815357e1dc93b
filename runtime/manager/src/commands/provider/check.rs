//! `cloudwit provider check`: configuration and grants, without network.

use std::process::ExitCode;
use std::sync::Arc;

use cloudwit_host::{MissingGrant, Problem};

use crate::commands::cluster::Cluster;
use crate::commands::provider::source::{self, SourceArgs};
use crate::commands::recordings::exchanges::Exchanges;
use crate::config::mistakes::Mistakes;

/// Arguments of `provider check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints what is wrong and what lacks.
pub async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let from = args.source.read()?;
    // A check that calls the cloud gets no answer.
    let no_cluster = Arc::new(Cluster::default()).outside();
    let provider = source::load(&from, no_cluster, Arc::new(Exchanges::answered_from(Vec::new()))).await?;
    let description = provider.description();
    let (errors, warnings): (Vec<Problem>, Vec<Problem>) =
        provider.check().await?.into_iter().partition(Problem::is_error);
    let (optional, missing): (Vec<MissingGrant>, Vec<MissingGrant>) =
        provider.missing_grants().into_iter().partition(|lack| lack.optional);
    for warning in &warnings {
        eprintln!("Warning: {}: {warning}", from.config_origin);
    }
    for lack in &optional {
        eprintln!("Warning: missing optional grant; to allow it, add {lack}");
    }
    let errors = errors.iter().map(|error| format!("{}: {error}", from.config_origin));
    let missing = missing.iter().map(|lack| format!("missing grant; add {lack}"));
    let mistakes: Vec<String> = errors.chain(missing).collect();
    Mistakes::none_of(mistakes, "")?;
    println!(
        "{} {}: nothing is wrong, and no grant is missing",
        description.name, description.version
    );
    Ok(ExitCode::SUCCESS)
}
