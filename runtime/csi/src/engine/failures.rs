//! The last failure of each volume or snapshot, until an operation on it succeeds.

use std::collections::HashMap;
use std::time::Duration;

use cloudwit_model::CloudError;
use tokio::time::Instant;

use crate::engine::work::{Subject, Work};

/// Most failures that are kept; the oldest is dropped. Sidecars retry all that still matter.
const MOST: usize = 1_000;

/// A failure this old is dropped: sidecars retry within five minutes, so that volume is not requested any more.
const OLD: Duration = Duration::from_secs(60 * 60);

/// More of an answer is not kept.
const ERROR_BYTES: usize = 500;

/// The failures by what they are about.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<Subject, Failed>);

#[derive(Debug)]
struct Failed {
    work: String,
    error: String,
    label: &'static str,
    at: Instant,
    times: u32,
}

/// A failed operation for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedOperation {
    /// What was tried: `attach volume vol-1 to node-1`.
    pub work: String,
    /// About what.
    pub subject: Subject,
    /// Time since it failed the last time.
    pub age: Duration,
    /// What the cloud answered.
    pub error: String,
    /// The kind of the answer; a closed set ([`CloudError::label`]).
    pub label: &'static str,
    /// How often it has failed so in a row.
    pub times: u32,
}

impl Failures {
    /// An operation has failed.
    pub(super) fn note(&mut self, work: &Work, error: &CloudError, now: Instant) {
        let (subject, work, mut error, label) = (work.subject(), work.to_string(), error.to_string(), error.label());
        error.truncate(error.floor_char_boundary(ERROR_BYTES));
        let times = match self.0.get(&subject) {
            Some(before) if before.work == work => before.times.saturating_add(1),
            _ => 1,
        };
        if self.0.len() >= MOST && !self.0.contains_key(&subject) {
            let oldest = self.0.iter().min_by_key(|(_, failed)| failed.at);
            if let Some(oldest) = oldest.map(|(subject, _)| subject.clone()) {
                self.0.remove(&oldest);
            }
        }
        let failed = Failed {
            work,
            error,
            label,
            at: now,
            times,
        };
        self.0.insert(subject, failed);
    }

    /// An operation on it has succeeded.
    pub(super) fn forget(&mut self, subject: &Subject) {
        self.0.remove(subject);
    }

    /// All that are kept, the latest first.
    pub(super) fn all(&mut self, now: Instant) -> Vec<FailedOperation> {
        self.0.retain(|_, failed| now - failed.at < OLD);
        let described = |(subject, failed): (&Subject, &Failed)| FailedOperation {
            work: failed.work.clone(),
            subject: subject.clone(),
            age: now - failed.at,
            error: failed.error.clone(),
            label: failed.label,
            times: failed.times,
        };
        let mut all: Vec<FailedOperation> = self.0.iter().map(described).collect();
        all.sort_by(|one, other| one.age.cmp(&other.age).then_with(|| one.subject.cmp(&other.subject)));
        all
    }
}

#[cfg(test)]
mod tests {
    use cloudwit_model::Failure;

    use super::*;

    fn gone(error: &str) -> CloudError {
        Failure::Exhausted(error.into()).into()
    }

    #[test]
    fn failures_of_one_kind_of_work_are_counted_until_one_succeeds() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let (delete, modify) = (
            Work::Delete("v".into()),
            Work::Modify {
                volume: "v".into(),
                parameters: Default::default(),
            },
        );
        failures.note(&delete, &gone("no room"), now);
        failures.note(&delete, &gone("still no room"), now + Duration::from_secs(5));
        let all = failures.all(now + Duration::from_secs(7));
        let expected = FailedOperation {
            work: "delete volume v".into(),
            subject: Subject::Volume("v".into()),
            age: Duration::from_secs(2),
            error: "exhausted: still no room".into(),
            label: "exhausted",
            times: 2,
        };
        assert_eq!(all, [expected]);
        failures.note(&modify, &gone("no"), now);
        assert_eq!(failures.all(now)[0].times, 1, "another work");
        failures.forget(&Subject::Volume("v".into()));
        assert_eq!(failures.all(now), []);
    }

    #[test]
    fn old_failures_go_and_their_number_and_length_are_bounded() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        for number in 0..=MOST {
            let at = now + Duration::from_millis(number as u64);
            failures.note(&Work::Delete(number.to_string()), &gone(&"ä".repeat(1000)), at);
        }
        let all = failures.all(now + Duration::from_secs(2));
        assert_eq!(all.len(), MOST);
        assert!(all.iter().all(|one| one.subject != Subject::Volume("0".into())));
        assert!(all[0].error.len() <= ERROR_BYTES);
        assert_eq!(failures.all(now + OLD + Duration::from_secs(2)), []);
    }
}
