//! Watcher of a provider's files: component, cloud config, settings, secrets, certificates.
//!
//! ```text
//!   files -> file_look (fingerprint) -> swap_plan (settled? due?) -> reload (settings anew) -> SwappableProvider::swap -> Event
//! ```
//!
//! A fingerprint is taken before the files are read, so that a change while they are read is seen. Polling costs some `stat` calls and sees
//! everything, links through `..data` and network file systems included.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_host::{NoSuccessor, ProviderSettings, Swap, SwapResult, SwappableProvider};
use cloudwit_model::{EventKind, EventSink, ObjectEvent, Subject};
use tokio::time::Instant;

use crate::process::file_look::Fingerprint;
use crate::providers::component::Component;
use crate::providers::swap_plan::SwapPlan;

/// Between two checks of the files. A change is followed after two checks with the same result.
const POLL: Duration = Duration::from_millis(200);

/// What a provider is loaded from, as the files say it now.
#[derive(Debug, Clone)]
pub struct Source {
    /// The component.
    pub component: Component,
    /// Its settings, all files read but those of secrets, authorities and client certificates.
    pub settings: ProviderSettings,
    /// Name of the CSI driver that serves its volumes; none for the one that the provider gives.
    pub csi_driver_name: Option<String>,
    /// Where its configuration comes from, in the operator's words, such as `--cloud-config=/etc/cloud.json`.
    pub config_origin: String,
    /// The files that the settings were read from.
    pub files: Vec<PathBuf>,
}

/// Reads everything anew; the error names all mistakes. Blocks.
pub type Reload = Arc<dyn Fn() -> Result<Source, String> + Send + Sync>;

/// Keeps one provider to what its files say.
pub struct SwapWatch {
    /// The provider.
    pub provider: Arc<SwappableProvider>,
    /// Reads its settings anew.
    pub reload: Reload,
    /// What it was loaded from.
    pub source: Source,
    /// Where components from registries are kept; none for memory.
    pub cache_dir: Option<PathBuf>,
    /// Where Events go.
    pub events: Arc<dyn EventSink>,
    /// What they are about.
    pub subject: Subject,
}

