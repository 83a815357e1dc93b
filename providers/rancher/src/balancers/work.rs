//! The changes: the only place that writes.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Apply, Change, Kept, Rounds};

use super::task::{Inventory, Next, Task};
use crate::Rancher;
use crate::api::{BUSY, Call};

/// One call changes at a time: external services are shared, and what one load balancer is about to use must not be removed by another.
const LOCK: &str = "load-balancers";

impl Apply for Rancher {
    type Change = Call;

    fn text(call: &Call) -> String {
        call.text()
    }

    fn codes(text: &str) -> Change<'_> {
        Change::new(text).busy_by(BUSY)
    }

    fn deletes(call: &Call) -> bool {
        call.method == "DELETE"
    }

    fn apply(&self, _: &str, call: &Call) -> Result<Vec<String>, Failure> {
        self.api.send(call).map(|()| Vec::new())
    }
}

impl Kept for Inventory<'_> {
    fn is_unread(&self) -> bool {
        self.externals.borrow().is_none()
    }

    fn forget(&self) {
        self.externals.replace(None);
    }
}

impl Rancher {
    /// Makes one round of changes after the other until nothing is left or the cloud needs time.
    ///
    /// # Errors
    /// `pending` while the cloud works on it; the error of `next` or of the cloud.
    pub(super) fn until_done<T>(
        &self,
        task: &Task<'_>,
        token: Option<&str>,
        next: impl Fn() -> Result<Next<T>, Failure>,
    ) -> Result<T, Failure> {
        Rounds::new(self, &task.name, token)?.run_locked(LOCK, task.inventory, next)
    }
}
