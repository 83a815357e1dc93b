//! Rounds of one call: what comes next is planned from what the cloud shows, made, and planned again.

use std::time::Duration;

use super::{Change, Steps};
use crate::context::Context;
use crate::state::Lock;
use crate::types::Failure;
use crate::warn;

/// Most rounds of a call: a plan that never ends is a mistake.
const ROUNDS: usize = 64;

/// Most jobs at once: a cloud has few threads for them, and a token 4 KiB.
const JOBS: usize = 16;

/// How long a lock is waited for that another call has.
const PATIENCE: Duration = Duration::from_secs(5);

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<T, C> {
    /// These changes, in this order. Then it is planned again.
    Changes(Vec<C>),
    /// The cloud is at work; this is the progress.
    Wait(String),
    /// Nothing is left to do.
    Done(T),
}

impl<T, C> Next<T, C> {
    /// One change.
    pub fn change(change: C) -> Self {
        Self::Changes(vec![change])
    }

    /// These changes, if there are any.
    pub fn changes(changes: Vec<C>) -> Option<Self> {
        (!changes.is_empty()).then_some(Self::Changes(changes))
    }

    /// These changes; done where there are none.
    pub fn changes_or(changes: Vec<C>, done: T) -> Self {
        Self::changes(changes).unwrap_or(Self::Done(done))
    }

    /// The same, and what `then` plans once it is done.
    ///
    /// # Errors
    /// The error of `then`.
    pub fn then<U>(self, then: impl FnOnce(T) -> Result<Next<U, C>, Failure>) -> Result<Next<U, C>, Failure> {
        match self {
            Self::Changes(changes) => Ok(Next::Changes(changes)),
            Self::Wait(state) => Ok(Next::Wait(state)),
            Self::Done(done) => then(done),
        }
    }
}

/// The state of earlier calls' jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs {
    /// Those that continue.
    pub running: Vec<String>,
    /// Whether one failed whose failure was reported before: what it was to do is planned again.
    pub failed: bool,
}

/// How a cloud makes changes: the part of [`Rounds`] that differs from cloud to cloud.
pub trait Apply {
    /// A change that is not made yet, as data.
    type Change;

    /// A change in one line: for logs, and to recognize it.
    fn text(change: &Self::Change) -> String;

    /// Which of the cloud's codes mean that a change of this text was made already, or that the cloud is busy.
    fn codes(text: &str) -> Change<'_> {
        Change::new(text)
    }

    /// Whether it was made already where the cloud does not have what it is about: a deletion.
    fn deletes(change: &Self::Change) -> bool;

    /// Makes a change of the thing of this id, as [`Rounds::new`] got it: the ids of the jobs by which the cloud continues with it, where it has such.
    ///
    /// # Errors
    /// The cloud's error.
    fn apply(&self, id: &str, change: &Self::Change) -> Result<Vec<String>, Failure>;

    /// The state of these jobs. To be replaced where there are jobs.
    ///
    /// # Errors
    /// Why one failed; the cloud's error.
    fn jobs(&self, jobs: Vec<String>) -> Result<Jobs, Failure> {
        drop(jobs);
        Ok(Jobs::default())
    }
}

/// What was read and is kept over a round, by calls that lock ([`Rounds::run_locked`]).
pub trait Kept {
    /// Whether nothing was read yet that others change too.
    fn is_unread(&self) -> bool;

    /// Drops what others change too, so that it is read again.
    fn forget(&self);
}

/// Nothing is kept.
impl Kept for () {
    fn is_unread(&self) -> bool {
        true
    }

    fn forget(&self) {}
}

/// One call that brings a thing in line, by [`Steps`]: round after round, until nothing is left or the cloud needs time.
///
/// ```
/// use cloudwit_guest_sdk::prelude::*;
/// use cloudwit_guest_sdk::reconcile::{Apply, Change, Next, Rounds};
///
/// struct Cloud { http: Http }
///
/// /// A method and a path.
/// struct Call(&'static str, String);
///
/// impl Apply for Cloud {
///     type Change = Call;
///     fn text(call: &Call) -> String { format!("{} {}", call.0, call.1) }
///     fn codes(text: &str) -> Change<'_> { Change::new(text).done_by(&["AlreadyExists"]).busy_by(&["Locked"]) }
///     fn deletes(call: &Call) -> bool { call.0 == "DELETE" }
///     fn apply(&self, _: &str, call: &Call) -> Result<Vec<String>, Failure> {
///         self.http.request(call.0, &call.1).send().map(|_| Vec::new())
///     }
/// }
///
/// /// Brings a load balancer in line: `next` reads it, and plans the next changes.
/// fn converge(cloud: &Cloud, id: &str, token: Option<&str>, next: impl Fn() -> Result<Next<Balancer, Call>, Failure>) -> Result<Balancer, Failure> {
///     Rounds::new(cloud, id, token)?.run(next)
/// }
/// ```
#[derive(Debug)]
pub struct Rounds<'a, A> {
    cloud: &'a A,
    context: Context,
    steps: Steps,
}

