//! Final refusals of operations that ended while no RPC waited: the next equal request gets each of them, once.
//!
//! A creation that takes longer than the sidecar's RPC ends between two of them. Without this the next RPC would repeat the creation, and the sidecar would
//! never read that there is no room.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::SecretsFingerprint;
use tokio::time::Instant;

use crate::engine::work::{Subject, Trouble, Work};

/// Most refusals that are kept; the oldest is dropped. The request then begins again.
const MOST: usize = 1_000;

/// An older one is dropped: sidecars come again within five minutes, and there may be room again.
const OLD: Duration = Duration::from_secs(6 * 60);

/// The refusals by what they are about.
#[derive(Debug, Default)]
pub(super) struct Unread(HashMap<Subject, Refusal>);

#[derive(Debug)]
struct Refusal {
    work: Arc<Work>,
    secrets: SecretsFingerprint,
    trouble: Trouble,
    at: Instant,
}

impl Unread {
    /// Keeps the refusal of this work if it is a final one.
    pub(super) fn keep(&mut self, work: &Arc<Work>, secrets: SecretsFingerprint, trouble: &Trouble, now: Instant) {
        if !trouble.is_exhausted() {
            return;
        }
        self.0.retain(|_, refusal| now - refusal.at < OLD);
        let subject = work.subject();
        if self.0.len() >= MOST && !self.0.contains_key(&subject) {
            let oldest = self.0.iter().min_by_key(|(_, refusal)| refusal.at);
            if let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) {
                self.0.remove(&oldest);
            }
        }
        let refusal = Refusal {
            work: Arc::clone(work),
            secrets,
            trouble: trouble.clone(),
            at: now,
        };
        self.0.insert(subject, refusal);
    }

    /// The refusal of an equal work with equal secrets. That of another work on the same subject is dropped.
    pub(super) fn take(
        &mut self,
        subject: &Subject,
        work: &Work,
        secrets: SecretsFingerprint,
        now: Instant,
    ) -> Option<Trouble> {
        let refusal = self.0.remove(subject)?;
        let is_equal = *refusal.work == *work && refusal.secrets == secrets;
        (is_equal && now - refusal.at < OLD).then_some(refusal.trouble)
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_model::{Failure, VolumeSecrets};

    use super::*;

    fn delete(id: usize) -> Arc<Work> {
        Arc::new(Work::Delete(id.to_string()))
    }

    fn trouble(failure: Failure) -> Trouble {
        Trouble {
            error: failure.into(),
            in_flight: true,
        }
    }

    fn none() -> SecretsFingerprint {
        VolumeSecrets::default().fingerprint()
    }

    fn full() -> Trouble {
        trouble(Failure::Exhausted("no room".into()))
    }

    #[test]
    fn refusal_is_given_once_and_to_an_equal_request_only() {
        let (mut unread, now) = (Unread::default(), Instant::now());
        let (work, subject) = (delete(1), delete(1).subject());
        unread.keep(&work, none(), &full(), now);
        assert_eq!(unread.take(&subject, &work, none(), now), Some(full()));
        assert_eq!(unread.take(&subject, &work, none(), now), None);
        unread.keep(&work, none(), &full(), now);
        let other = Work::Modify {
            volume: "1".into(),
            parameters: Default::default(),
        };
        assert_eq!(unread.take(&subject, &other, none(), now), None);
        assert_eq!(unread.take(&subject, &work, none(), now), None, "dropped");
        unread.keep(&work, none(), &trouble(Failure::Denied("no".into())), now);
        assert_eq!(
            unread.take(&subject, &work, none(), now),
            None,
            "a fresh attempt decides"
        );
        unread.keep(&work, none(), &full(), now);
        let passphrase = crate::engine::testing::passphrase("hunter2").fingerprint();
        assert_eq!(unread.take(&subject, &work, passphrase, now), None, "other secrets");
    }

    #[test]
    fn old_refusals_are_dropped_and_their_number_is_bounded() {
        let (mut unread, now) = (Unread::default(), Instant::now());
        for number in 0..=MOST {
            unread.keep(
                &delete(number),
                none(),
                &full(),
                now + Duration::from_millis(number as u64),
            );
        }
        assert_eq!(unread.0.len(), MOST);
        assert_eq!(
            unread.take(&delete(0).subject(), &delete(0), none(), now),
            None,
            "the oldest"
        );
        let late = now + OLD + Duration::from_secs(2);
        assert_eq!(unread.take(&delete(1).subject(), &delete(1), none(), late), None);
        unread.keep(&delete(0), none(), &full(), late);
        assert_eq!(unread.0.len(), 1);
    }
}
