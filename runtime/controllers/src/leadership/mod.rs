//! Leadership of this process, checked right before each write to the cluster and to the cloud.
//!
//! ```text
//!   lease (manager) --Term::renew(until)--> Leadership <--write(request)-- apply, events, leading_cloud
//! ```
//!
//! A term ends by itself when its deadline passes, also in a process that hangs, was stopped, or lost the API server.
//! [`Leadership::write`] checks the clock each time the write is polled, and cancels it at the deadline. Writes are counted, so that
//! a process that resigns can wait for those under way before another one takes over.

pub mod dry_run;
pub mod fenced_cloud;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{SetOnce, watch};
use tokio::time::{sleep, timeout};

/// Another replica leads, or there is no leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("this process does not lead any more")]
pub struct NotLeading;

/// The time since some fixed moment. Never goes back.
pub type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Whether this process leads; clones share it.
#[derive(Clone)]
pub struct Leadership(Arc<TermState>);

/// The one who says for how long the process leads. Whoever holds it renews a Lease.
pub struct Term(Arc<TermState>);

struct TermState {
    clock: Clock,
    /// Nanoseconds on the clock until which the process leads.
    until: AtomicU64,
    /// No new write is begun, since the process resigns.
    resigned: AtomicBool,
    begun: SetOnce<()>,
    writes: watch::Sender<usize>,
}

impl TermState {
    /// What is left of the term; none when it is over.
    fn remaining(&self) -> Option<Duration> {
        let until = Duration::from_nanos(self.until.load(Ordering::SeqCst));
        until.checked_sub((self.clock)()).filter(|rest| !rest.is_zero())
    }
}

impl Leadership {
    /// For a process that is alone: it leads from now on and for ever.
    pub fn always() -> Self {
        let (term, leadership) = Self::elected(Arc::new(|| Duration::ZERO));
        term.renew(Duration::MAX);
        leadership
    }

    /// For a process that has to be elected: it leads only as far as the [`Term`] says.
    pub fn elected(clock: Clock) -> (Term, Self) {
        let shared = Arc::new(TermState {
            clock,
            until: AtomicU64::new(0),
            resigned: AtomicBool::new(false),
            begun: SetOnce::new(),
            writes: watch::Sender::new(0),
        });
        (Term(shared.clone()), Self(shared))
    }

    /// Whether a write may begin now.
    pub fn is_leading(&self) -> bool {
        !self.0.resigned.load(Ordering::SeqCst) && self.0.remaining().is_some()
    }

    /// Whether this process has led and does not any more. What it still has to say to a cloud is outdated.
    pub fn is_over(&self) -> bool {
        self.0.begun.initialized() && self.0.remaining().is_none()
    }

    /// For how long the deadline has passed without the term having been ended; none while all is well.
    pub fn overdue(&self) -> Option<Duration> {
        let until = Duration::from_nanos(self.0.until.load(Ordering::SeqCst));
        (self.0.clock)().checked_sub(until).filter(|_| !until.is_zero())
    }

    /// What is left of the term; zero when it is over.
    pub fn remaining(&self) -> Duration {
        self.0.remaining().unwrap_or_default()
    }

    /// Waits until this process leads for the first time.
    pub async fn begun(&self) {
        self.0.begun.wait().await;
    }

    /// Carries out a write if this process leads, for as long as it does: at the end of the term the write is given up, whatever it
    /// waits for.
    ///
    /// # Errors
    ///
    /// When the term is over. The write was not begun, or its outcome is unknown.
    pub async fn write<T>(&self, write: impl Future<Output = T>) -> Result<T, NotLeading> {
        let _counted = self.count();
        if !self.is_leading() {
            return Err(NotLeading);
        }
        self.while_it_lasts(write).await
    }

    /// Goes on with something until the term is over.
    ///
    /// # Errors
    ///
    /// When it is.
    pub async fn while_it_lasts<T>(&self, work: impl Future<Output = T>) -> Result<T, NotLeading> {
        let (mut work, mut over) = (pin!(work), pin!(self.over()));
        poll_fn(|context| {
            // The clock is checked too: after a pause of the whole process the timer may not have fired yet.
            if over.as_mut().poll(context).is_ready() || self.0.remaining().is_none() {
                return Poll::Ready(Err(NotLeading));
            }
            work.as_mut().poll(context).map(Ok)
        })
        .await
    }

