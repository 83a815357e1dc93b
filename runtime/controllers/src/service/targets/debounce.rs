//! Debounce of Node changes before target lists are compared. Pure but for the clock passed in.
//!
//! ```text
//!   change ----20 ms----> pass | window, 750 ms | pass with all that came meanwhile | window ...
//!                                                `-- nothing came: quiet again, the next change begins anew
//! ```
//!
//! The first change after quiet goes out nearly at once, as with upstream; those that follow wait for the end of the window that it
//! opened, and go out together. So each load balancer is called once a window, however many Nodes change, where upstream calls it
//! once for each (`spec/service-controller.md`, weak spot S2). The window does not grow: a Node that is on its way out has to leave
//! soon in a busy cluster too, and a cloud that is slow paces itself, since a Service waits in the queue only once.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::kube::cache::Change;
use crate::kube::node::Node;
use crate::kube::node::view::{UNINITIALIZED, has_taint};
use crate::service::targets::NodeFacts;
use crate::sync::lock;

/// After the first change, for what belongs to it: several Nodes that one command labels or deletes. As long as `node` gathers.
const TOGETHER: Duration = Duration::from_millis(20);

/// From one pass over all load balancers to the next, at least.
const WINDOW: Duration = Duration::from_millis(750);

/// A Node that waits for its cloud gets its provider id soon, and then its load balancers: until then a cloud could only guess by its
/// name. This long it is waited for.
const INITIALISATION: Duration = Duration::from_secs(1);

/// When the next pass may begin. Quiet at first.
#[derive(Debug, Default)]
pub struct NodeDebounce {
    /// The end of the window that the last pass opened.
    closed_until: Mutex<Option<Instant>>,
}

impl NodeDebounce {
    /// When a pass has to follow this change, unless one comes earlier; none when it is no matter of load balancers.
    pub fn pass_at(&self, change: &Change<'_, Node>, now: Instant) -> Option<Instant> {
        let soonest = now + patience(change)?;
        let closed_until = *lock(&self.closed_until);
        Some(closed_until.map_or(soonest, |end| end.max(soonest)))
    }

    /// A pass begins, and with it a window.
    pub fn begin(&self, now: Instant) {
        *lock(&self.closed_until) = Some(now + WINDOW);
    }
}

/// How long a change may wait for others.
fn patience(change: &Change<'_, Node>) -> Option<Duration> {
    let (new, matters) = match change {
        Change::Added(new) => (Some(new), true),
        Change::Deleted(_) => (None, true),
        Change::Updated { old, new } => {
            let came_ready = waits_for_its_cloud(old) && !waits_for_its_cloud(new);
            (Some(new), came_ready || NodeFacts::of(old) != NodeFacts::of(new))
        }
    };
    let pause = match new {
        Some(new) if waits_for_its_cloud(new) => INITIALISATION,
        _ => TOGETHER,
    };
    matters.then_some(pause)
}

fn waits_for_its_cloud(node: &Node) -> bool {
    has_taint(node, UNINITIALIZED)
}

#[cfg(test)]
mod tests;
