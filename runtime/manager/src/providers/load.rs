//! Loads a provider from its files.

use std::sync::Arc;

use anyhow::{anyhow, bail};
use cloudwit_controllers::{Provider as ControlledProvider, Providers};
use cloudwit_host::{Host, Outside, Provider, SwappableProvider};
use cloudwit_model::Subject;

use crate::config::file::Routing;
use crate::providers::swap::{Reload, Source, SwapWatch};

/// Loads a provider and lets it check its configuration; from then on follows the changes of its files. Touches neither cluster nor cloud.
/// `subject` is what Events about changes are written on.
pub async fn start(
    host: &Arc<Host>,
    source: Source,
    reload: Reload,
    outside: Outside,
    subject: Subject,
) -> anyhow::Result<Arc<SwappableProvider>> {
    let events = outside.events.clone();
    let (component, settings) = (source.component.clone(), source.settings.clone());
    let provider = SwappableProvider::load(host.clone(), component, settings, outside).await?;
    insist_on_sound_config(&provider.current(), &source.config_origin).await?;
    let provider = Arc::new(provider);
    let watch = SwapWatch {
        provider: provider.clone(),
        reload,
        source,
        events,
        subject,
    };
    tokio::spawn(watch.run());
    Ok(provider)
}

/// Refuses a configuration that the provider does not accept, with all that it finds wrong. `origin` is where the configuration stands.
pub async fn insist_on_sound_config(provider: &Provider, origin: &str) -> anyhow::Result<()> {
    let problems = provider.check().await?;
    if problems.is_empty() {
        return Ok(());
    }
    let list: String = problems
        .iter()
        .map(|problem| format!("\n  - {}: {}", problem.at, problem.message))
        .collect();
    bail!("the provider does not accept its configuration, {origin}:{list}")
}

/// All providers under their operator's names, with what says which of them has which Nodes and Services.
pub fn assigned(loaded: Vec<Arc<SwappableProvider>>, mut routing: Routing) -> anyhow::Result<Providers> {
    if let [only] = loaded.as_slice()
        && routing.prefixes.is_empty()
    {
        return Ok(Providers::from(only.clone()));
    }
    let list = loaded.into_iter().map(|provider| ControlledProvider {
        name: provider.name().to_owned(),
        provider_id_prefixes: routing.prefixes.remove(provider.name()),
        cloud: provider,
    });
    Providers::new(list.collect(), &routing.default, routing.services)
        .map_err(|mistakes| anyhow!("the providers cannot run side by side: {}", mistakes.join("; ")))
}
