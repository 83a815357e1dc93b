//! Requests that come within a moment share a call.
//!
//! ```text
//!   entries --> wait at most 100 ms --> pick: those of one kind whose lane is free --> one call --> an answer for each
//! ```
//!
//! Entries of one lane (a machine) are never in two calls at once: clouds choose device names per machine, and some change the whole machine.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use cloudwit_model::{Answer, CloudError, Failure};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until};

/// How long the first request waits for others.
pub const GATHER: Duration = Duration::from_millis(100);

/// A batch that the provider fails on is taken apart for no longer: its machines wait meanwhile.
pub const LONGEST_SEARCH: Duration = Duration::from_secs(60);

/// Requests that may wait to be read; a sender waits beyond it.
const QUEUED: usize = 1024;

/// What can share a call.
pub trait Entry: Clone + Send + Sync + 'static {
    /// What comes of it.
    type Answer: Send + 'static;
    /// Calls have entries of one kind only.
    type Kind: PartialEq + Send;

    /// Its kind.
    fn kind(&self) -> Self::Kind;

    /// Entries of the same lane are never in two calls at once.
    fn lane(&self) -> Option<&str>;
}

/// Makes a call about entries of one kind. An answer for each, in their order.
pub trait Calls<E: Entry>: Send + Sync + 'static {
    /// The most entries of a call.
    fn most(&self) -> impl Future<Output = Result<usize, CloudError>> + Send;

    /// The call.
    fn call<'a>(&'a self, entries: &'a [E]) -> Answer<'a, Vec<Result<E::Answer, Failure>>>;
}

type Waiting<E> = (E, oneshot::Sender<Result<<E as Entry>::Answer, CloudError>>);

/// Gathers entries.
#[derive(Debug)]
pub struct Batches<E: Entry>(mpsc::Sender<Waiting<E>>);

impl<E: Entry> Batches<E> {
    /// Begins to gather, until it is dropped. Needs a tokio runtime.
    pub fn start(calls: Arc<impl Calls<E>>) -> Self {
        let (send, receive) = mpsc::channel(QUEUED);
        drop(tokio::spawn(Gathering::new(calls).run(receive)));
        Self(send)
    }

    /// What comes of this entry.
    ///
    /// # Errors
    ///
    /// Its failure, or that of the call it was in.
    pub async fn ask(&self, entry: E) -> Result<E::Answer, CloudError> {
        let stopped = || CloudError::from(Failure::Unavailable("this process is stopping".into()));
        let (send, receive) = oneshot::channel();
        self.0.send((entry, send)).await.map_err(|_| stopped())?;
        receive.await.map_err(|_| stopped())?
    }
}

struct Gathering<E: Entry, C> {
    calls: Arc<C>,
    waiting: VecDeque<Waiting<E>>,
    /// Which call has which lane.
    busy: HashMap<String, Id>,
    running: JoinSet<()>,
    /// When the waiting entries are sent; none while there are none.
    at: Option<Instant>,
}

impl<E: Entry, C: Calls<E>> Gathering<E, C> {
    fn new(calls: Arc<C>) -> Self {
        Self {
            calls,
            waiting: VecDeque::new(),
            busy: HashMap::new(),
            running: JoinSet::new(),
            at: None,
        }
    }

    async fn run(mut self, mut entries: mpsc::Receiver<Waiting<E>>) {
        loop {
            let at = self.at.unwrap_or_else(Instant::now);
            tokio::select! {
                entry = entries.recv() => match entry {
                    Some(entry) => {
                        self.waiting.push_back(entry);
                        self.at.get_or_insert_with(|| Instant::now() + GATHER);
                    }
                    None => return,
                },
                Some(ended) = self.running.join_next_with_id() => {
                    let ended = ended.map_or_else(|panicked| panicked.id(), |(id, ())| id);
                    self.busy.retain(|_, call| *call != ended);
                    if !self.waiting.is_empty() {
                        self.at.get_or_insert_with(Instant::now);
                    }
                }
                () = sleep_until(at), if self.at.is_some() => {
                    self.at = None;
                    self.send().await;
                }
            }
        }
    }

    /// Sends what can be sent; the rest waits until a lane is free.
    async fn send(&mut self) {
        let most = match self.calls.most().await {
            Ok(most) => most.max(1),
            Err(error) => {
                for (_, answer) in self.waiting.drain(..) {
                    // The receiver may be gone.
                    let _ = answer.send(Err(error.clone()));
                }
                return;
            }
        };
        loop {
            let picked = pick(&self.waiting, &self.busy, most);
            if picked.is_empty() {
                return;
            }
            let mut rest = VecDeque::with_capacity(self.waiting.len());
            let mut batch = Vec::with_capacity(picked.len());
            let mut picked = picked.into_iter().peekable();
            for (index, entry) in self.waiting.drain(..).enumerate() {
                if picked.next_if_eq(&index).is_some() {
                    batch.push(entry);
                } else {
                    rest.push_back(entry);
                }
            }
            self.waiting = rest;
            let lanes: HashSet<String> = batch
                .iter()
                .filter_map(|(entry, _)| entry.lane().map(str::to_owned))
                .collect();
            let calls = self.calls.clone();
            let call = self.running.spawn(async move { answer(&*calls, batch).await }).id();
            self.busy.extend(lanes.into_iter().map(|lane| (lane, call)));
        }
    }
}

/// Which of them go into the next call, by index: the first whose lane is free, and those of its kind.
fn pick<E: Entry, T>(waiting: &VecDeque<(E, T)>, busy: &HashMap<String, Id>, most: usize) -> Vec<usize> {
    let is_free = |entry: &E| entry.lane().is_none_or(|lane| !busy.contains_key(lane));
    let mut kind = None;
    let mut picked = Vec::new();
    // A lane whose first entry has another kind is left alone: requests are done in their order.
    let mut taken: HashSet<&str> = HashSet::new();
    for (index, (entry, _)) in waiting.iter().enumerate() {
        if picked.len() >= most {
            break;
        }
        if !is_free(entry) {
            continue;
        }
        let same = *kind.get_or_insert_with(|| entry.kind()) == entry.kind();
        match entry.lane() {
            Some(lane) if taken.contains(lane) => {}
            Some(lane) if !same => {
                taken.insert(lane);
            }
            _ if same => picked.push(index),
            _ => {}
        }
    }
    picked
}

/// Makes the call, and sends each entry its result. When the provider fails on the whole, halves are called, so that one bad entry only fails itself.
async fn answer<E: Entry>(calls: &impl Calls<E>, batch: Vec<Waiting<E>>) {
    let begun = Instant::now();
    let mut batches = vec![batch];
    while let Some(mut batch) = batches.pop() {
        let entries: Vec<E> = batch.iter().map(|(entry, _)| entry.clone()).collect();
        match calls.call(&entries).await {
            Ok(answers) => {
                for ((_, asked), answer) in batch.into_iter().zip(answers) {
                    // The receiver may be gone.
                    let _ = asked.send(answer.map_err(CloudError::from));
                }
            }
            Err(error) if error.is_about_items() && batch.len() > 1 && begun.elapsed() < LONGEST_SEARCH => {
                let second = batch.split_off(batch.len() / 2);
                batches.extend([second, batch]);
            }
            Err(error) => {
                // That something the whole call needs does not exist is no result for any of them.
                let error = match error {
                    CloudError::Failure(Failure::NotFound(reason)) => Failure::Unavailable(reason).into(),
                    error => error,
                };
                for (_, asked) in batch {
                    // The same.
                    let _ = asked.send(Err(error.clone()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
