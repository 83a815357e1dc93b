//! Loads a provider from its files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use cloudwit_controllers::{NodeVolumes, Provider as ControlledProvider, Providers};
use cloudwit_host::{Host, Outside, Problem, Provider, SwappableProvider};
use cloudwit_model::Subject;
use tokio::time::sleep;
use tracing::warn;

use crate::config::file::Routing;
use crate::providers::swap::{Reload, Source, SwapWatch};

/// The first pause after a registry did not give a component at the start, and the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Loads a provider and lets it check its configuration; from then on follows the changes of its files. Touches neither cluster nor cloud.
/// `subject` is what Events about changes are written on; `component` the file that [`component_file`] gave.
pub async fn start(
    host: &Arc<Host>,
    (source, component): (Source, PathBuf),
    cache_dir: Option<PathBuf>,
    reload: Reload,
    outside: Outside,
    subject: Subject,
) -> anyhow::Result<Arc<SwappableProvider>> {
    let events = outside.events.clone();
    let settings = source.settings.clone();
    let provider = SwappableProvider::load(host.clone(), component, settings, outside).await?;
    for warning in insist_on_sound_config(&provider.current(), &source.config_origin).await? {
        warn!(provider = provider.name(), %warning, "questionable configuration");
    }
    let provider = Arc::new(provider);
    let watch = SwapWatch {
        provider: provider.clone(),
        reload,
        source,
        cache_dir,
        events,
        subject,
    };
    tokio::spawn(watch.run());
    Ok(provider)
}

/// The file of a provider's component. Waits for a registry for as long as it does not give the component, with growing pauses.
pub async fn component_file(source: &Source, cache_dir: Option<&Path>) -> PathBuf {
    let mut pause = FIRST_PAUSE;
    loop {
        match source.component.file(cache_dir).await {
            Ok(file) => return file,
            Err(error) => warn!(
                provider = source.settings.name,
                retry_seconds = pause.as_secs(),
                "component not available; waiting: {error:#}"
            ),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Refuses a configuration that the provider does not accept, with all that it finds wrong; else gives its warnings. `origin` is where the
/// configuration stands.
pub async fn insist_on_sound_config(provider: &Provider, origin: &str) -> anyhow::Result<Vec<Problem>> {
    let problems = provider.check().await?;
    let (errors, warnings): (Vec<Problem>, Vec<Problem>) = problems.into_iter().partition(Problem::is_error);
    if errors.is_empty() {
        return Ok(warnings);
    }
    let list: String = errors.iter().map(|problem| format!("\n  - {problem}")).collect();
    bail!("the provider does not accept its configuration, {origin}:{list}")
}

/// All providers under their operator's names, with what says which of them has which Nodes and Services. `volumes` are those that are served, by
/// the provider's name.
pub fn assigned(
    loaded: Vec<Arc<SwappableProvider>>,
    mut routing: Routing,
    mut volumes: BTreeMap<String, NodeVolumes>,
) -> anyhow::Result<Providers> {
    let served = loaded.iter().map(|provider| volumes.remove(provider.name())).collect();
    if let [only] = loaded.as_slice()
        && routing.prefixes.is_empty()
    {
        return Ok(Providers::from(only.clone()).with_volumes(served));
    }
    let list = loaded.into_iter().map(|provider| ControlledProvider {
        name: provider.name().to_owned(),
        provider_id_prefixes: routing.prefixes.remove(provider.name()),
        cloud: provider,
        volumes: None,
    });
    let providers = Providers::new(list.collect(), &routing.default, routing.services)
        .map_err(|mistakes| anyhow!("the providers cannot run side by side: {}", mistakes.join("; ")))?;
    Ok(providers.with_volumes(served))
}
