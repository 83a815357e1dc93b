//! Syncs a public SSH key to all machines while leading.
//!
//! As kube-apiserver did for its SSH tunnels.
//!
//! ```text
//!   --ssh-user, --ssh-keyfile --> KeyFile --SshKey--> sync --behind leadership and dry run--> SshKeys of each provider
//!                                                      \--> SyncState (pure): when again, which Event
//! ```

pub mod key_file;
mod plan;

use std::sync::Arc;
use std::time::Duration;

use cloudwit_controllers::{Leadership, leading_ssh_keys};
use cloudwit_host::SwappableProvider;
use cloudwit_model::{Cloud as _, EventSink, ObjectEvent, SshKeys, Subject};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::ssh_keys::key_file::KeyFile;
use crate::ssh_keys::plan::{Next, SyncState};

/// What is needed to give the machines of one provider a key.
pub struct KeySync {
    /// The operator's name for the provider.
    pub provider: String,
    /// Behind leadership and dry run.
    pub cloud: Arc<dyn SshKeys>,
    /// Where the key is; read again each time, so it can be replaced.
    pub file: KeyFile,
    /// Where Events go.
    pub events: Arc<dyn EventSink>,
    /// What they are about.
    pub subject: Subject,
}

impl std::fmt::Debug for KeySync {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeySync")
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// One for each provider that has such keys. Says so where none does: the flags do nothing then.
pub fn of_providers(
    providers: &[Arc<SwappableProvider>],
    file: &KeyFile,
    (events, subject): (Arc<dyn EventSink>, Subject),
    leadership: &Leadership,
    dry_run: bool,
) -> Vec<KeySync> {
    let (able, unable): (Vec<_>, Vec<_>) = providers.iter().partition(|provider| provider.abilities().ssh_keys);
    for provider in unable {
        warn!(
            provider = provider.name(),
            "the provider does not export ssh-keys: --ssh-user and --ssh-keyfile do nothing for its machines"
        );
    }
    let sync = |provider: &Arc<SwappableProvider>| KeySync {
        provider: provider.name().to_owned(),
        cloud: leading_ssh_keys(provider.clone(), leadership.clone(), dry_run),
        file: file.clone(),
        events: events.clone(),
        subject: subject.clone(),
    };
    able.into_iter().map(sync).collect()
}

impl KeySync {
    /// Keeps the key on all machines while this process leads, until shutdown.
    pub async fn run(self, leadership: Leadership, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = async {
                leadership.begun().await;
                // When it is over, so is the process; the door is closed before that.
                let _ = leadership.while_it_lasts(self.sync()).await;
            } => {}
        }
    }

    async fn sync(&self) {
        let mut state = SyncState::default();
        loop {
            let next = self.once(&mut state).await;
            let Some(after) = next else {
                info!(
                    provider = self.provider,
                    "SSH keys are looked after elsewhere; not tried again"
                );
                return;
            };
            tokio::time::sleep(after).await;
        }
    }

    /// One try; when the next one is.
    async fn once(&self, state: &mut SyncState) -> Option<Duration> {
        let next = match self.file.read().await {
            Ok(key) => {
                let token = state.token.clone();
                let outcome = self.cloud.ensure_ssh_key(&key, token.as_deref()).await;
                state.next(&outcome)
            }
            Err(why) => state.unreadable(format!("{why:#}")),
        };
        self.tell(&next);
        next.after
    }

    fn tell(&self, next: &Next) {
        let Some(event) = &next.event else { return };
        let (provider, user, message) = (&self.provider, &self.file.user, &event.message);
        match event.kind {
            cloudwit_model::EventKind::Normal => info!(provider, user, "SSH key {message}"),
            cloudwit_model::EventKind::Warning => {
                warn!(provider, user, again = ?next.after, "SSH key {message}");
            }
        }
        self.events.emit(ObjectEvent {
            subject: self.subject.clone(),
            kind: event.kind,
            reason: event.reason.to_owned(),
            message: format!("the SSH key of {user} {message} (provider {provider})"),
        });
    }
}

#[cfg(test)]
mod tests;
