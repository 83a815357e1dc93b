//! Waits for a condition, since a test must not sleep and hope.

use std::fmt::Display;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first look comes at once, the next ones after this time, or [`REST`] times what the last look took: one that costs a cloud's server much work would
/// else take its time from what is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks take at most a quarter of the time.
const REST: u32 = 3;

/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What a condition can answer: `bool`, `Option<T>` or `Result<T, E>`, whose error says what is missing.
pub trait Verdict {
    /// What the wait gives once the condition holds.
    type Value;

    /// The value, or what is missing.
    fn settle(self) -> Result<Self::Value, String>;
}

impl Verdict for bool {
    type Value = ();

    fn settle(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("false".into()) }
    }
}

impl<T> Verdict for Option<T> {
    type Value = T;

    fn settle(self) -> Result<T, String> {
        self.ok_or_else(|| "none".into())
    }
}

impl<T, E: Display> Verdict for Result<T, E> {
    type Value = T;

    fn settle(self) -> Result<T, String> {
        // The alternate form shows the causes of an `anyhow::Error` too.
        self.map_err(|error| format!("{error:#}"))
    }
}

/// Looks until the condition holds and gives what it found.
///
/// ```no_run
/// # async fn example(nodes: kube::Api<k8s_openapi::api::core::v1::Node>) {
/// use std::time::Duration;
/// use cloudwit_test_support::eventually;
/// let node = eventually(Duration::from_secs(10), "node-1 exists", || async { nodes.get("node-1").await }).await;
/// # }
/// ```
///
/// # Panics
///
/// When `timeout` passes first; the message names the caller, `what` was awaited, and the last answer.
#[track_caller]
pub fn eventually<V, F, Fut>(timeout: Duration, what: &str, look: F) -> impl Future<Output = V::Value>
where
    V: Verdict,
    F: FnMut() -> Fut,
    Fut: Future<Output = V>,
{
    let caller = Location::caller();
    async move {
        within(timeout, look).await.unwrap_or_else(|last| {
            panic!("{caller}: not within {timeout:?}: {what}; last answer: {last}");
        })
    }
}

/// As [`eventually`], for those who handle failure themselves.
///
/// # Errors
///
/// The last answer, when `timeout` passes first.
pub async fn within<V, F, Fut>(timeout: Duration, mut look: F) -> Result<V::Value, String>
where
    V: Verdict,
    F: FnMut() -> Fut,
    Fut: Future<Output = V>,
{
    let deadline = Instant::now() + timeout;
    let mut last = "the first look did not end".to_owned();
    loop {
        let began = Instant::now();
        if let Ok(verdict) = tokio::time::timeout_at(deadline, look()).await {
            match verdict.settle() {
                Ok(value) => return Ok(value),
                Err(missing) => last = missing,
            }
        }
        if Instant::now() >= deadline {
            return Err(last);
        }
        sleep((began.elapsed() * REST).clamp(PAUSE, LONGEST_PAUSE)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn condition_is_checked_until_it_holds() {
        let mut looks = 0;
        let found = eventually(Duration::from_secs(5), "the third look", || {
            looks += 1;
            let answer = if looks == 3 { Ok("here") } else { Err("not yet") };
            async move { answer }
        });
        assert_eq!(found.await, "here");
        assert_eq!(looks, 3);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "not within 5s: the moon is cheese; last answer: it is rock")]
    async fn a_condition_that_never_holds_panics_with_the_last_answer() {
        eventually(Duration::from_secs(5), "the moon is cheese", || async {
            Err::<(), _>("it is rock")
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "last answer: the first look did not end")]
    async fn check_that_hangs_ends_at_the_timeout() {
        eventually(Duration::from_secs(5), "an answer", std::future::pending::<bool>).await;
    }
}
