//! Batched look-ups of Nodes, and a search for the one Node on which a call faults.
//!
//! ```text
//!   Nodes --> those that faulted before: each in a call of its own, at growing pauses
//!         \-> all others: one call --answer--> a part
//!                             \--fault--> four calls for a quarter each --> ... --> the Node that it is about
//! ```
//!
//! A provider that traps, hangs or answers nonsense as soon as one Node is in the list would otherwise cost all of them their answer. Quarters
//! take as many calls as halves and half the rounds, which run one after the other. What is found is kept, so that it is not looked for
//! again each time, and the further calls have a budget: a provider that always faults is not called over and over.
//! Only faults are narrowed down: a failure is the provider's answer to the whole question. [`LookupFaults`] decides and is pure.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cloudwit_model::{Cloud, CloudError, Failure, NodeRef, Presence};
use futures::stream::FuturesUnordered;
use futures::{Stream, StreamExt, stream};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug};

use crate::kube::events::budget::Budget;
use crate::metrics::{Metrics, Purpose};
use crate::scope::Scope;
use crate::sync::lock;

/// A faulting call is made again in so many parts.
const PARTS: usize = 4;
/// So many faulting calls may be made again in parts, one after the other: enough to find a dozen Nodes among a thousand.
const BURST: f64 = 64.0;
/// After the burst one more every so often: a provider that faults on everything costs 24 further calls a minute.
const REFILL: Duration = Duration::from_secs(10);
/// For so long a question is narrowed down at most: six calls in a row that each take the 60 s that a call may take by default. What is left
/// is a fault of all Nodes that are left.
const LONGEST_SEARCH: Duration = Duration::from_secs(360);
/// Pause after a Node was found to be the one; doubles with each further fault.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// More are not remembered: then it is not one Node that is odd, but the provider.
const REMEMBERED: usize = 256;
/// A Node that was not looked up for so long is dropped: it is gone, or no controller needs it.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// One answer for each Node.
pub(crate) type Answers = Result<Vec<Result<Presence, Failure>>, CloudError>;

/// The answer about some of the requested Nodes.
pub(crate) struct LookupPart {
    /// Their places in the question.
    pub(crate) at: Vec<usize>,
    /// As of [`Cloud::lookup`].
    pub(crate) answer: Answers,
}

impl LookupPart {
    /// Whether the call failed because of this Node alone.
    pub(crate) fn is_one_fault(&self) -> bool {
        self.at.len() == 1 && self.answer.as_ref().is_err_and(CloudError::is_about_items)
    }
}

/// A Node on which calls fault.
#[derive(Debug, Clone)]
struct FaultyNode {
    faults: u32,
    not_before: Instant,
    error: CloudError,
}

/// How Nodes are looked up: together, alone, or not now.
#[derive(Debug, Default)]
struct Batches {
    together: Vec<usize>,
    alone: Vec<usize>,
    early: Vec<(usize, CloudError)>,
}

/// The Nodes on which calls fault, by name, and the budget of further calls.
#[derive(Debug)]
struct LookupFaults {
    /// The provider that faulted; another one may do better.
    provider: String,
    nodes: HashMap<String, FaultyNode>,
    splits: Budget,
}

impl LookupFaults {
    fn new(now: Instant) -> Self {
        Self {
            provider: String::new(),
            nodes: HashMap::new(),
            splits: Budget::with_burst(BURST, REFILL, now),
        }
    }

    fn batches(&mut self, provider: &str, refs: &[NodeRef], now: Instant) -> Batches {
        if self.provider != provider {
            provider.clone_into(&mut self.provider);
            self.nodes.clear();
            self.splits = Budget::with_burst(BURST, REFILL, now);
        }
        let mut batches = Batches::default();
        for (at, node) in refs.iter().enumerate() {
            match self.nodes.get(&node.name) {
                None => batches.together.push(at),
                Some(faulty) if faulty.not_before > now => batches.early.push((at, faulty.error.clone())),
                Some(_) => batches.alone.push(at),
            }
        }
        batches
    }

    /// Whether a call that faulted may be made again in parts.
    fn may_split(&mut self, now: Instant) -> bool {
        self.splits.take(now)
    }

    /// The call about this Node alone has faulted.
    fn faulted(&mut self, name: &str, error: &CloudError, now: Instant) {
        let faults = self.nodes.get(name).map_or(1, |faulty| faulty.faults.saturating_add(1));
        if faults == 1 && self.nodes.len() >= REMEMBERED {
            self.nodes.retain(|_, faulty| now < faulty.not_before + FORGOTTEN);
            if self.nodes.len() >= REMEMBERED {
                return;
            }
        }
        let pause = FIRST_PAUSE
            .saturating_mul(2u32.saturating_pow(faults - 1))
            .min(LONGEST_PAUSE);
        let faulty = FaultyNode {
            faults,
            not_before: now + pause,
            error: error.clone(),
        };
        self.nodes.insert(name.to_owned(), faulty);
    }

    /// The call about this Node alone has not faulted.
    fn answered(&mut self, name: &str) {
        self.nodes.remove(name);
    }
}

