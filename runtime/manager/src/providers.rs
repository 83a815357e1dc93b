//! One provider from its files to a running one: loaded, checked, and from then on kept to what its files say (`swap`).

use std::sync::Arc;

use anyhow::{anyhow, bail};
use cloudwit_host::{Host, Outside, SwappableProvider};
use cloudwit_model::{Cloud, Member, Router, Subject};

use crate::config_file::Routing;
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

/// All providers as one cloud; a single one needs no router.
pub fn joined(providers: Vec<Arc<SwappableProvider>>, mut routing: Routing) -> anyhow::Result<Arc<dyn Cloud>> {
    if let [only] = providers.as_slice()
        && routing.prefixes.is_empty()
    {
        return Ok(only.clone());
    }
    let members = providers.into_iter().map(|provider| Member {
        name: provider.name().to_owned(),
        provider_id_prefixes: routing.prefixes.remove(provider.name()),
        cloud: provider,
    });
    let router = Router::new(members.collect(), &routing.default, routing.services)
        .map_err(|mistakes| anyhow!("the providers cannot run side by side: {}", mistakes.join("; ")))?;
    Ok(Arc::new(router))
}
