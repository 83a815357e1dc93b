//! Controllers, and what they are not done with.

use serde::Serialize;

use crate::status::facts::{Listed, Moment};

/// What a controller does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerState {
    /// It works.
    Running,
    /// It works when this process leads.
    StandingBy,
    /// It never works in this process.
    Off,
    /// Work on one object does not end.
    Hanging,
}

/// One controller.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerFacts {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub state: ControllerState,
    /// Why it is off.
    pub why: Option<String>,
    /// What a worker takes as soon as one is free.
    pub ready: usize,
    /// What is being worked on.
    pub in_work: usize,
    /// What waits for its time.
    pub later: usize,
    /// Since when the oldest of all these has been left to do.
    pub oldest_since: Option<Moment>,
    /// When something was last finished.
    pub last_done: Option<Moment>,
    /// What holds it up as a whole.
    pub troubles: Vec<ControllerTrouble>,
}

/// A question about everything that the cloud did not answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerTrouble {
    /// What could not be done, and why.
    pub what: String,
    /// When it is tried again.
    pub next: Moment,
}

/// What is not done, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Nodes.
    pub nodes: Listed<WaitingObject>,
    /// Services.
    pub services: Listed<WaitingObject>,
    /// How many of them there are, by controller.
    pub groups: Vec<WaitingGroup>,
}

/// Everything that one controller is not done with.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingGroup {
    /// The controller.
    pub controller: &'static str,
    /// How many objects.
    pub total: usize,
    /// How many of them have failed or wait for long: more than work in progress.
    pub overdue: usize,
    /// How many of these have not failed: the cloud or a worker takes long.
    pub slow: usize,
    /// Since when the oldest waits.
    pub oldest_since: Option<Moment>,
}

/// An object with which a controller is not done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingObject {
    /// `NAME` of a Node, `NAMESPACE/NAME` of a Service.
    pub name: String,
    /// Whose business it is.
    pub controller: &'static str,
    /// The provider that is called about it.
    pub provider: String,
    /// Since when.
    pub since: Option<Moment>,
    /// Whether the last try failed.
    pub failed: bool,
    /// Whose failure that was ([`CauseKind::label`](cloudwit_controllers::report::cause::CauseKind::label)).
    pub cause: Option<&'static str>,
    /// In the words of who refused.
    pub reason: Option<String>,
    /// What is waited for, in whole sentences that continue the object's name.
    pub why: String,
    /// The page that explains it.
    pub explain: String,
}
