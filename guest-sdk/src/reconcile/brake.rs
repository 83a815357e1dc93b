//! Ends a series of changes in time.
//!
//! Once the cloud throttles, or most of the call's time is over, no further request is sent.

use std::time::Duration;

use crate::Context;
use crate::types::{Failure, FailureKind};

/// Runs changes one after the other until it is too late for more. What is left fails in the same way and is repeated with the next call.
///
/// ```
/// # use cloudwit_guest_sdk::{Context, Failure};
/// use cloudwit_guest_sdk::reconcile::Brake;
///
/// fn changed(context: Context, machines: &[&str], change: impl Fn(&str) -> Result<(), Failure>) -> Vec<Result<(), Failure>> {
///     let mut brake = Brake::new(context, || Failure::unavailable("the rest is for the next call"));
///     machines.iter().map(|machine| brake.run(|| change(machine))).collect()
/// }
/// ```
pub struct Brake {
    context: Context,
    /// So much of the call's time has to be left for a change.
    reserve: Duration,
    stopped: Option<Failure>,
    late: fn() -> Failure,
}

impl Brake {
    /// For the changes of this call. A third of its time is kept, so that what the last change takes fits in too. `late` is the failure of all that comes after.
    pub fn new(context: Context, late: fn() -> Failure) -> Self {
        Self {
            context,
            reserve: context.time_left() / 3,
            stopped: None,
            late,
        }
    }

    /// Makes a change, unless it is too late.
    ///
    /// # Errors
    /// Those of the change; `late`, or the cloud's request to slow down, for each that is not made.
    pub fn run<T, E: Into<Failure>>(&mut self, step: impl FnOnce() -> Result<T, E>) -> Result<T, Failure> {
        if self.stopped.is_none() && self.context.time_left() <= self.reserve {
            self.stopped = Some((self.late)());
        }
        if let Some(failure) = &self.stopped {
            return Err(failure.clone());
        }
        step().map_err(E::into).inspect_err(|failure| {
            if failure.kind == FailureKind::RateLimited {
                self.stopped = Some(failure.clone());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeHost;

    fn late() -> Failure {
        Failure::unavailable("too late")
    }

    fn made() -> Result<u32, Failure> {
        Ok(7)
    }

    #[test]
    fn changes_end_when_the_time_is_nearly_over() {
        let host = FakeHost::new();
        let mut brake = Brake::new(host.context(), late);
        assert_eq!(brake.run(made), Ok(7));
        host.now(39);
        assert_eq!(brake.run(made), Ok(7));
        host.now(40);
        assert_eq!(brake.run(made), Err(late()), "a third of 60 s is kept");
    }

    #[test]
    fn changes_end_when_the_cloud_slows_down_and_no_other_failure_ends_them() {
        let host = FakeHost::new();
        let mut brake = Brake::new(host.context(), late);
        let denied = Failure::denied("no");
        assert_eq!(brake.run(|| Err::<u32, _>(denied.clone())), Err(denied));
        assert_eq!(brake.run(made), Ok(7));
        let slow = Failure::rate_limited(None, "slow down");
        assert_eq!(brake.run(|| Err::<u32, _>(slow.clone())), Err(slow.clone()));
        assert_eq!(brake.run(made), Err(slow));
    }
}
