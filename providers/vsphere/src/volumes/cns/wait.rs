//! Waiting for a task within a call: what only reads is a task too where it is about snapshots, and `pending` is for changes.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::{Element, escape};

use crate::vcenter::session::Session;
use crate::vcenter::soap::{CallError, Reference};
use crate::volumes::cns::Cns;
use crate::volumes::cns::fault;
use crate::volumes::cns::task::{TaskId, TaskState};

/// How long one wait takes at most.
const LONGEST: u64 = 5;

/// What is left of the call's time for what comes after.
const RESERVE: Duration = Duration::from_secs(5);

impl Cns<'_> {
    /// The result of a task, which is waited for.
    ///
    /// # Errors
    /// What it failed with; `unavailable` when it takes longer than the call.
    pub(crate) fn outcome(&self, task: &TaskId) -> Result<Element, Failure> {
        if let Some(result) = self.look(task)? {
            return result;
        }
        let collector = self.sessions.with(|session| {
            let made = self
                .sessions
                .call(session, "CreatePropertyCollector", &session.collector, "");
            Ok(made?.reference().unwrap_or_default())
        })?;
        let result = self.sessions.with(|session| self.wait(session, &collector, task));
        let ended = self.sessions.with(|session| {
            self.sessions
                .call(session, "DestroyPropertyCollector", &collector, "")
                .map(drop)
        });
        if let Err(failure) = ended {
            debug!(
                "a property collector is left to the end of the session: {}",
                failure.message()
            );
        }
        result?
    }

    fn look(&self, task: &TaskId) -> Result<Option<Result<Element, Failure>>, Failure> {
        Ok(match self.tasks(&[task])?.remove(task) {
            Some(TaskState::Running) => None,
            Some(TaskState::Done(result)) => Some(Ok(result)),
            Some(TaskState::Failed(fault)) => Some(Err(fault::failure(&fault))),
            None => Some(Err(Failure::unavailable(format!("{} is gone", task.task)))),
        })
    }

    fn wait(
        &self,
        session: &Session,
        collector: &Reference,
        task: &TaskId,
    ) -> Result<Result<Element, Failure>, CallError> {
        let filter = format!(
            "<spec><propSet><type>Task</type><all>false</all><pathSet>info.state</pathSet></propSet><objectSet>{}<skip>false</skip></objectSet></spec>\
             <partialUpdates>false</partialUpdates>",
            task.reference().write("obj")
        );
        self.sessions.call(session, "CreateFilter", collector, &filter)?;
        let mut version = String::new();
        while self.context.time_left() > RESERVE {
            let most = (self.context.time_left() - RESERVE).as_secs().clamp(1, LONGEST);
            let what = format!(
                "<version>{}</version><options><maxWaitSeconds>{most}</maxWaitSeconds></options>",
                escape(&version)
            );
            let update = self.sessions.call(session, "WaitForUpdatesEx", collector, &what)?;
            if let Some(seen) = update.value().and_then(|value| value.text("version")) {
                version = seen.into();
            }
            if let Some(result) = self.look(task)? {
                return Ok(result);
            }
        }
        let text = format!("{} takes longer than there is time", task.task);
        Err(Failure::unavailable(text).into())
    }
}
