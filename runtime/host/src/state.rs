//! State of one provider that outlives a call: entries with expiry, and locks. In memory, bounded.
//!
//! An entry costs the bytes of its key and value plus [`ENTRY_OVERHEAD`], so that many tiny entries are bounded as well. When room is
//! needed the entry closest to its expiry goes first; entries without expiry go last, the one longest unchanged first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::{Instant, timeout};

/// What the book-keeping of one entry is taken to cost, in bytes.
pub const ENTRY_OVERHEAD: u64 = 64;

/// Longest wait for a lock, whatever is requested.
pub const MAX_LOCK_WAIT: Duration = Duration::from_secs(60);

/// Most locks that can be held or waited for at the same time, and the longest name of one in bytes.
pub(super) const MAX_LOCKS: usize = 1024;
pub(super) const MAX_LOCK_NAME: usize = 512;

/// Expiries further away than this are none: a clock cannot count that far.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A stored value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The bytes.
    pub value: Vec<u8>,
    /// Grows with each change, and never repeats, not even when the entry was gone in between.
    pub version: u64,
}

/// How long an entry is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Expires after this time; none for no expiry.
    pub for_time: Option<Duration>,
    /// Whether it stays when the provider, its configuration or its secrets are replaced.
    pub over_swap: bool,
}

/// Why an entry was not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StateError {
    /// The entry is larger than all the space there is, in bytes.
    #[error("an entry may have at most {0} bytes with its key and {ENTRY_OVERHEAD} bytes of book-keeping")]
    TooLarge(u64),
    /// The entry has another version than expected.
    #[error("the entry was changed meanwhile")]
    Changed,
}

/// The order in which entries go when room is needed: by expiry, `None` last, then by version.
type Rank = (bool, Option<Instant>, u64);

#[derive(Debug)]
pub(super) struct Stored {
    value: Arc<[u8]>,
    version: u64,
    expires: Option<Instant>,
    over_swap: bool,
}

impl Stored {
    fn rank(&self) -> Rank {
        (self.expires.is_none(), self.expires, self.version)
    }

    /// How long it is still kept.
    fn keep(&self, now: Instant) -> Keep {
        Keep {
            for_time: self.expires.map(|expires| expires.saturating_duration_since(now)),
            over_swap: self.over_swap,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) by_key: HashMap<String, Stored>,
    by_rank: BTreeMap<Rank, String>,
    pub(super) bytes: u64,
    version: u64,
}

fn cost(key: &str, value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64 + ENTRY_OVERHEAD
}

impl Entries {
    fn remove(&mut self, key: &str) {
        if let Some(stored) = self.by_key.remove(key) {
            self.by_rank.remove(&stored.rank());
            self.bytes -= cost(key, &stored.value);
        }
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some((&(_, Some(expires), _), key)) = self.by_rank.first_key_value()
            && expires <= now
        {
            let key = key.clone();
            self.remove(&key);
        }
    }

    fn insert(&mut self, key: &str, value: Vec<u8>, keep: Keep, now: Instant, max: u64) -> Result<u64, StateError> {
        let cost = cost(key, &value);
        if cost > max {
            return Err(StateError::TooLarge(max));
        }
        self.remove(key);
        while self.bytes + cost > max {
            let first = self.by_rank.first_key_value().map(|(_, key)| key.clone());
            self.remove(&first.expect("bytes are only used by entries"));
        }
        self.version += 1;
        let expires = keep.for_time.filter(|time| *time < FOREVER).map(|time| now + time);
        let stored = Stored {
            value: value.into(),
            version: self.version,
            expires,
            over_swap: keep.over_swap,
        };
        self.by_rank.insert(stored.rank(), key.to_owned());
        self.by_key.insert(key.to_owned(), stored);
        self.bytes += cost;
        Ok(self.version)
    }
}

/// All state of one provider.
#[derive(Debug)]
pub struct StateStore {
    pub(super) max_bytes: u64,
    entries: Mutex<Entries>,
    pub(super) locks: Arc<Locks>,
}

impl StateStore {
    /// An empty store for at most this many bytes.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            entries: Mutex::default(),
            locks: Arc::default(),
        }
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, Entries> {
        let mut entries = self.entries.lock();
        entries.remove_expired(Instant::now());
        entries
    }

    /// The entry under this key, unless it expired.
    pub fn get(&self, key: &str) -> Option<Entry> {
        let (value, version) = {
            let entries = self.entries();
            let stored = entries.by_key.get(key)?;
            (Arc::clone(&stored.value), stored.version)
        };
        Some(Entry {
            value: value.to_vec(),
            version,
        })
    }

