//! State that outlives a call: a small cache in the host, shared by all calls of the provider.
//!
//! It is a cache: entries vanish on restart, when they expire and when space is needed. What must survive belongs into the cloud.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::imports::cloudwit::provider::state::{Keep as WireKeep, StateError};
use crate::host;
use crate::types::Failure;

/// How long an entry is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    expires: Option<Duration>,
    over_swap: bool,
}

impl Keep {
    /// Until there is no space, or this provider is replaced.
    pub const WHILE_LOADED: Self = Self {
        expires: None,
        over_swap: false,
    };

    /// At most this long, and not beyond a replacement of the provider, its configuration or secrets.
    pub const fn at_most(duration: Duration) -> Self {
        Self {
            expires: Some(duration),
            over_swap: false,
        }
    }

    /// Also when the provider, its configuration or its secrets are replaced: for values that do not depend on them, in a
    /// format that another version can read.
    pub const fn over_swap(mut self) -> Self {
        self.over_swap = true;
        self
    }

    pub(crate) fn wire(self) -> WireKeep {
        WireKeep {
            for_ms: self
                .expires
                .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            over_swap: self.over_swap,
        }
    }
}

/// A value and the version under which it can be swapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// The value.
    pub value: T,
    /// Grows with each change.
    pub version: u64,
}

/// A lock, held until this is dropped or the call ends.
#[derive(Debug)]
#[must_use = "the lock is gone when this is dropped"]
pub struct Lock {
    _held: host::Held,
}

/// The provider's state. From [`Context::state`](crate::Context::state). Values are kept as JSON.
#[derive(Debug, Clone, Copy)]
pub struct State(pub(crate) ());

impl State {
    /// The value under this key; none when there is none, or it is not of this type (an older version wrote it).
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<Stored<T>> {
        let entry = host::state_get(key)?;
        let value = serde_json::from_slice(&entry.value).ok()?;
        Some(Stored {
            value,
            version: entry.version,
        })
    }

    /// Stores a value. Answers whether it was kept: one that is too large is not, and as this is a cache that is no failure.
    pub fn put<T: Serialize + ?Sized>(&self, key: &str, value: &T, keep: Keep) -> bool {
        serde_json::to_vec(value).is_ok_and(|value| host::state_put(key, &value, keep.wire()).is_ok())
    }

    /// Stores a value if the entry still has this version (none: if there is no entry).
    ///
    /// # Errors
    /// `conflict` when it has another, `other` when the value is too large.
    pub fn compare_and_swap<T: Serialize + ?Sized>(
        &self,
        key: &str,
        version: Option<u64>,
        value: &T,
        keep: Keep,
    ) -> Result<u64, Failure> {
        let value = serde_json::to_vec(value).map_err(|error| Failure::other(format!("cannot write JSON: {error}")))?;
        host::state_swap(key, version, &value, keep.wire()).map_err(|error| match error {
            StateError::Changed => Failure::conflict(format!("the state {key:?} was changed by another call")),
            StateError::TooLarge(limit) => {
                Failure::other(format!("the state {key:?} is over the limit of {limit} bytes"))
            }
        })
    }

    /// Removes a value.
    pub fn remove(&self, key: &str) {
        host::state_remove(key);
    }

    /// Waits for the lock of this name, at most so long.
    pub fn lock(&self, name: &str, wait: Duration) -> Option<Lock> {
        host::lock(name, u32::try_from(wait.as_millis()).unwrap_or(u32::MAX)).map(|held| Lock { _held: held })
    }

    /// The value under this key, made and stored if there is none. Of several calls at the same time one makes it; the others wait
    /// for it, at most so long, and then make their own.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn get_or_make<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        keep: Keep,
        wait: Duration,
        make: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(stored) = self.get(key) {
            return Ok(stored.value);
        }
        let _lock = self.lock(key, wait);
        if let Some(stored) = self.get(key) {
            return Ok(stored.value);
        }
        let value = make()?;
        self.put(key, &value, keep);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::testing::FakeHost;
    use crate::types::FailureKind;

    #[test]
    fn a_value_is_made_once_and_then_found() {
        let _host = FakeHost::new();
        let state = Context::new().state();
        let token = |made: &str| {
            state.get_or_make("token", Keep::WHILE_LOADED, Duration::from_secs(1), || {
                Ok(made.to_owned())
            })
        };
        assert_eq!(token("first"), Ok("first".into()));
        assert_eq!(token("second"), Ok("first".into()));
        state.remove("token");
        assert_eq!(token("third"), Ok("third".into()));
    }

    #[test]
    fn a_failed_make_stores_nothing_and_frees_the_lock() {
        let _host = FakeHost::new();
        let state = Context::new().state();
        let failed = state.get_or_make::<u32>("k", Keep::WHILE_LOADED, Duration::ZERO, || Err(Failure::other("no")));
        assert_eq!(failed, Err(Failure::other("no")));
        assert_eq!(state.get::<u32>("k"), None);
        assert!(state.lock("k", Duration::ZERO).is_some());
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let _host = FakeHost::new();
        let state = Context::new().state();
        let held = state.lock("k", Duration::ZERO);
        assert!(held.is_some() && state.lock("k", Duration::ZERO).is_none());
        drop(held);
        assert!(state.lock("k", Duration::ZERO).is_some());
    }

    #[test]
    fn a_swap_needs_the_version_that_was_read() {
        let _host = FakeHost::new();
        let state = Context::new().state();
        let version = state
            .compare_and_swap("k", None, &1, Keep::at_most(Duration::from_secs(9)).over_swap())
            .unwrap();
        assert_eq!(state.get::<u32>("k"), Some(Stored { value: 1, version }));
        state
            .compare_and_swap("k", Some(version), &2, Keep::WHILE_LOADED)
            .unwrap();
        let late = state.compare_and_swap("k", Some(version), &3, Keep::WHILE_LOADED);
        assert!(
            matches!(
                late,
                Err(Failure {
                    kind: FailureKind::Conflict,
                    ..
                })
            ),
            "{late:?}"
        );
        assert_eq!(
            state.get::<String>("k"),
            None,
            "a value of another type is as good as none"
        );
    }
}
