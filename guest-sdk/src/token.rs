//! Tokens and sessions that a cloud hands out for a while: kept in the host's state, so that many calls share one.
//!
//! ```text
//!   Token::with -> is one kept? -> the request -> refused? -> forget it, obtain another, the request once again
//!                    no, or soon over: obtain one under a lock, so that of many calls at a time only one logs in
//! ```
//!
//! A token is renewed a little before it ends. While the cloud cannot give a new one, the old one is used until its end.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::host;
use crate::http::Response;
use crate::state::{Keep, State};
use crate::types::Failure;

/// A token is renewed when a tenth of its life is left, at most this many seconds before its end (as the SDKs of AWS do).
const RENEWED_BEFORE: u64 = 300;

/// A token that is over when it is made is kept for this long all the same, in seconds: then a clock is wrong, most likely ours, and the cloud would
/// otherwise see a login for each request.
const SHORTEST: u64 = 60;

/// How long a call waits for another one that is logging in.
const WAIT: Duration = Duration::from_secs(20);

/// A token, and how to forget it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token<T> {
    /// What the cloud gave: a text, or whatever the provider needs of a login.
    pub value: T,
    key: String,
}

/// As it is kept.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    value: T,
    /// Seconds since 1970.
    renew_at: u64,
    expires_at: u64,
}

/// What became of a request that carried a token.
#[derive(Debug)]
pub enum Tried<R> {
    /// The cloud took the token.
    Done(R),
    /// The cloud does not take the token any more; what the call says if another one does not help either.
    Refused(Failure),
}

impl Tried<Response> {
    /// Refused when the status is 401; every other answer is done, whatever its status.
    ///
    /// # Errors
    /// Those of the request: pass what [`Request::send_any`](crate::http::Request::send_any) gave.
    pub fn by_status(answer: Result<Response, Failure>) -> Result<Self, Failure> {
        let response = answer?;
        if response.status != 401 {
            return Ok(Self::Done(response));
        }
        response.success().map_or_else(
            |failure| Ok(Self::Refused(failure)),
            |response| Ok(Self::Done(response)),
        )
    }
}

impl<T: Serialize + DeserializeOwned + PartialEq> Token<T> {
    /// The token of this name, or a new one: `obtain` gives it and when it ends, in seconds since 1970.
    ///
    /// # Errors
    /// What `obtain` says, unless there is one left that is still good.
    pub fn cached(
        state: &State,
        name: &str,
        obtain: impl FnOnce() -> Result<(T, u64), Failure>,
    ) -> Result<Self, Failure> {
        let key = ["token/", name].concat();
        if let Some(kept) = fresh::<T>(state, &key) {
            return Ok(kept.into_token(key));
        }
        let _lock = state.lock(&key, WAIT);
        if let Some(kept) = fresh::<T>(state, &key) {
            return Ok(kept.into_token(key));
        }
        match obtain() {
            Ok((value, expires_at)) => Ok(keep(state, key, value, expires_at)),
            Err(failure) => match usable::<T>(state, &key) {
                Some(kept) => {
                    crate::warn!(
                        token = name,
                        "renewing failed, the old one is used on: {}",
                        failure.message()
                    );
                    Ok(kept.into_token(key))
                }
                None => Err(failure),
            },
        }
    }

    /// Forgets it, because the cloud refused it: the next [`cached`](Self::cached) obtains another. Another one that was kept meanwhile stays.
    pub fn forget(&self, state: &State) {
        if usable::<T>(state, &self.key).is_some_and(|kept| kept.value == self.value) {
            state.remove(&self.key);
        }
    }

    /// Makes a request with the token, and once again with a new one when the cloud refuses it.
    ///
    /// # Errors
    /// What `obtain` or `attempt` says; the second refusal.
    pub fn with<R>(
        state: &State,
        name: &str,
        obtain: impl Fn() -> Result<(T, u64), Failure>,
        mut attempt: impl FnMut(&T) -> Result<Tried<R>, Failure>,
    ) -> Result<R, Failure> {
        let token = Self::cached(state, name, &obtain)?;
        if let Tried::Done(done) = attempt(&token.value)? {
            return Ok(done);
        }
        token.forget(state);
        let token = Self::cached(state, name, &obtain)?;
        match attempt(&token.value)? {
            Tried::Done(done) => Ok(done),
            Tried::Refused(failure) => {
                token.forget(state);
                Err(failure)
            }
        }
    }
}

impl<T> Kept<T> {
    fn into_token(self, key: String) -> Token<T> {
        Token { value: self.value, key }
    }
}

/// The token itself is a secret.
impl<T> fmt::Debug for Token<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What is kept and not over.
fn usable<T: DeserializeOwned>(state: &State, key: &str) -> Option<Kept<T>> {
    let kept = state.get::<Kept<T>>(key)?.value;
    (host::unix_seconds() < kept.expires_at).then_some(kept)
}

/// What is kept and need not be renewed.
fn fresh<T: DeserializeOwned>(state: &State, key: &str) -> Option<Kept<T>> {
    usable(state, key).filter(|kept| host::unix_seconds() < kept.renew_at)
}

fn keep<T: Serialize>(state: &State, key: String, value: T, expires_at: u64) -> Token<T> {
    let now = host::unix_seconds();
    let life = expires_at.saturating_sub(now).max(SHORTEST);
    let kept = Kept {
        value,
        renew_at: now + life - (life / 10).min(RENEWED_BEFORE),
        expires_at: now + life,
    };
    // Where it cannot be kept, each call logs in; that is slow, not wrong.
    state.put(&key, &kept, Keep::at_most(Duration::from_secs(life)));
    kept.into_token(key)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
