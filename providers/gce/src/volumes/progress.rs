//! Operations on disks, from call to call: the token of a `pending` answer has the operation, and the places that had no room.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json;
use serde::{Deserialize, Serialize};

use crate::Gce;
use crate::operation::Operation;

/// How long to wait before an operation is polled again: most of them take some seconds.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// What goes from call to call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Progress {
    /// Path of the operation; empty for none.
    operation: String,
    /// Places in which there was no room: `zones/Z` or `regions/R`.
    pub full: Vec<String>,
}

impl Progress {
    /// The content of a token; empty for a foreign one.
    pub(crate) fn read(token: Option<&str>) -> Self {
        let read = token.and_then(|token| serde_json::from_str::<Self>(token).ok());
        let is_ours = |read: &Self| read.operation.is_empty() || is_operation(&read.operation);
        read.filter(is_ours).unwrap_or_default()
    }

    /// The place in which its operation works.
    pub(crate) fn place(&self) -> Option<String> {
        let (_, rest) = self.operation.strip_prefix("projects/")?.split_once('/')?;
        Some(rest.split_once("/operations/")?.0.to_owned())
    }

    /// The end of the call while this operation runs, or another one does whose name is not known.
    pub(crate) fn pending(mut self, operation: Option<String>, doing: &str) -> Failure {
        self.operation = operation.unwrap_or_default();
        Failure::pending(POLL, serde_json::to_string(&self).unwrap_or_default(), doing)
    }
}

/// Whether it is the path of an operation.
fn is_operation(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:/".contains(&byte);
    path.starts_with("projects/") && path.contains("/operations/") && !path.contains("..") && path.bytes().all(plain)
}

impl Gce {
    /// Whether the operation of an earlier call is done. Success also when there was none.
    ///
    /// # Errors
    /// `pending` while it runs; why it failed.
    pub(crate) fn passed(&self, progress: &Progress, doing: &str) -> Result<(), Failure> {
        if progress.operation.is_empty() {
            return Ok(());
        }
        match Operation::look(&self.api, &progress.operation)? {
            Some(running) => Err(progress.clone().pending(Some(running), doing)),
            None => Ok(()),
        }
    }

    /// Makes a change of a disk. Success when it is done already.
    ///
    /// # Errors
    /// `pending` while its operation runs, and where something else has to end before it; Compute Engine's error.
    pub(crate) fn change_disk(
        &self,
        method: &'static str,
        path: &str,
        body: Option<&serde_json::Value>,
        (progress, doing): (&Progress, &str),
    ) -> Result<(), Failure> {
        let running = match self.api.change(method, path, body) {
            Ok(operation) => operation.running()?,
            // Another operation on the disk or the machine.
            Err(failure) if failure.code.as_deref() == Some("resourceNotReady") => {
                return Err(progress.clone().pending(None, &format!("{doing}: {}", failure.message)));
            }
            Err(failure) => return Err(failure),
        };
        match running {
            Some(running) => Err(progress.clone().pending(Some(running), doing)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back_and_foreign_ones_are_nothing() {
        let full = Progress {
            full: vec!["zones/us-central1-a".into()],
            ..Progress::default()
        };
        let operation = "projects/p/zones/us-central1-b/operations/operation-1";
        let FailureKind::Pending(token) = full.pending(Some(operation.into()), "creating").kind else {
            panic!()
        };
        let read = Progress::read(Some(&token));
        assert_eq!(read.place().as_deref(), Some("zones/us-central1-b"));
        assert_eq!(read.full, ["zones/us-central1-a"]);
        for foreign in [
            "",
            "begun",
            r#"{"operation":"https://elsewhere/projects/p/global/operations/o"}"#,
            r#"{"operation":"projects/p/../operations/o"}"#,
            r#"{"operation":"projects/p/global/operations/o?x"}"#,
        ] {
            assert_eq!(Progress::read(Some(foreign)), Progress::default(), "{foreign}");
        }
    }
}