    /// Stores a value, replacing what is there. Answers the new version.
    pub fn put(&self, key: &str, value: Vec<u8>, keep: Keep) -> Result<u64, StateError> {
        self.entries().insert(key, value, keep, Instant::now(), self.max_bytes)
    }

    /// Stores a value if the entry still has this version (none: if there is no entry). Answers the new version.
    pub fn compare_and_swap(
        &self,
        key: &str,
        version: Option<u64>,
        value: Vec<u8>,
        keep: Keep,
    ) -> Result<u64, StateError> {
        let mut entries = self.entries();
        if entries.by_key.get(key).map(|stored| stored.version) != version {
            return Err(StateError::Changed);
        }
        entries.insert(key, value, keep, Instant::now(), self.max_bytes)
    }

    /// Forgets an entry.
    pub fn remove(&self, key: &str) {
        self.entries().remove(key);
    }

    /// The empty store of the provider that may take this one's place, for at most this many bytes. They share their locks, since calls
    /// of both run at the same time for a while, and nothing else: what the candidate is checked with must be its own.
    pub fn successor(&self, max_bytes: u64) -> Self {
        Self {
            max_bytes,
            entries: Mutex::default(),
            locks: Arc::clone(&self.locks),
        }
    }

    /// Takes over every entry that was marked to stay over a swap, unless it has one of that key itself or there is no room. The entries get
    /// new versions, in their old order.
    pub fn take_over(&self, predecessor: &Self) {
        let mut kept: Vec<(u64, String, Vec<u8>, Keep)> = {
            let (entries, now) = (predecessor.entries(), Instant::now());
            let stays = entries.by_key.iter().filter(|(_, stored)| stored.over_swap);
            stays
                .map(|(key, stored)| (stored.version, key.clone(), stored.value.to_vec(), stored.keep(now)))
                .collect()
        };
        kept.sort_unstable_by_key(|(version, ..)| *version);
        let mut entries = self.entries();
        for (version, key, value, keep) in kept {
            let fits = entries.bytes + cost(&key, &value) <= self.max_bytes;
            if fits && !entries.by_key.contains_key(&key) {
                // What fits is stored without putting anything else out.
                entries.version = entries.version.max(version);
                let stored = entries.insert(&key, value, keep, Instant::now(), self.max_bytes);
                debug_assert!(stored.is_ok(), "an entry that fits is stored");
            }
        }
    }

    /// Waits for the lock of this name, at most `wait` and at most [`MAX_LOCK_WAIT`]. None when it was not to be had. Who waits first
    /// gets it first. The lock is free again when the guard is dropped.
    pub async fn lock(&self, name: &str, wait: Duration) -> Option<OwnedGuard> {
        let ticket = Locks::ticket(&self.locks, name)?;
        let mutex = Arc::clone(&ticket.mutex);
        // A wait of zero still takes a free lock: the timeout polls the lock first.
        let held = timeout(wait.min(MAX_LOCK_WAIT), mutex.lock_owned()).await.ok()?;
        Some(OwnedGuard {
            _held: held,
            _ticket: ticket,
        })
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct OwnedGuard {
    // The order matters: the lock is given back before the ticket checks whether it has waiters.
    _held: OwnedMutexGuard<()>,
    _ticket: Ticket,
}

/// The locks with holders or waiters.
#[derive(Debug, Default)]
pub(super) struct Locks(pub(super) Mutex<HashMap<String, Arc<AsyncMutex<()>>>>);

/// A reference to a lock; the last one dropped removes it from the map.
#[derive(Debug)]
struct Ticket {
    locks: Arc<Locks>,
    name: String,
    mutex: Arc<AsyncMutex<()>>,
}

impl Locks {
    fn ticket(locks: &Arc<Self>, name: &str) -> Option<Ticket> {
        let mut map = locks.0.lock();
        if name.len() > MAX_LOCK_NAME || (map.len() >= MAX_LOCKS && !map.contains_key(name)) {
            return None;
        }
        let mutex = Arc::clone(map.entry(name.to_owned()).or_default());
        Some(Ticket {
            locks: Arc::clone(locks),
            name: name.to_owned(),
            mutex,
        })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut map = self.locks.0.lock();
        // Two are the map's and this ticket's own; each other ticket has one more, and tickets are only made under this lock.
        if Arc::strong_count(&self.mutex) == 2 {
            map.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests;
