//! `cloudwit provider check`: configuration and grants, without network.

use std::process::ExitCode;
use std::sync::Arc;

use crate::commands::install::check::no_cluster;
use crate::commands::provider::exchanges::Exchanges;
use crate::commands::provider::source::{self, SourceArgs};

/// Arguments of `provider check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints what is wrong and what lacks.
pub async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let from = args.source.read()?;
    // A check that asks the cloud gets no answer.
    let provider = source::load(&from, no_cluster(), Arc::new(Exchanges::answered_from(Vec::new()))).await?;
    let description = provider.description();
    let problems = provider.check().await?;
    let lacks = provider.missing_grants();
    let mut mistakes: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}: {}: {}", from.config_origin, problem.at, problem.message))
        .collect();
    mistakes.extend(
        lacks
            .iter()
            .map(|lack| format!("a grant lacks that it asks for; add {lack}")),
    );
    if !mistakes.is_empty() {
        return Err(source::told(&mistakes));
    }
    println!(
        "{} {}: nothing is wrong, and no grant lacks",
        description.name, description.version
    );
    Ok(ExitCode::SUCCESS)
}
