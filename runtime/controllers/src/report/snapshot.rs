//! What controllers report about themselves, and the registry of these reports.
//!
//! Metrics, health, the status page and `explain` read it.
//!
//! ```text
//!   controllers --impl Report--> Reports --read--> QueueGauges, Health, Explain, status page
//! ```
//!
//! A controller of each provider registers one [`Report`], which reads the controller's own state when it is called: nothing is collected in
//! advance, so a report costs nothing until it is read and is never older than the request. Times are spans that end now.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use prometheus_client::registry::Registry;

use crate::kube::node::Node;
use crate::options::{Controller, NodeDeletion};
use crate::queue::QueueSnapshot;
use crate::report::cause::Cause;
use crate::report::queues::QueueGauges;
use crate::sync::{read, write};

/// What a controller of one provider reports about itself.
pub trait Report: Send + Sync {
    /// Which controller.
    fn controller(&self) -> Controller;

    /// The operator's name of the provider it works with.
    fn provider(&self) -> String;

    /// How much it has to do and how its work goes, in numbers. Health probes and scrapes of metrics read it, so it copies no lists.
    fn snapshot(&self) -> Snapshot;

    /// The objects with which it is not done.
    fn unfinished(&self) -> Vec<Unfinished>;

    /// Its deletion brake, where it has one.
    fn deletions(&self) -> Option<Deletions> {
        None
    }

    /// Desired routes, and how many of them are there; none where it makes no routes or has not compared them yet.
    fn routes(&self) -> Option<Routes> {
        None
    }

    /// What there is to say about a Node; the text continues `Node NAME `.
    fn explain_node(&self, _: &Node) -> Option<String> {
        None
    }

    /// The same for a Service by its key; none is given for one that is gone. The text continues `Service NAMESPACE/NAME `.
    fn explain_service(&self, _: &str, _: Option<&Service>) -> Option<String> {
        None
    }
}

/// A controller's work in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// How much it has to do.
    pub progress: Progress,
    /// Its queues.
    pub queues: Vec<QueueSnapshot>,
    /// Of a loop without a queue: time since its last step; none between runs.
    pub longest_step: Option<Duration>,
}

/// How much a controller has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// What a worker takes as soon as one is free.
    pub ready: usize,
    /// What is being worked on.
    pub in_work: usize,
    /// What waits for its time: after a failure, or because the cloud is not ready.
    pub later: usize,
    /// For how long the oldest of all these has been left to do.
    pub oldest: Option<Duration>,
    /// For how long nothing has been finished; none when nothing ever was.
    pub last_done: Option<Duration>,
    /// What holds up the controller as a whole.
    pub trouble: Option<Trouble>,
}

impl From<&QueueSnapshot> for Progress {
    fn from(queue: &QueueSnapshot) -> Self {
        Self {
            ready: queue.ready,
            in_work: queue.in_work,
            later: queue.later,
            oldest: queue.oldest,
            last_done: queue.last_done,
            trouble: None,
        }
    }
}

/// A question about everything that the cloud did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What could not be done: `The routes of the cloud could not be listed`.
    pub what: &'static str,
    /// Why.
    pub cause: Cause,
    /// Time until the next try.
    pub next: Duration,
}

/// Something that has its explanation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A Node by its name.
    Node(String),
    /// A Service by namespace and name.
    Service(String, String),
}

/// How many routes there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Routes {
    /// Destinations of all Nodes.
    pub desired: usize,
    /// Of these, those whose route is not there: it failed, or the cloud works on it.
    pub missing: usize,
}

/// An object with which a controller is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Which.
    pub object: Object,
    /// For how long, where that is known.
    pub since: Option<Duration>,
    /// Whether the last try failed.
    pub failed: bool,
    /// Why it did; none where nothing has failed.
    pub cause: Option<Cause>,
}

/// An object with which a controller of one provider is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Whose business it is.
    pub controller: Controller,
    /// With which provider.
    pub provider: String,
    /// The object.
    pub object: Unfinished,
}

/// The numbers that engaged the brake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brake {
    /// Nodes that seem to be gone.
    pub absent: usize,
    /// Nodes deleted within the window.
    pub deleted: usize,
    /// Together no more than these might go.
    pub allowed: usize,
}

/// The deletion brake of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletions {
    /// The provider.
    pub provider: String,
    /// What happens to Nodes whose machine is gone.
    pub policy: NodeDeletion,
    /// Nodes that were deleted within the window.
    pub deleted: usize,
    /// The window.
    pub window: Duration,
    /// So many Nodes may be deleted within the window.
    pub allowed: usize,
    /// The numbers that engaged the brake, and for how long it has been engaged.
    pub brake: Option<(Brake, Duration)>,
    /// Nodes whose machine seems to be gone, by name.
    pub candidates: Vec<Candidate>,
}

/// A Node whose machine seems to be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its name.
    pub node: String,
    /// The machine's id.
    pub provider_id: String,
    /// For how long the cloud has been saying so.
    pub since: Duration,
    /// How often it has.
    pub answers: u32,
    /// Whether the brake holds it.
    pub held: bool,
}

/// What a controller stands at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// It has begun.
    Begun(Vec<Progress>),
    /// It will never begin, for this reason.
    Off(String),
    /// It begins when this process leads.
    NotBegun,
}

