//! One provider from its files to a running one: loaded, checked, and from then on kept to what its files say (`swap`).

use std::sync::Arc;

use anyhow::bail;
use cloudwit_host::{Host, Outside, SwappableProvider};
use cloudwit_model::Subject;

use crate::swap::{Reload, Source, SwapWatch};

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
    let problems = provider.current().check().await?;
    if !problems.is_empty() {
        let list: String = problems
            .iter()
            .map(|problem| format!("\n  - {}: {}", problem.at, problem.message))
            .collect();
        bail!(
            "the provider does not accept its configuration, {}:{list}",
            source.config_origin
        );
    }
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
