//! Cache of reviews; equal reviews in flight share one request.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

/// Answers that are kept at most, and reviews in flight beyond which those without waiters are removed.
const REMEMBERED: usize = 4096;

/// The SHA-256 of a question, so that what strangers send costs little memory, and tokens are not kept.
pub type Digest = [u8; 32];

/// Why there is no answer.
pub type NoAnswer = Arc<str>;

type Asking<A> = BoxFuture<'static, Result<A, NoAnswer>>;

/// Answers, each until its time is over; clones share them.
pub struct ReviewCache<A: Clone>(Arc<Mutex<Answers<A>>>);

struct Answers<A: Clone> {
    known: HashMap<Digest, (Instant, A)>,
    under_way: HashMap<Digest, WeakShared<Asking<A>>>,
}

impl<A: Clone> Default for ReviewCache<A> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Answers {
            known: HashMap::new(),
            under_way: HashMap::new(),
        })))
    }
}

impl<A: Clone> Clone for ReviewCache<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A: Clone + Send + Sync + 'static> ReviewCache<A> {
    /// The answer, if it still holds.
    pub fn known(&self, question: &Digest) -> Option<A> {
        self.lock().known(question)
    }

    /// The answer that is known, or that is waited for already, or else of `ask`, which says too for how long it holds. No answer is
    /// not remembered.
    pub async fn ask<F>(&self, question: Digest, ask: F) -> Result<A, NoAnswer>
    where
        F: Future<Output = Result<(A, Duration), String>> + Send + 'static,
    {
        let asking = {
            let mut answers = self.lock();
            if let Some(answer) = answers.known(&question) {
                return Ok(answer);
            }
            match answers.under_way.get(&question).and_then(WeakShared::upgrade) {
                Some(asking) => asking,
                None => answers.begin(question, self.clone().keep(question, ask).boxed().shared()),
            }
        };
        asking.await
    }

    /// Sends the review, and caches the answer.
    async fn keep<F>(self, question: Digest, ask: F) -> Result<A, NoAnswer>
    where
        F: Future<Output = Result<(A, Duration), String>>,
    {
        let answered = ask.await;
        let mut answers = self.lock();
        answers.under_way.remove(&question);
        let (answer, hold) = answered.map_err(NoAnswer::from)?;
        answers.remember(question, answer.clone(), hold);
        Ok(answer)
    }

    fn lock(&self) -> MutexGuard<'_, Answers<A>> {
        self.0.lock()
    }
}

impl<A: Clone> Answers<A> {
    fn known(&self, question: &Digest) -> Option<A> {
        let (until, answer) = self.known.get(question)?;
        (*until > Instant::now()).then(|| answer.clone())
    }

    fn begin(&mut self, question: Digest, asking: Shared<Asking<A>>) -> Shared<Asking<A>> {
        if self.under_way.len() >= REMEMBERED {
            self.under_way.retain(|_, asking| asking.upgrade().is_some());
        }
        // There is a weak one of every future that has not ended.
        if let Some(weak) = asking.downgrade() {
            self.under_way.insert(question, weak);
        }
        asking
    }

    /// When there are too many, those whose time is over go, and all if that does not help.
    fn remember(&mut self, question: Digest, answer: A, hold: Duration) {
        let now = Instant::now();
        if self.known.len() >= REMEMBERED {
            self.known.retain(|_, (until, _)| *until > now);
            if self.known.len() >= REMEMBERED {
                self.known.clear();
            }
        }
        self.known.insert(question, (now + hold, answer));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    const HOLD: Duration = Duration::from_secs(10);

    fn question(number: u32) -> Digest {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&number.to_le_bytes());
        digest
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_holds_for_its_time_and_there_are_never_too_many() {
        let answers = ReviewCache::<bool>::default();
        let yes = async || Ok((true, HOLD));
        assert_eq!(answers.ask(question(1), yes()).await, Ok(true));
        tokio::time::advance(Duration::from_secs(9)).await;
        let no = async { Ok((false, HOLD)) };
        assert_eq!(answers.ask(question(1), no).await, Ok(true));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(answers.known(&question(1)), None);
        let no = async { Ok((false, HOLD)) };
        assert_eq!(answers.ask(question(1), no).await, Ok(false));
        for number in 0..10_000 {
            answers.ask(question(number), yes()).await.unwrap();
        }
        assert!(answers.lock().known.len() <= REMEMBERED);
        assert!(answers.lock().under_way.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn concurrent_callers_share_one_request() {
        let (answers, asked) = (ReviewCache::<bool>::default(), Arc::new(AtomicU32::new(0)));
        let ask = || {
            let asked = asked.clone();
            async move {
                asked.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok((true, HOLD))
            }
        };
        let all = futures::future::join_all((0..100).map(|_| answers.ask(question(1), ask()))).await;
        assert!(all.iter().all(|answer| *answer == Ok(true)));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_caller_delays_no_other_and_is_not_cached() {
        let answers = ReviewCache::<bool>::default();
        let slow = || async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err("down".to_owned())
        };
        let impatient = tokio::time::timeout(Duration::from_millis(500), answers.ask(question(1), slow()));
        let (impatient, patient) = tokio::join!(impatient, answers.ask(question(1), slow()));
        assert!(impatient.is_err());
        assert_eq!(patient, Err("down".into()));
        let alone = tokio::time::timeout(Duration::from_millis(500), answers.ask(question(1), slow())).await;
        assert!(alone.is_err(), "nobody waits for it any more");
        assert_eq!(answers.ask(question(1), async { Ok((true, HOLD)) }).await, Ok(true));
    }
}
