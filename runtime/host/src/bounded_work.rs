//! Blocking work with a time limit, for files on mounts that may hang.
//!
//! It runs on the blocking pool; how much of it may hang at a time is bounded.
//!
//! A thread that hangs in the kernel cannot be ended. So work that is late is left behind under its key, and is not begun again while it hangs.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long reading some small files may take; a local disk takes milliseconds, a network file system under load seconds.
pub const FILE_LIMIT: Duration = Duration::from_secs(10);

/// Work under way at a time, in the whole process. Each takes a thread; the runtime has 512 of them.
const AT_A_TIME: usize = 64;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoundedWorkError {
    /// It is not done in time, and is left behind.
    #[error("not done within {} s; its file system hangs", .0.as_secs())]
    Late(Duration),
    /// The same was begun before and still hangs.
    #[error("an earlier attempt still hangs in its file system")]
    Hanging,
    /// Too much else hangs.
    #[error("{AT_A_TIME} other reads are under way")]
    TooMany,
    /// It panicked.
    #[error("it crashed: {0}")]
    Crashed(String),
}

static UNDER_WAY: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
static FREED: Notify = Notify::const_new();

/// The place of work under way; given up by the thread that does it.
struct WorkSlot(String);

impl WorkSlot {
    fn take(key: &str) -> Result<Self, BoundedWorkError> {
        let mut under_way = UNDER_WAY.lock();
        if under_way.contains(key) {
            return Err(BoundedWorkError::Hanging);
        }
        if under_way.len() >= AT_A_TIME {
            return Err(BoundedWorkError::TooMany);
        }
        under_way.insert(key.to_owned());
        Ok(Self(key.to_owned()))
    }
}

impl Drop for WorkSlot {
    fn drop(&mut self) {
        UNDER_WAY.lock().remove(&self.0);
        FREED.notify_waiters();
    }
}

/// A place, as soon as the same or too much else is no longer under way.
async fn slot(key: &str) -> WorkSlot {
    loop {
        let mut freed = pin!(FREED.notified());
        freed.as_mut().enable();
        match WorkSlot::take(key) {
            Ok(slot) => return slot,
            Err(_) => freed.await,
        }
    }
}

/// Does blocking work on a thread of the pool, and waits for it at most so long. `key` says what it is; the same is never done twice at a time: a
/// second one waits for the first.
///
/// # Errors
///
/// When it is late, or crashed, or an earlier one has not ended in time.
pub async fn bounded<T: Send + 'static>(
    key: &str,
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, BoundedWorkError> {
    let late = Instant::now() + limit;
    let slot = match timeout_at(late, slot(key)).await {
        Ok(slot) => slot,
        Err(_) => WorkSlot::take(key)?,
    };
    let done = tokio::task::spawn_blocking(move || {
        let _slot = slot;
        work()
    });
    match timeout_at(late, done).await {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(crash)) => Err(BoundedWorkError::Crashed(crash.to_string())),
        Err(_) => Err(BoundedWorkError::Late(limit)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn work_that_hangs_is_left_behind_and_not_begun_again() {
        let (go, wait) = channel::<()>();
        let late = bounded("a test that hangs", Duration::from_millis(1), move || wait.recv()).await;
        assert_eq!(late.unwrap_err(), BoundedWorkError::Late(Duration::from_millis(1)));
        let again = bounded("a test that hangs", Duration::from_millis(1), || 1).await;
        assert_eq!(again, Err(BoundedWorkError::Hanging));
        assert_eq!(bounded("a test beside it", FILE_LIMIT, || 1).await, Ok(1));
        let (second, ()) = tokio::join!(bounded("a test that hangs", FILE_LIMIT, || 1), async {
            go.send(()).unwrap()
        });
        assert_eq!(second, Ok(1), "it waits for the first");
    }

    #[tokio::test]
    async fn a_crash_is_an_error_and_frees_its_place() {
        let crash = bounded("a test that crashes", FILE_LIMIT, || panic!("on purpose")).await;
        assert!(matches!(crash, Err(BoundedWorkError::Crashed(_))), "{crash:?}");
        assert_eq!(bounded("a test that crashes", FILE_LIMIT, || 1).await, Ok(1));
    }
}
