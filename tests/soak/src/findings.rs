//! Broken promises: counted, each kept with its first instance.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Longest detail that is kept, in characters.
const DETAIL: usize = 600;

/// What has to hold during the run or at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// `/livez` answers 200 within [`crate::watch::LIVEZ_LIMIT`].
    Livez,
    /// Resident memory stays within its bounds.
    Memory,
    /// Descriptors stay within their bounds.
    Descriptors,
    /// No canary is in any output.
    Secrets,
    /// No Node is deleted whose machine exists.
    HealthyNodes,
    /// No process ends by itself but a leader without its Lease.
    Processes,
    /// A fault has the effect that shows it took place (a new leader, a new certificate).
    Effects,
    /// In the end every Node is initialised, and Nodes without machines are gone.
    Nodes,
    /// In the end every Service has an address and one balancer, and no balancer outlives its Service.
    Balancers,
    /// In the end every Node has its route, and there are no others.
    Routes,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Livez,
        Self::Memory,
        Self::Descriptors,
        Self::Secrets,
        Self::HealthyNodes,
        Self::Processes,
        Self::Effects,
        Self::Nodes,
        Self::Balancers,
        Self::Routes,
    ];

    /// As it stands in the table.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Livez => "/livez answers 200 within a second",
            Self::Memory => "memory is flat",
            Self::Descriptors => "descriptors are flat",
            Self::Secrets => "no canary in any output",
            Self::HealthyNodes => "no Node deleted whose machine exists",
            Self::Processes => "no replica ends but for a lost Lease",
            Self::Effects => "every fault had its effect, and the answer to it came",
            Self::Nodes => "all Nodes converged",
            Self::Balancers => "all load balancers converged, none left",
            Self::Routes => "all routes converged, none missing",
        }
    }
}

/// Instances of one broken promise.
#[derive(Debug, Clone)]
pub struct Broken {
    /// How often.
    pub count: u64,
    /// The first instance, with its time.
    pub first: String,
    /// How often in which turn.
    pub turns: BTreeMap<String, u64>,
}

/// All broken promises. Clones share them.
#[derive(Debug, Clone)]
pub struct Findings {
    started: Instant,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    turn: String,
    broken: BTreeMap<Promise, Broken>,
}

impl Findings {
    /// None yet.
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            inner: Arc::default(),
        }
    }

    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the turn that runs from now on.
    pub fn turn(&self, name: &str) {
        name.clone_into(&mut self.inner().turn);
    }

    /// Counts one instance. The first of a promise in each turn is printed.
    pub fn add(&self, promise: Promise, detail: &str) {
        let seconds = self.started.elapsed().as_secs();
        let mut inner = self.inner();
        let turn = inner.turn.clone();
        let detail: String = detail.chars().take(DETAIL).collect();
        let text = format!("{seconds} s, {turn}: {detail}");
        let broken = inner.broken.entry(promise).or_insert_with(|| Broken {
            count: 0,
            first: text.clone(),
            turns: BTreeMap::new(),
        });
        broken.count += 1;
        let in_turn = broken.turns.entry(turn).or_default();
        *in_turn += 1;
        if *in_turn == 1 {
            println!("  BROKEN  {}: {text}", promise.sentence());
        }
    }

    /// What was broken so far.
    pub fn all(&self) -> BTreeMap<Promise, Broken> {
        self.inner().broken.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_keep_first_detail_and_count_by_turn() {
        let findings = Findings::new();
        findings.turn("a");
        findings.add(Promise::Livez, "one");
        findings.turn("b");
        findings.add(Promise::Livez, "two");
        findings.add(Promise::Livez, "three");
        let all = findings.all();
        let livez = &all[&Promise::Livez];
        assert_eq!((livez.count, livez.turns["a"], livez.turns["b"]), (3, 1, 2));
        assert!(livez.first.ends_with("a: one"), "{}", livez.first);
    }
}
