//! Loads each provider in the sandbox and checks its configuration before anything is installed.

use std::sync::Arc;

use cloudwit_host::{Host, Problem};
use prometheus_client::registry::Registry;

use crate::commands::cluster::Cluster;
use crate::commands::install::bundle::Bundle;
use crate::commands::install::command::InstallArgs;
use crate::providers::host;

/// What the components and the providers themselves find wrong. Missing optional grants are warnings on
/// standard error, as the process in the cluster does in its log.
pub async fn mistakes(args: &InstallArgs, bundle: &Bundle) -> anyhow::Result<Vec<String>> {
    if let Some(secret) = &args.existing_secret {
        eprintln!("The providers are not tried here, since their secrets are in the Secret {secret}.");
        return Ok(Vec::new());
    }
    let host = Host::new(host::on_this_system(None), &mut Registry::default())?;
    let outside = Arc::new(Cluster::default()).outside();
    let mut mistakes = Vec::new();
    for source in &bundle.sources {
        let name = &source.settings.name;
        let file = match source.component.file(None).await {
            Ok(file) => file,
            Err(error) => {
                mistakes.push(format!("provider {name}: {error:#}"));
                continue;
            }
        };
        let loaded = host.load(&file, source.settings.clone(), outside.clone()).await;
        let provider = match loaded {
            Ok(provider) => provider,
            Err(error) => {
                mistakes.push(format!("provider {name}: {error}"));
                continue;
            }
        };
        for lack in provider.missing_grants().iter().filter(|lack| !lack.optional) {
            eprintln!("Warning: provider {name} lacks a grant that it requests; add {lack}");
        }
        match provider.check().await {
            Ok(problems) => {
                let (errors, warnings): (Vec<Problem>, Vec<Problem>) =
                    problems.into_iter().partition(Problem::is_error);
                warnings
                    .iter()
                    .for_each(|warning| eprintln!("Warning: provider {name}: {warning}"));
                mistakes.extend(errors.iter().map(|error| format!("provider {name}: {error}")));
            }
            Err(fault) => mistakes.push(format!(
                "provider {name}: its check of the configuration crashed: {fault}"
            )),
        }
    }
    Ok(mistakes)
}
