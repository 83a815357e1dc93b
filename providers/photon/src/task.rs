//! A task of the cloud: how far it is, and why it failed.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::api::{Api, CODES, Refusal};
use crate::config::is_id;

/// How long to wait before a task is polled again.
pub(crate) const POLL: Duration = Duration::from_secs(1);

/// The token where the cloud works on something and its task is not known.
pub(crate) const BEGUN: &str = "";

/// The cloud's error code for a task that is not found (any more).
const NO_TASK: &str = "TaskNotFound";

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum TaskState {
    Queued,
    Started,
    Completed,
    Error,
    #[serde(other)]
    Other,
}

impl TaskState {
    /// Whether the cloud still works on it.
    pub(crate) fn is_running(self) -> bool {
        matches!(self, Self::Queued | Self::Started)
    }
}

/// A task, as far as it is read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) state: TaskState,
    entity: Option<Entity>,
    steps: Option<Vec<Step>>,
    #[serde(default)]
    pub(crate) resource_properties: Value,
}

/// What a task is about.
#[derive(Debug, Clone, Deserialize)]
struct Entity {
    id: String,
}

/// A part of a task.
#[derive(Debug, Clone, Deserialize)]
struct Step {
    errors: Option<Vec<Refusal>>,
}

impl Task {
    /// The id of what it is about.
    pub(crate) fn entity(&self) -> Option<&str> {
        self.entity.as_ref().map(|entity| entity.id.as_str())
    }

    /// Success when it is completed. `doing` describes it.
    ///
    /// # Errors
    /// `pending` with its id while the cloud works on it; why it failed.
    pub(crate) fn passed(&self, doing: &str) -> Result<(), Failure> {
        match self.state {
            TaskState::Completed => Ok(()),
            TaskState::Queued | TaskState::Started => Err(Failure::pending(POLL, &self.id, doing)),
            TaskState::Error | TaskState::Other => Err(self.failure(doing)),
        }
    }

    /// Why it failed, in the cloud's words.
    pub(crate) fn failure(&self, doing: &str) -> Failure {
        let steps = self.steps.iter().flatten();
        let Some(error) = steps.flat_map(|step| step.errors.iter().flatten()).next() else {
            return Failure::other(format!("{doing}: the task {} failed and does not say why", self.id));
        };
        let Refusal { code, message } = error;
        let text = format!("{doing}: {code}: {message}");
        CODES.case_of_ended(code).failure(None, text).with_code(code)
    }
}

impl Api {
    /// What has become of the task of a `pending` answer. Success also when there was none, or it is not found any more: the object it was about shows more.
    ///
    /// # Errors
    /// As [`Task::passed`]; the cloud's error.
    pub(crate) fn passed(&self, token: Option<&str>, doing: &str) -> Result<(), Failure> {
        let Some(id) = token.filter(|id| !id.is_empty() && is_id(id)) else {
            return Ok(());
        };
        match self.request::<Task>("GET", &format!("/tasks/{id}"), None, &[NO_TASK])? {
            Some(task) => task.passed(doing),
            None => Ok(()),
        }
    }
}
