//! The bearer tokens that the API takes, and when each was used: what a rotated secret is watched by.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Requests that came with one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenUse {
    /// How many.
    pub requests: u64,
    /// When the first one came.
    pub first: Instant,
    /// When the last one came.
    pub last: Instant,
}

/// Which tokens are taken, and all that were sent, taken or not.
pub(crate) struct Tokens(Mutex<Inner>);

struct Inner {
    taken: Vec<String>,
    uses: BTreeMap<String, TokenUse>,
}

impl Tokens {
    pub(crate) fn new(token: String) -> Self {
        Self(Mutex::new(Inner {
            taken: vec![token],
            uses: BTreeMap::new(),
        }))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // No method leaves it half changed, so a panic of another thread does not matter.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, tokens: Vec<String>) {
        self.inner().taken = tokens;
    }

    pub(crate) fn uses(&self) -> BTreeMap<String, TokenUse> {
        self.inner().uses.clone()
    }

    /// Whether a request with this token is let in; counts it.
    pub(crate) fn admit(&self, token: Option<&str>) -> bool {
        let Some(token) = token else { return false };
        let (mut inner, now) = (self.inner(), Instant::now());
        let used = inner.uses.entry(token.to_owned()).or_insert(TokenUse {
            requests: 0,
            first: now,
            last: now,
        });
        used.requests += 1;
        used.last = now;
        inner.taken.iter().any(|taken| taken == token)
    }
}
