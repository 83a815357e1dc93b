//! Operations on disks, from call to call: the token of a `pending` answer has the operation, and what came of earlier ones.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Azure;
use crate::arm::{Begun, DISKS, Operation};

/// How long to wait before the cloud's operation is polled again, where it gives no advice.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// The longest reason in a token, in bytes.
const LONGEST_REASON: usize = 600;

/// Words of `OperationNotAllowed`, which is the code of much: what they mean.
const NO_ROOM: [&str; 2] = ["maximum number of data disks", "quota"];

/// What goes from call to call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Path and query of the operation; empty for none.
    operation: String,
    /// The zone in which it creates a disk.
    pub zone: String,
    /// Zones that had no room.
    pub full: Vec<String>,
    /// Why the last creation failed; empty where none did.
    pub why: String,
    /// Whether that was for another reason than room.
    pub gave_up: bool,
}

impl Progress {
    /// The content of a token; empty for a foreign one.
    pub(crate) fn read(token: Option<&str>) -> Self {
        let read = token.and_then(|token| serde_json::from_str::<Self>(token).ok());
        let is_own = |read: &Self| read.operation.is_empty() || is_operation(&read.operation);
        read.filter(is_own).unwrap_or_default()
    }

    /// Path and query of the operation that it continues.
    pub(crate) fn operation(&self) -> Option<&str> {
        Some(self.operation.as_str()).filter(|operation| !operation.is_empty())
    }

    /// The end of the call while this operation runs, or something else does that is not known.
    pub(crate) fn pending(mut self, operation: Option<&Operation>, doing: &str) -> Failure {
        self.operation = operation.map(|operation| operation.link.clone()).unwrap_or_default();
        let after = operation.map_or(POLL, |operation| operation.after);
        Failure::pending(after, serde_json::to_string(&self).unwrap_or_default(), doing)
    }

    /// The creation in the zone has failed.
    pub(crate) fn failed(&mut self, failure: &Failure) {
        let why = failure.message();
        self.why = why
            .get(..why.floor_char_boundary(LONGEST_REASON))
            .unwrap_or(why)
            .to_owned();
        self.operation.clear();
        match failure.kind {
            FailureKind::Exhausted => self.full.push(std::mem::take(&mut self.zone)),
            _ => self.gave_up = true,
        }
    }
}

/// Whether it is where an operation is polled: a path of Azure's with the query that it was given with.
fn is_operation(link: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/?&=%+~,$".contains(&byte);
    link.starts_with("/subscriptions/")
        && link.contains("perations/")
        && !link.contains("..")
        && link.bytes().all(plain)
}

/// The failure by its message, where its code is too general.
pub(crate) fn by_words(failure: Failure) -> Failure {
    let is_vague = failure.code.as_deref() == Some("OperationNotAllowed") && failure.kind != FailureKind::RateLimited;
    if is_vague && NO_ROOM.iter().any(|words| failure.message.contains(words)) {
        return Failure {
            kind: FailureKind::Exhausted,
            ..failure
        };
    }
    failure
}

impl Azure {
    /// Whether the operation of an earlier call is done. Success also when there was none.
    ///
    /// # Errors
    /// `pending` while it runs; why it failed.
    pub(crate) fn passed(&self, progress: &Progress, doing: &str) -> Result<(), Failure> {
        let Some(link) = progress.operation() else {
            return Ok(());
        };
        match Operation::look(&self.arm, link).map_err(by_words)? {
            Begun::Running(operation) => Err(progress.clone().pending(Some(&operation), doing)),
            Begun::Done => Ok(()),
        }
    }

    /// Changes a disk or a snapshot. Success when it is done already.
    ///
    /// # Errors
    /// `pending` while its operation runs; the cloud's error.
    pub(crate) fn change_disk(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
        (progress, doing): (&Progress, &str),
    ) -> Result<(), Failure> {
        match self.arm.change(method, path, DISKS, body).map_err(by_words)? {
            Begun::Running(operation) => Err(progress.clone().pending(Some(&operation), doing)),
            Begun::Done => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back_and_foreign_ones_are_nothing() {
        let progress = Progress {
            zone: "westeurope-1".into(),
            full: vec!["westeurope-2".into()],
            ..Progress::default()
        };
        let operation = Operation {
            link: "/subscriptions/s/providers/Microsoft.Compute/locations/westeurope/DiskOperations/1?api-version=2025-01-02&t=a%2Bb".into(),
            after: Duration::from_secs(7),
        };
        let pending = progress.clone().pending(Some(&operation), "creating");
        assert_eq!(pending.retry_after, Some(7_000));
        let FailureKind::Pending(token) = pending.kind else {
            panic!()
        };
        let mut read = Progress::read(Some(&token));
        assert_eq!(read.operation(), Some(operation.link.as_str()));
        read.failed(&Failure::exhausted("é".repeat(LONGEST_REASON)));
        assert_eq!(read.full, ["westeurope-2", "westeurope-1"]);
        assert!(read.operation().is_none() && !read.gave_up && read.why.len() == LONGEST_REASON);
        read.failed(&Failure::other("no"));
        assert!(read.gave_up);
        for foreign in [
            "",
            "begun",
            r#"{"operation":"https://elsewhere/operations/1"}"#,
            r#"{"operation":"/subscriptions/s/../operations/1"}"#,
            r#"{"operation":"/subscriptions/s/providers/Microsoft.Compute/disks/d"}"#,
        ] {
            assert_eq!(Progress::read(Some(foreign)), Progress::default(), "{foreign}");
        }
    }

    #[test]
    fn words_tell_a_full_machine_from_what_is_not_allowed() {
        let refused = |text: &str| by_words(Failure::conflict(text).with_code("OperationNotAllowed")).kind;
        let full = "The maximum number of data disks allowed to be attached to a VM of this size is 8.";
        assert_eq!(refused(full), FailureKind::Exhausted);
        assert_eq!(refused("it exceeds the approved quota"), FailureKind::Exhausted);
        assert_eq!(refused("the disk is attached"), FailureKind::Conflict);
        let slow = by_words(Failure::rate_limited(None, "quota").with_code("OperationNotAllowed"));
        assert_eq!(slow.kind, FailureKind::RateLimited);
    }
}
