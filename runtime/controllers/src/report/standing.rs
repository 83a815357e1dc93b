//! How the controllers stand: how much is left to do, what they have not finished, which Nodes seem to be gone. For the status page.
//!
//! ```text
//!   loops --register functions--> Standing --asked--> Progress, Unfinished, Deletions --> manager: status page
//! ```
//!
//! As in [`report::explain`](crate::report::explain) a loop hands in functions that look at its own state when somebody asks: nothing is collected in
//! advance. Times are spans that end now. The sentences about each object are those of `explain`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use crate::options::{Controller, NodeDeletion};
pub use crate::queue::progress::{Progress, Trouble};
use crate::sync::{read, write};

/// Something that has its explanation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// A Node by its name.
    Node(String),
    /// A Service by namespace and name.
    Service(String, String),
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

type Look<T> = Box<dyn Fn() -> T + Send + Sync>;

#[derive(Default)]
struct Sources {
    off: BTreeMap<Controller, String>,
    progress: Vec<(Controller, Look<Progress>)>,
    unfinished: Vec<(Controller, Look<Vec<Unfinished>>)>,
    deletions: Vec<Look<Deletions>>,
}

/// Answers how the controllers stand; clones share it.
#[derive(Clone, Default)]
pub struct Standing(Arc<RwLock<Sources>>);

impl fmt::Debug for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}

impl Standing {
    /// The controller does nothing in this process, for this reason.
    pub fn off(&self, controller: Controller, reason: String) {
        write(&self.0).off.insert(controller, reason);
    }

    /// Reads how much a controller has to do from `look`. One that has a loop for each provider has several.
    pub fn progress_of(&self, controller: Controller, look: impl Fn() -> Progress + Send + Sync + 'static) {
        write(&self.0).progress.push((controller, Box::new(look)));
    }

    /// Reads what a controller is not done with from `look`.
    pub fn unfinished_of(&self, controller: Controller, look: impl Fn() -> Vec<Unfinished> + Send + Sync + 'static) {
        write(&self.0).unfinished.push((controller, Box::new(look)));
    }

    /// Reads how the deletion brake of one provider stands from `look`.
    pub fn deletions_of(&self, look: impl Fn() -> Deletions + Send + Sync + 'static) {
        write(&self.0).deletions.push(Box::new(look));
    }

    /// What a controller stands at.
    pub fn work(&self, controller: Controller) -> Work {
        let sources = read(&self.0);
        if let Some(reason) = sources.off.get(&controller) {
            return Work::Off(reason.clone());
        }
        let own = sources.progress.iter().filter(|(who, _)| *who == controller);
        let begun: Vec<Progress> = own.map(|(_, look)| look()).collect();
        if begun.is_empty() {
            Work::NotBegun
        } else {
            Work::Begun(begun)
        }
    }

    /// Everything that is not finished, with the controller whose business it is, the oldest first.
    pub fn unfinished(&self) -> Vec<(Controller, Unfinished)> {
        let sources = read(&self.0);
        let of = |(who, look): &(Controller, Look<Vec<Unfinished>>)| {
            look().into_iter().map(|one| (*who, one)).collect::<Vec<_>>()
        };
        let mut all: Vec<(Controller, Unfinished)> = sources.unfinished.iter().flat_map(of).collect();
        all.sort_by(|(_, a), (_, b)| b.since.cmp(&a.since).then_with(|| a.object.cmp(&b.object)));
        all
    }

    /// The brake of each provider.
    pub fn deletions(&self) -> Vec<Deletions> {
        read(&self.0).deletions.iter().map(|look| look()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, seconds: Option<u64>) -> Unfinished {
        Unfinished {
            object: Object::Node(name.into()),
            since: seconds.map(Duration::from_secs),
            failed: false,
        }
    }

    #[test]
    fn what_waits_longest_comes_first_whoever_it_waits_for() {
        let standing = Standing::default();
        standing.unfinished_of(Controller::NodeRoute, || vec![node("c", None), node("b", Some(5))]);
        standing.unfinished_of(Controller::CloudNode, || vec![node("a", Some(5)), node("d", Some(60))]);
        let names: Vec<Object> = standing.unfinished().into_iter().map(|(_, one)| one.object).collect();
        assert_eq!(names, ["d", "a", "b", "c"].map(|name| Object::Node(name.into())));
    }

    #[test]
    fn a_controller_is_off_or_begun_or_waits_for_the_lead() {
        let standing = Standing::default();
        assert_eq!(standing.work(Controller::CloudNode), Work::NotBegun);
        standing.progress_of(Controller::CloudNode, Progress::default);
        standing.progress_of(Controller::CloudNode, Progress::default);
        assert_eq!(
            standing.work(Controller::CloudNode),
            Work::Begun(vec![Progress::default(); 2])
        );
        standing.off(Controller::NodeRoute, "it is not wanted".into());
        assert_eq!(
            standing.work(Controller::NodeRoute),
            Work::Off("it is not wanted".into())
        );
    }
}
