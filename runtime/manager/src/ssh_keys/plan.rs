//! What follows from one try to give all machines a key: pure.

use std::time::Duration;

use cloudwit_model::{CloudError, EnsuredKey, EventKind, Failure, Retry};

/// Between two checks of whether the machines have the key (`k8s.io/kubernetes/pkg/master/tunneler/ssh.go` of v1.18, `installSSHKeySyncLoop`).
pub const INTERVAL: Duration = Duration::from_secs(300);

/// After the first failure; doubles with each further one, up to [`INTERVAL`].
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// After a conflict.
const SOON: Duration = Duration::from_secs(1);

/// What is kept between tries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncState {
    /// Failures one after another.
    failures: u32,
    /// The last failure reported.
    told: Option<String>,
    /// Of the pending answer that the next try continues.
    pub token: Option<String>,
}

/// An Event to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncEvent {
    /// How serious.
    pub kind: EventKind,
    /// CamelCase.
    pub reason: &'static str,
    /// What happened to the key, without whose it is.
    pub message: String,
}

/// What is to be done after a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Next {
    /// When to try again; none for never.
    pub after: Option<Duration>,
    /// News for people.
    pub event: Option<SyncEvent>,
}

impl SyncState {
    /// Notes the outcome, and says what follows.
    pub fn next(&mut self, outcome: &Result<EnsuredKey, CloudError>) -> Next {
        let error = match outcome {
            Ok(ensured) => return self.ensured(*ensured),
            Err(CloudError::DryRun) => {
                *self = Self::default();
                return Next {
                    after: Some(INTERVAL),
                    event: None,
                };
            }
            Err(CloudError::Failure(Failure::Pending { after, token, .. })) => {
                self.token = Some(token.clone());
                return Next {
                    after: Some(*after),
                    event: None,
                };
            }
            Err(error) => error,
        };
        if !error.keeps_token() {
            self.token = None;
        }
        let after = match error.retry() {
            Retry::After(after) => Some(after),
            Retry::Soon if self.failures == 0 => Some(SOON),
            Retry::Soon | Retry::Backoff => Some(pause(self.failures)),
            Retry::Slowly => Some(INTERVAL),
            Retry::Never => None,
        };
        self.failures = self.failures.saturating_add(1);
        Next {
            after,
            event: self.trouble(error.to_string()),
        }
    }

    /// The key cannot even be read; what follows.
    pub fn unreadable(&mut self, why: String) -> Next {
        let after = pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.token = None;
        Next {
            after: Some(after),
            event: self.trouble(why),
        }
    }

    fn ensured(&mut self, ensured: EnsuredKey) -> Next {
        let had_trouble = self.told.is_some();
        *self = Self::default();
        let message = match ensured {
            EnsuredKey::Added => Some("was given to all machines"),
            EnsuredKey::Present if had_trouble => Some("is on all machines"),
            EnsuredKey::Present => None,
        };
        Next {
            after: Some(INTERVAL),
            event: message.map(|message| SyncEvent {
                kind: EventKind::Normal,
                reason: "SSHKeySynced",
                message: message.to_owned(),
            }),
        }
    }

    /// Told once, and again when it is another one.
    fn trouble(&mut self, why: String) -> Option<SyncEvent> {
        if self.told.as_ref() == Some(&why) {
            return None;
        }
        self.told = Some(why.clone());
        Some(SyncEvent {
            kind: EventKind::Warning,
            reason: "SSHKeySyncFailed",
            message: format!("could not be given to all machines: {why}"),
        })
    }
}

fn pause(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.min(16));
    FIRST_PAUSE.saturating_mul(factor).min(INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(failure: Failure) -> Result<EnsuredKey, CloudError> {
        Err(failure.into())
    }

    fn seconds(next: &Next) -> Option<u64> {
        next.after.map(|after| after.as_secs())
    }

    #[test]
    fn outage_is_reported_once_with_backoff_up_to_interval() {
        let mut state = SyncState::default();
        let outage = failed(Failure::Unavailable("no answer".into()));
        let tries: Vec<Next> = (0..9).map(|_| state.next(&outage)).collect();
        let pauses: Vec<_> = tries.iter().filter_map(seconds).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(tries.iter().filter(|next| next.event.is_some()).count(), 1);
        let other = state.next(&failed(Failure::Unavailable("another".into())));
        assert!(other.event.is_some(), "news");
        let over = state.next(&Ok(EnsuredKey::Present));
        assert_eq!(over.event.map(|event| event.kind), Some(EventKind::Normal));
        assert_eq!(state, SyncState::default());
        assert_eq!(seconds(&state.next(&outage)), Some(5));
    }

    #[test]
    fn key_that_stays_is_no_news() {
        let mut state = SyncState::default();
        let added = state.next(&Ok(EnsuredKey::Added));
        assert_eq!(added.event.map(|event| event.reason), Some("SSHKeySynced"));
        let stays = state.next(&Ok(EnsuredKey::Present));
        assert_eq!((stays.after, stays.event), (Some(INTERVAL), None));
    }

    #[test]
    fn pending_token_is_kept_over_an_outage_alone() {
        let mut state = SyncState::default();
        let pending = failed(Failure::Pending {
            after: Duration::from_secs(2),
            token: "op-1".into(),
            message: "working".into(),
        });
        assert_eq!(
            (seconds(&state.next(&pending)), state.token.as_deref()),
            (Some(2), Some("op-1"))
        );
        state.next(&failed(Failure::Unavailable("no answer".into())));
        assert_eq!(state.token.as_deref(), Some("op-1"));
        state.next(&failed(Failure::Other("no such operation".into())));
        assert_eq!(state.token, None);
    }

    #[test]
    fn class_of_the_failure_decides_the_pause() {
        let first = |failure| seconds(&SyncState::default().next(&failed(failure)));
        assert_eq!(first(Failure::Denied("no".into())), Some(300));
        assert_eq!(first(Failure::Conflict("fingerprint".into())), Some(1));
        assert_eq!(first(Failure::ImplementedElsewhere("no".into())), None);
        let limited = Failure::RateLimited {
            after: Some(Duration::from_secs(7)),
            message: "slow".into(),
        };
        assert_eq!(first(limited), Some(7));
        let mut state = SyncState::default();
        let conflicts: Vec<_> = (0..3)
            .filter_map(|_| seconds(&state.next(&failed(Failure::Conflict("fingerprint".into())))))
            .collect();
        assert_eq!(conflicts, [1, 10, 20], "the other side is faster for ever");
    }

    #[test]
    fn dry_run_says_nothing_and_looks_again() {
        let next = SyncState::default().next(&Err(CloudError::DryRun));
        assert_eq!((next.after, next.event), (Some(INTERVAL), None));
    }
}
