//! Tasks: the token of a `pending` answer names one, so it is found again after a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::vcenter::properties::{Along, Query, retrieve_by};
use crate::vcenter::session::Session;
use crate::vcenter::soap::{CallError, Fault, Reference, Service};
use crate::volumes::cns::{Cns, fault};

/// How long to wait before a task is polled again: most of them take a second or two.
pub(crate) const POLL: Duration = Duration::from_millis(500);

/// Tasks in one page.
const PAGE: u32 = 100;

/// A task of a vCenter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TaskId {
    /// Id of the managed object, such as `task-123`.
    pub task: String,
    /// Name of the vCenter.
    pub vcenter: String,
}

impl TaskId {
    /// The content of a token; empty for a foreign one.
    pub(crate) fn read(token: Option<&str>) -> Option<Self> {
        let (task, vcenter) = token?.split_once(' ')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        let is_task = !task.is_empty() && task.len() <= 128 && task.bytes().all(plain);
        is_task.then(|| Self {
            task: task.into(),
            vcenter: vcenter.into(),
        })
    }

    /// The end of the call while this task runs.
    pub(crate) fn pending(&self, doing: &str) -> Failure {
        Failure::pending(POLL, format!("{} {}", self.task, self.vcenter), doing)
    }

    pub(super) fn reference(&self) -> Reference {
        Reference::new("Task", &self.task)
    }
}

/// The state of a task.
#[derive(Debug, Clone)]
pub(crate) enum TaskState {
    /// It runs, or waits to.
    Running,
    /// It is done: its result.
    Done(Element),
    /// It failed as a whole.
    Failed(Fault),
}

impl TaskState {
    fn read(info: &Element) -> Self {
        match info.text("state") {
            Some("success") => Self::Done(info.child("result").cloned().unwrap_or_default()),
            Some("error") => Self::Failed(info.child("error").map(fault::read).unwrap_or_else(|| Fault {
                kind: "a fault without a type".into(),
                object: None,
                message: "the task failed without a reason".into(),
            })),
            _ => Self::Running,
        }
    }

    /// What came of the operation on this volume, or of the only one.
    ///
    /// # Errors
    /// The error of CNS; none while it runs.
    pub(crate) fn result(&self, volume: Option<&str>) -> Option<Result<&Element, Failure>> {
        let result = match self {
            Self::Running => return None,
            Self::Failed(fault) => return Some(Err(fault::failure(fault))),
            Self::Done(result) => result,
        };
        let mut results = result.children("volumeResults");
        let found = match volume {
            Some(id) => result
                .children("volumeResults")
                .find(|one| about(one) == Some(id))
                // A fault may come without the id that it is about.
                .or_else(|| results.next().filter(|only| about(only).is_none_or(str::is_empty))),
            None => results.next(),
        };
        let Some(found) = found else {
            return Some(Err(Failure::not_found("CNS did nothing: it does not have the volume")));
        };
        Some(match found.child("fault") {
            Some(localized) => Err(fault::failure(&fault::read(localized))),
            None => Ok(found),
        })
    }
}

/// The id of the volume that a result is about.
fn about(result: &Element) -> Option<&str> {
    result.at(&["volumeId", "id"]).map(Element::own_text)
}

/// Tasks and their states; one that the vCenter does not have is not among them.
pub(crate) type Tasks = BTreeMap<TaskId, TaskState>;

impl Cns<'_> {
    /// The states of these tasks of this vCenter.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(crate) fn tasks(&self, tasks: &[&TaskId]) -> Result<Tasks, Failure> {
        let mut states = Tasks::new();
        if tasks.is_empty() {
            return Ok(states);
        }
        let version = self.version()?;
        let from: Vec<Reference> = tasks.iter().map(|task| task.reference()).collect();
        self.sessions.with(|session| {
            states.clear();
            let query = Query {
                properties: &[("Task", &["info"])],
                from: &from,
                along: Along::These,
                page: PAGE,
            };
            let call = |method: &str, what: &str| self.collect(session, &version, method, what);
            retrieve_by(&call, &query, &mut |object| {
                let id = object.reference().map(|task| self.task(&task));
                if let (Some(id), Some(info)) = (id, object.value("info")) {
                    states.insert(id, TaskState::read(info));
                }
            })
        })?;
        Ok(states)
    }

    /// The property collector, answering in the version of the vSAN API: results of CNS's tasks have its types.
    pub(super) fn collect(
        &self,
        session: &Session,
        version: &str,
        method: &str,
        what: &str,
    ) -> Result<crate::vcenter::soap::Answer, CallError> {
        let service = Service {
            path: "/sdk",
            namespace: "vim25",
            action: &["vsan/", version].concat(),
            session: None,
            again: true,
        };
        self.sessions
            .call_service(&service, session, method, &session.collector, what)
    }

    /// The task of an operation that was begun.
    pub(crate) fn task(&self, task: &Reference) -> TaskId {
        TaskId {
            task: task.value.clone(),
            vcenter: self.vcenter.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_back_and_foreign_ones_are_nothing() {
        let task = TaskId {
            task: "task-42".into(),
            vcenter: "my vcenter".into(),
        };
        let FailureKind::Pending(token) = task.pending("creating").kind else {
            panic!()
        };
        assert_eq!(TaskId::read(Some(&token)), Some(task));
        for foreign in ["", "task-42", " a", "task<1> a", "{\"a\": 1} b"] {
            assert_eq!(TaskId::read(Some(foreign)), None, "{foreign}");
        }
    }
}
