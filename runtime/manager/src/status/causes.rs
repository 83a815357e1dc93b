//! Groups failures by their cause: an outage is one thing with all that it holds up behind it. Pure.

use std::collections::{BTreeMap, HashMap};

use cloudwit_controllers::report::cause::{Cause, CauseKind};
use serde::{Serialize, Serializer};

use crate::status::facts::{Listed, Moment};
use crate::telemetry::shape::shape;

/// One failure, as a controller reports it.
#[derive(Debug, Clone)]
pub struct Failing {
    /// The provider that was called.
    pub provider: String,
    /// Why it failed.
    pub cause: Cause,
    /// Since when the object waits.
    pub since: Option<Moment>,
    /// What is held up.
    pub held_up: HeldUp,
}

/// What a failure holds up.
#[derive(Debug, Clone)]
pub enum HeldUp {
    /// One object of a controller.
    Object(&'static str, Affected),
    /// A whole task: `The routes of the cloud could not be listed`.
    Task(&'static str),
}

/// An object behind a cause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Affected {
    /// `Node`, `Service` or `Volume`.
    pub kind: &'static str,
    /// `NAME` of a Node, `NAMESPACE/NAME` of a Service.
    pub name: String,
    /// The page that explains it; none where there is none.
    pub explain: Option<String>,
}

/// What fails for one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CauseFacts {
    /// The provider that was called.
    pub provider: String,
    /// Whose failure it is.
    #[serde(serialize_with = "label")]
    pub kind: CauseKind,
    /// What most of the failures say.
    pub message: String,
    /// How many other texts there are: the same outage has many words.
    pub other_messages: usize,
    /// Since when the oldest object waits.
    pub since: Option<Moment>,
    /// Whole tasks that it holds up.
    pub tasks: Vec<&'static str>,
    /// How many objects it holds up, by controller.
    pub counts: BTreeMap<&'static str, usize>,
    /// These objects.
    pub objects: Listed<Affected>,
}

fn label<S: Serializer>(kind: &CauseKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.label())
}

/// The causes, those that hold up most first.
pub fn group(failures: Vec<Failing>) -> Vec<CauseFacts> {
    let mut groups = BTreeMap::<(CauseKind, String, String), Vec<Failing>>::new();
    for failing in failures {
        groups.entry(key(&failing)).or_default().push(failing);
    }
    let mut causes: Vec<CauseFacts> = groups
        .into_iter()
        .map(|((kind, provider, _), members)| cause(kind, provider, members))
        .collect();
    causes.sort_by_key(|cause| (cause.kind, std::cmp::Reverse(cause.objects.total)));
    causes
}

/// A cloud that does not answer, or throttles, is one cause whatever the words; else words that differ in names and numbers alone are
/// one. What the API server does not take has nothing to do with the provider.
fn key(failing: &Failing) -> (CauseKind, String, String) {
    let kind = failing.cause.kind;
    let shape = match kind {
        CauseKind::Unavailable | CauseKind::RateLimited => String::new(),
        CauseKind::Denied
        | CauseKind::Fault
        | CauseKind::ApiServer
        | CauseKind::Cloud
        | CauseKind::Object
        | CauseKind::Pending => shape(&failing.cause.reason, failing.held_up.name()),
    };
    let provider = match kind {
        CauseKind::ApiServer => String::new(),
        _ => failing.provider.clone(),
    };
    (kind, provider, shape)
}

impl HeldUp {
    fn name(&self) -> &str {
        match self {
            Self::Object(_, affected) => &affected.name,
            Self::Task(_) => "",
        }
    }
}

fn cause(kind: CauseKind, provider: String, members: Vec<Failing>) -> CauseFacts {
    let mut texts = HashMap::<&str, usize>::new();
    for member in &members {
        *texts.entry(&member.cause.reason).or_default() += 1;
    }
    let most = texts
        .iter()
        .max_by_key(|(text, times)| (**times, std::cmp::Reverse(**text)));
    let (message, others) = (
        most.map_or("", |(text, _)| text).to_owned(),
        texts.len().saturating_sub(1),
    );
    let since = members.iter().filter_map(|member| member.since).min();
    let (mut tasks, mut counts, mut objects) = (Vec::new(), BTreeMap::new(), Vec::new());
    for member in members {
        match member.held_up {
            HeldUp::Task(task) if tasks.contains(&task) => {}
            HeldUp::Task(task) => tasks.push(task),
            HeldUp::Object(controller, affected) => {
                *counts.entry(controller).or_default() += 1;
                objects.push(affected);
            }
        }
    }
    // A Node may fail at several controllers.
    objects.sort();
    objects.dedup();
    CauseFacts {
        provider,
        kind,
        message,
        other_messages: others,
        since,
        tasks,
        counts,
        objects: objects.into(),
    }
}

#[cfg(test)]
mod tests;