    /// Begins no more writes, and waits for those under way, at most so long. Answers whether all have ended.
    pub async fn resign(&self, limit: Duration) -> bool {
        self.0.resigned.store(true, Ordering::SeqCst);
        let mut writes = self.0.writes.subscribe();
        timeout(limit, writes.wait_for(|writes| *writes == 0)).await.is_ok()
    }

    async fn over(&self) {
        while let Some(rest) = self.0.remaining() {
            sleep(rest).await;
        }
    }

    fn count(&self) -> Counted<'_> {
        self.0.writes.send_modify(|writes| *writes += 1);
        Counted(&self.0)
    }
}

impl Term {
    /// The process leads until then, on the clock.
    pub fn renew(&self, until: Duration) {
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.0.until.store(until, Ordering::SeqCst);
        // Every renewal but the first finds it set.
        let _ = self.0.begun.set(());
    }

    /// The process does not lead any more, from now on.
    pub fn end(&self) {
        self.0.until.store(0, Ordering::SeqCst);
    }
}

/// A write under way.
struct Counted<'a>(&'a TermState);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.writes.send_modify(|writes| *writes -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::AtomicUsize;

    use tokio::time::Instant;

    use super::*;

    const TERM: Duration = Duration::from_secs(10);

    fn elected() -> (Term, Leadership) {
        let start = Instant::now();
        Leadership::elected(Arc::new(move || start.elapsed()))
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_before_first_term_or_after_deadline() {
        let (term, leadership) = elected();
        assert_eq!(leadership.write(async {}).await, Err(NotLeading));
        assert!(!leadership.is_over(), "it has not begun");
        term.renew(TERM);
        leadership.begun().await;
        assert_eq!(leadership.write(async { 7 }).await, Ok(7));
        tokio::time::advance(TERM - Duration::from_millis(1)).await;
        assert!(leadership.is_leading());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(leadership.is_over());
        assert_eq!(leadership.write(async {}).await, Err(NotLeading));
    }

    #[tokio::test(start_paused = true)]
    async fn hung_write_is_abandoned_at_the_renewed_deadline() {
        let (term, leadership) = elected();
        let start = Instant::now();
        term.renew(TERM);
        let (ended, ()) = tokio::join!(leadership.write(pending::<()>()), async {
            sleep(TERM / 2).await;
            term.renew(TERM * 2);
        });
        assert_eq!(ended, Err(NotLeading));
        assert!(start.elapsed() >= TERM * 2 && start.elapsed() < TERM * 2 + Duration::from_millis(10));
    }

    #[tokio::test(start_paused = true)]
    async fn write_is_not_retried_after_pause_beyond_deadline() {
        let now = Arc::new(AtomicU64::new(0));
        let (clock, polls) = (now.clone(), AtomicUsize::new(0));
        let (term, leadership) =
            Leadership::elected(Arc::new(move || Duration::from_secs(clock.load(Ordering::SeqCst))));
        term.renew(TERM);
        let write = poll_fn(|context| {
            if polls.fetch_add(1, Ordering::SeqCst) > 0 {
                return Poll::Ready(());
            }
            // As if the process was stopped here: time has passed, but no timer has fired.
            now.store(11, Ordering::SeqCst);
            context.waker().wake_by_ref();
            Poll::Pending
        });
        assert_eq!(leadership.write(write).await, Err(NotLeading));
        assert_eq!(polls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_resigns_begins_nothing_and_waits_for_what_is_under_way() {
        let (term, leadership) = elected();
        term.renew(TERM);
        let (other, second) = (leadership.clone(), Duration::from_secs(1));
        let under_way = tokio::spawn(async move { other.write(sleep(second)).await });
        tokio::task::yield_now().await;
        assert!(!leadership.resign(second / 2).await, "it still runs");
        assert_eq!(leadership.write(async {}).await, Err(NotLeading));
        assert!(leadership.resign(TERM).await);
        assert_eq!(under_way.await.unwrap(), Ok(()));
    }
}