impl SwapWatch {
    /// Watches for as long as the process lives.
    pub async fn run(self) {
        let mut watched = paths(&self.source);
        let mut plan = SwapPlan::default();
        loop {
            let looked_at = watched.clone();
            let print = blocking(move || Fingerprint::of(&looked_at)).await;
            if plan.is_due(&print, Instant::now()) {
                let reload = Arc::clone(&self.reload);
                let source = blocking(move || reload()).await;
                let now_named = source.as_ref().map_or_else(|_| watched.clone(), paths);
                if now_named == watched {
                    self.follow(source, &mut plan, print).await;
                } else {
                    // The settings name other files than those that were checked before they were read.
                    watched = now_named;
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What is to be loaded, its component pulled where it is in a registry.
    async fn successor(&self, source: Result<Source, String>) -> Result<(PathBuf, ProviderSettings), NoSuccessor> {
        let source = source?;
        match source.component.file(self.cache_dir.as_deref()).await {
            Ok(file) => Ok((file, source.settings)),
            Err(error) => Err(NoSuccessor::not_pulled(format!("{error:#}"))),
        }
    }

    async fn follow(&self, source: Result<Source, String>, plan: &mut SwapPlan, print: Fingerprint) {
        let before = self.provider.status().last_swap;
        let swap = self.provider.swap(self.successor(source).await).await;
        plan.tried(print, swap.may_pass_later, Instant::now());
        if let Some((kind, reason)) = event(before.as_ref(), &swap) {
            self.events.emit(ObjectEvent {
                subject: self.subject.clone(),
                kind,
                reason: reason.to_owned(),
                message: format!("provider {}: {}", self.provider.name(), swap.message),
            });
        }
    }
}

/// Everything a provider is made of: component, settings, secrets, authorities, client certificates. Sorted, each once.
fn paths(source: &Source) -> Vec<PathBuf> {
    let grants = &source.settings.grants;
    let with_files = grants.secrets.iter().filter(|secret| secret.volume_key().is_none());
    let secrets = with_files.map(|secret| &secret.file);
    let of_tls = grants.http.iter().flat_map(|grant| {
        let files = [&grant.ca, &grant.client_certificate, &grant.client_key];
        files.into_iter().flatten()
    });
    let component = source.component.files().into_iter();
    let mut paths: Vec<PathBuf> = source
        .files
        .iter()
        .chain(secrets)
        .chain(of_tls)
        .chain(component)
        .cloned()
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

/// The Event about a swap; none when it says nothing that the last one did not.
fn event(before: Option<&Swap>, swap: &Swap) -> Option<(EventKind, &'static str)> {
    let was_refused = before.is_some_and(|before| before.result.is_refusal());
    let same = before.is_some_and(|before| before.result == swap.result && before.message == swap.message);
    match swap.result {
        SwapResult::Swapped => Some((EventKind::Normal, "ProviderSwapped")),
        SwapResult::Unchanged => was_refused.then_some((EventKind::Normal, "ProviderSwapWithdrawn")),
        _ => (!same).then_some((EventKind::Warning, "ProviderSwapRefused")),
    }
}

/// What Events about this process are about: its Pod, if the downward API names it in these variables of the environment; else the Lease that its leader holds, which is there
/// in every cluster and is where upstream writes about leadership.
pub fn subject(variable: impl Fn(&str) -> Option<String>, lease_namespace: &str, lease: &str) -> Subject {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    match (variable("POD_NAME"), variable("POD_NAMESPACE")) {
        (Some(name), Some(namespace)) => Subject::Other {
            api_version: "v1".into(),
            kind: "Pod".into(),
            namespace: Some(namespace),
            name,
            uid: variable("POD_UID"),
        },
        _ => Subject::Other {
            api_version: "coordination.k8s.io/v1".into(),
            kind: "Lease".into(),
            namespace: Some(lease_namespace.into()),
            name: lease.into(),
            uid: None,
        },
    }
}

/// Runs work that touches files on a thread for it: a mount can hang. Work that the end of the runtime cancelled is never over: who waits for it ends too.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swap(result: SwapResult, message: &str) -> Swap {
        Swap {
            at: jiff::Timestamp::UNIX_EPOCH,
            result,
            message: message.into(),
            took: Duration::ZERO,
            may_pass_later: false,
        }
    }

    #[test]
    fn all_files_of_a_provider_are_watched() {
        let grants = "http: [{host: a, ca: /ca, clientCertificate: /cert, clientKey: /key}, {host: b, ca: /ca}]\n\
                      secrets: [{name: s, file: /secret, uses: [hmac]}]";
        let source = Source {
            component: PathBuf::from("/component").into(),
            settings: ProviderSettings {
                name: "sim".into(),
                config_text: String::new(),
                values: Vec::new(),
                cluster_name: String::new(),
                cluster_cidrs: Vec::new(),
                grants: serde_saphyr::from_str(grants).unwrap(),
                limits: cloudwit_host::Limits::default(),
            },
            csi_driver_name: None,
            config_origin: String::new(),
            files: vec!["/config".into()],
        };
        let watched = ["/ca", "/cert", "/component", "/config", "/key", "/secret"];
        assert_eq!(paths(&source), watched.map(PathBuf::from));
    }

    #[test]
    fn events_are_on_the_pod_if_known_else_on_the_lease() {
        let pod = |name: &str| Some(name.to_lowercase()).filter(|_| name.starts_with("POD_"));
        let on = |subject| match subject {
            Subject::Other {
                kind,
                namespace,
                name,
                uid,
                ..
            } => (kind, namespace.unwrap(), name, uid),
            other => panic!("{other:?}"),
        };
        let (kind, namespace, name, uid) = on(subject(pod, "kube-system", "ccm"));
        assert_eq!(
            (kind.as_str(), namespace.as_str(), name.as_str()),
            ("Pod", "pod_namespace", "pod_name")
        );
        assert_eq!(uid.as_deref(), Some("pod_uid"));
        for variables in [|_: &str| None, |_: &str| Some(String::new())] {
            let (kind, namespace, name, _) = on(subject(variables, "kube-system", "ccm"));
            assert_eq!(
                (kind.as_str(), namespace.as_str(), name.as_str()),
                ("Lease", "kube-system", "ccm")
            );
        }
    }

    #[test]
    fn an_event_is_written_when_there_is_news() {
        let refused = swap(SwapResult::Probe, "denied");
        let unchanged = swap(SwapResult::Unchanged, "");
        assert_eq!(event(None, &unchanged), None, "the look after the start");
        assert_eq!(event(None, &refused), Some((EventKind::Warning, "ProviderSwapRefused")));
        assert_eq!(event(Some(&refused), &refused), None, "tried again, same answer");
        assert!(event(Some(&refused), &swap(SwapResult::Probe, "unavailable")).is_some());
        assert_eq!(
            event(Some(&refused), &unchanged),
            Some((EventKind::Normal, "ProviderSwapWithdrawn"))
        );
        let swapped = swap(SwapResult::Swapped, "sim 2 runs");
        assert_eq!(
            event(Some(&swapped), &swapped),
            Some((EventKind::Normal, "ProviderSwapped"))
        );
    }
}