impl<'a, A: Apply> Rounds<'a, A> {
    /// With the object of this id, which is part of messages. `token` is that of the call.
    ///
    /// # Errors
    /// `pending` while jobs of earlier calls continue; why one failed.
    pub fn new(cloud: &'a A, id: &str, token: Option<&str>) -> Result<Self, Failure> {
        let former = token.and_then(Steps::read).filter(|steps| steps.id() == id);
        let mut steps = former.unwrap_or_else(|| Steps::new(id));
        let jobs = steps.take_jobs();
        if !jobs.is_empty() {
            let Jobs { running, failed } = cloud.jobs(jobs)?;
            if failed {
                // What failed may be made again.
                steps = Steps::new(id);
            }
            steps.add_jobs(running);
        }
        let context = Context::new();
        let rounds = Self { cloud, context, steps };
        rounds.awaited().map(|()| rounds)
    }

    /// Plans and makes one round after the other.
    ///
    /// # Errors
    /// `pending` while the cloud works on it; the error of `next` or of the cloud.
    pub fn run<T>(mut self, next: impl FnMut() -> Result<Next<T, A::Change>, Failure>) -> Result<T, Failure> {
        self.each_round(None, &(), next)
    }

    /// The same for things that several calls change, such as members that load balancers share: one call at a time changes any, by the lock of this name.
    ///
    /// Where no other call has the lock, what the first round reads counts: a call that reads everything twice makes no headway on a cloud that refuses a
    /// request now and then. Where another has it, nothing that was read before the lock was got counts.
    ///
    /// # Errors
    /// As [`run`](Self::run); `pending` while another call has the lock.
    pub fn run_locked<T>(
        mut self,
        lock: &str,
        kept: &impl Kept,
        next: impl FnMut() -> Result<Next<T, A::Change>, Failure>,
    ) -> Result<T, Failure> {
        self.each_round(Some(lock), kept, next)
    }

    /// Makes one change by itself, outside of rounds.
    ///
    /// # Errors
    /// As [`Steps::make`].
    pub fn make(&mut self, change: &A::Change) -> Result<(), Failure> {
        let text = A::text(change);
        let id = self.steps.id().to_owned();
        let made = self
            .steps
            .make(&self.context, &A::codes(&text), || self.cloud.apply(&id, change));
        match made {
            // Deleted already.
            Err(failure) if failure.is_not_found() && A::deletes(change) => {}
            made => self.steps.add_jobs(made?.unwrap_or_default()),
        }
        Ok(())
    }

    /// As [`Steps::pending`].
    pub fn pending(&self, state: impl std::fmt::Display) -> Failure {
        self.steps.pending(state)
    }

    fn each_round<T>(
        &mut self,
        lock: Option<&str>,
        kept: &impl Kept,
        mut next: impl FnMut() -> Result<Next<T, A::Change>, Failure>,
    ) -> Result<T, Failure> {
        let state = self.context.state();
        let mut held: Option<Lock> = lock.and_then(|lock| state.lock(lock, Duration::ZERO));
        let mut is_current = lock.is_none() || (held.is_some() && kept.is_unread());
        for _ in 0..ROUNDS {
            let changes = match next()? {
                Next::Done(done) => return Ok(done),
                Next::Wait(what) => return Err(self.pending(what)),
                Next::Changes(changes) => changes,
            };
            if is_current {
                self.make_all(&changes)?;
            } else {
                held = held.or_else(|| state.lock(lock?, PATIENCE));
                if held.is_none() {
                    return Err(self.pending(format!("{} waits for other changes", self.steps.id())));
                }
                is_current = true;
            }
            kept.forget();
        }
        let id = self.steps.id();
        Err(Failure::conflict(format!("something else changes {id} back each time")))
    }

    fn make_all(&mut self, changes: &[A::Change]) -> Result<(), Failure> {
        for change in changes {
            match self.make(change) {
                Ok(()) if self.steps.jobs() >= JOBS => break,
                Ok(()) => {}
                Err(failure) if self.steps.jobs() == 0 => return Err(failure),
                // Those that were begun are waited for; this one is planned again.
                Err(failure) => {
                    warn!("a change was not begun: {}", failure.message());
                    break;
                }
            }
        }
        self.awaited()
    }

    /// `pending` where there are jobs.
    fn awaited(&self) -> Result<(), Failure> {
        match self.steps.jobs() {
            0 => Ok(()),
            _ => Err(self.pending(format!("{} is being changed", self.steps.id()))),
        }
    }
}

#[cfg(test)]
mod tests;