/// The Nodes that a call is about.
struct Batch {
    at: Vec<usize>,
    refs: Vec<NodeRef>,
    /// Whether it is a part of a call that faulted.
    further: bool,
}

/// A call under way.
type Call<'a> = Pin<Box<dyn Future<Output = (Batch, Answers)> + Send + 'a>>;

/// A question that is being answered.
struct Search<'a> {
    lookups: &'a NodeLookups,
    purpose: Purpose,
    span: Span,
    began: Instant,
    calls: FuturesUnordered<Call<'a>>,
    /// Parts of calls that faulted, under way.
    further: usize,
    /// What faulted and is to be cut, the latest last: one Node is found before the search for the next begins.
    faulted: Vec<(Batch, CloudError)>,
}

impl<'a> Search<'a> {
    fn ask(&mut self, asked: Batch) {
        let (lookups, purpose) = (self.lookups, self.purpose);
        self.further += usize::from(asked.further);
        let call = async move {
            let answer = lookups.cloud.lookup(&asked.refs).await;
            lookups
                .metrics
                .looked_up(purpose, asked.refs.len(), answer.as_ref().map(|_| ()));
            let answer = answer.map(|answers| {
                let checked = lookups.scope.checked();
                let each = asked.refs.iter().zip(answers);
                each.map(|(node, answer)| checked(node, answer?)).collect()
            });
            (asked, answer)
        };
        self.calls.push(Box::pin(call.instrument(self.span.clone())));
    }

    async fn next(&mut self) -> Option<LookupPart> {
        loop {
            if self.further == 0
                && let Some((asked, error)) = self.faulted.pop()
            {
                if !self.split(&asked, &error) {
                    let at = asked.at;
                    return Some(LookupPart { at, answer: Err(error) });
                }
                continue;
            }
            let (asked, answer) = self.calls.next().await?;
            self.further -= usize::from(asked.further);
            match (answer, asked.refs.as_slice()) {
                (Err(error), [one]) if error.is_about_items() => {
                    lock(&self.lookups.faults).faulted(&one.name, &error, Instant::now());
                    let at = asked.at;
                    return Some(LookupPart { at, answer: Err(error) });
                }
                (Err(error), _) if error.is_about_items() => self.faulted.push((asked, error)),
                (answer, refs) => {
                    if let [one] = refs {
                        lock(&self.lookups.faults).answered(&one.name);
                    }
                    return Some(LookupPart { at: asked.at, answer });
                }
            }
        }
    }

    /// Looks up parts of these Nodes; false when it was enough.
    fn split(&mut self, asked: &Batch, fault: &CloudError) -> bool {
        let now = Instant::now();
        if now - self.began >= LONGEST_SEARCH || !lock(&self.lookups.faults).may_split(now) {
            return false;
        }
        debug!(nodes = asked.refs.len(), %fault, "look-up faulted; retrying with fewer Nodes per call");
        let size = asked.refs.len().div_ceil(PARTS);
        for (at, refs) in asked.at.chunks(size).zip(asked.refs.chunks(size)) {
            self.ask(Batch {
                at: at.to_vec(),
                refs: refs.to_vec(),
                further: true,
            });
        }
        true
    }
}

/// Looks Nodes up at a provider. Its controllers share it and its results.
pub struct NodeLookups {
    cloud: Arc<dyn Cloud>,
    scope: Scope,
    metrics: Arc<Metrics>,
    faults: Mutex<LookupFaults>,
}

impl NodeLookups {
    /// Looks Nodes up at this provider's cloud.
    pub fn new(scope: Scope, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self {
            cloud: scope.provider().cloud.clone(),
            scope,
            metrics,
            faults: Mutex::new(LookupFaults::new(Instant::now())),
        })
    }

    /// Looks up these Nodes, of which no two have one name. Each is in exactly one of the parts, which come as the answers do.
    pub(crate) fn about(
        &self,
        purpose: Purpose,
        refs: Vec<NodeRef>,
        span: Span,
    ) -> impl Stream<Item = LookupPart> + Send {
        let provider = self.cloud.identity().digest;
        let batches = lock(&self.faults).batches(&provider, &refs, Instant::now());
        let mut refs: Vec<Option<NodeRef>> = refs.into_iter().map(Some).collect();
        let mut search = Search {
            lookups: self,
            purpose,
            span,
            began: Instant::now(),
            calls: FuturesUnordered::new(),
            further: 0,
            faulted: Vec::new(),
        };
        let together = Some(batches.together).filter(|together| !together.is_empty());
        for at in together.into_iter().chain(batches.alone.into_iter().map(|at| vec![at])) {
            let refs = at.iter().filter_map(|at| refs[*at].take()).collect();
            let further = false;
            search.ask(Batch { at, refs, further });
        }
        let early = batches.early.into_iter().map(|(at, error)| LookupPart {
            at: vec![at],
            answer: Err(error),
        });
        let asked = stream::unfold(search, |mut search| async move {
            let part = search.next().await?;
            Some((part, search))
        });
        stream::iter(early).chain(asked)
    }
}

#[cfg(test)]
mod tests;