#[derive(Default)]
struct Registered {
    off: BTreeMap<Controller, String>,
    reports: Vec<Arc<dyn Report>>,
}

/// The reports of all controllers of this process; clones share them.
#[derive(Clone, Default)]
pub struct Reports(Arc<RwLock<Registered>>);

impl fmt::Debug for Reports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}

impl Reports {
    /// An empty one. Registers the metrics that are read from it.
    pub fn new(registry: &mut Registry) -> Self {
        let reports = Self::default();
        registry.register_collector(Box::new(QueueGauges(reports.clone())));
        reports
    }

    /// The controller does nothing in this process, for this reason.
    pub fn off(&self, controller: Controller, reason: String) {
        write(&self.0).off.insert(controller, reason);
    }

    /// Adds the report of a controller that starts. One that has a loop for each provider has several.
    pub fn add(&self, report: Arc<dyn Report>) {
        write(&self.0).reports.push(report);
    }

    /// Whether no controller has started.
    pub fn is_empty(&self) -> bool {
        read(&self.0).reports.is_empty()
    }

    /// The answer of each report that has one, with its controller.
    pub(crate) fn of_each<T>(&self, answer: impl Fn(&dyn Report) -> Option<T>) -> Vec<(Controller, T)> {
        let registered = read(&self.0);
        let answers = registered.reports.iter();
        answers
            .filter_map(|report| Some((report.controller(), answer(&**report)?)))
            .collect()
    }

    /// The numbers of all controllers.
    pub fn snapshots(&self) -> Vec<(Controller, Snapshot)> {
        self.of_each(|report| Some(report.snapshot()))
    }

    /// What a controller stands at.
    pub fn work(&self, controller: Controller) -> Work {
        if let Some(reason) = read(&self.0).off.get(&controller) {
            return Work::Off(reason.clone());
        }
        let own = self.of_each(|report| (report.controller() == controller).then(|| report.snapshot().progress));
        match own.is_empty() {
            true => Work::NotBegun,
            false => Work::Begun(own.into_iter().map(|(_, progress)| progress).collect()),
        }
    }

    /// Everything that is not finished, the oldest first.
    pub fn unfinished(&self) -> Vec<Left> {
        let of_each = self.of_each(|report| Some((report.provider(), report.unfinished())));
        let left = |(controller, (provider, own)): (Controller, (String, Vec<Unfinished>))| {
            own.into_iter().map(move |object| Left {
                controller,
                provider: provider.clone(),
                object,
            })
        };
        let mut all: Vec<Left> = of_each.into_iter().flat_map(left).collect();
        all.sort_by(|a, b| {
            let (a, b) = (&a.object, &b.object);
            b.since.cmp(&a.since).then_with(|| a.object.cmp(&b.object))
        });
        all
    }

    /// What holds up whole controllers, with the provider of each.
    pub fn troubles(&self) -> Vec<(Controller, String, Trouble)> {
        let of_each = self.of_each(|report| Some((report.provider(), report.snapshot().progress.trouble?)));
        let trouble = |(controller, (provider, trouble))| (controller, provider, trouble);
        of_each.into_iter().map(trouble).collect()
    }

    /// The routes of each provider that has compared them.
    pub fn routes(&self) -> Vec<Routes> {
        let all = self.of_each(|report| report.routes()).into_iter();
        all.map(|(_, routes)| routes).collect()
    }

    /// The brake of each provider.
    pub fn deletions(&self) -> Vec<Deletions> {
        let all = self.of_each(|report| report.deletions()).into_iter();
        all.map(|(_, deletions)| deletions).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::FakeReport;

    fn node(name: &str, seconds: Option<u64>) -> Unfinished {
        Unfinished {
            object: Object::Node(name.into()),
            since: seconds.map(Duration::from_secs),
            failed: false,
            cause: None,
        }
    }

    #[test]
    fn what_waits_longest_comes_first_whoever_it_waits_for() {
        let reports = Reports::default();
        let mut routes = FakeReport::of(Controller::NodeRoute);
        routes.unfinished = vec![node("c", None), node("b", Some(5))];
        reports.add(Arc::new(routes));
        let mut nodes = FakeReport::of(Controller::CloudNode);
        nodes.unfinished = vec![node("a", Some(5)), node("d", Some(60))];
        reports.add(Arc::new(nodes));
        let names: Vec<Object> = reports
            .unfinished()
            .into_iter()
            .map(|left| left.object.object)
            .collect();
        assert_eq!(names, ["d", "a", "b", "c"].map(|name| Object::Node(name.into())));
    }

    #[test]
    fn a_controller_is_off_or_begun_or_waits_for_the_lead() {
        let reports = Reports::default();
        assert_eq!(reports.work(Controller::CloudNode), Work::NotBegun);
        reports.add(Arc::new(FakeReport::of(Controller::CloudNode)));
        reports.add(Arc::new(FakeReport::of(Controller::CloudNode)));
        assert_eq!(
            reports.work(Controller::CloudNode),
            Work::Begun(vec![Progress::default(); 2])
        );
        reports.off(Controller::NodeRoute, "it is not wanted".into());
        assert_eq!(
            reports.work(Controller::NodeRoute),
            Work::Off("it is not wanted".into())
        );
    }
}
