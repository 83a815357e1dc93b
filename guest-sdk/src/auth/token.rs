//! Tokens and sessions of a cloud, kept in the host's state and shared by calls.
//!
//! ```text
//!   Token::with -> is one kept? -> the request -> refused? -> drop it, obtain another, repeat the request
//!                    no, or soon over: obtain one under a lock, so that of many calls at a time only one logs in
//! ```
//!
//! A token is renewed a little before it ends. While the cloud cannot give a new one, the old one is used until its end.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host;
use crate::http::Response;
use crate::state::{Keep, State};
use crate::types::Failure;

/// A token is renewed when a tenth of its life is left, at most this many seconds before its end (as the SDKs of AWS do).
const RENEWED_BEFORE: u64 = 300;

/// A token that is over when it is made is kept for this long all the same, in seconds: then a clock is wrong, most likely the host's, and the cloud would
/// otherwise get a login for each request.
const SHORTEST: u64 = 60;

/// How long a call waits for another one that is logging in.
const WAIT: Duration = Duration::from_secs(20);

/// A token, and how to drop it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token<T> {
    /// What the cloud gave: a text, or whatever the provider needs of a login.
    pub value: T,
    key: String,
    /// The value as it is kept.
    json: Vec<u8>,
}

/// What became of a request that carried a token, a session or a signature.
#[derive(Debug)]
pub enum Tried<R, E = Failure> {
    /// The cloud took it.
    Done(R),
    /// The cloud does not accept it any more; the call's error if another one fails too.
    Refused(E),
}

/// Makes a request with the credentials at hand, and once again with others when the cloud refuses them: of a token, a session or a
/// signature alike. `forget` returns whether there can be others.
///
/// # Errors
/// The error of `current` or `attempt`; the last refusal.
pub fn second_chance<C, R, E>(
    mut current: impl FnMut() -> Result<C, E>,
    mut forget: impl FnMut(&C) -> bool,
    mut attempt: impl FnMut(&C) -> Result<Tried<R, E>, E>,
) -> Result<R, E> {
    let mut again = true;
    loop {
        let credentials = current()?;
        let refusal = match attempt(&credentials)? {
            Tried::Done(done) => return Ok(done),
            Tried::Refused(refusal) => refusal,
        };
        if !forget(&credentials) || !std::mem::take(&mut again) {
            return Err(refusal);
        }
        crate::info!("credentials refused; trying once more with new ones");
    }
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

impl<T: Serialize + DeserializeOwned> Token<T> {
    /// The token of this name, or a new one: `obtain` gives it and when it ends, in seconds since 1970.
    ///
    /// # Errors
    /// The error of `obtain`, unless there is one left that is still good.
    pub fn cached(
        state: &State,
        name: &str,
        obtain: impl FnOnce() -> Result<(T, u64), Failure>,
    ) -> Result<Self, Failure> {
        let mut obtain = Some(obtain);
        let key = format!("token/{name}");
        let json = cached(state, name, &key, &mut || {
            let Some(obtain) = obtain.take() else {
                return Err(Failure::other("a token is obtained once in a call"));
            };
            let (value, expires_at) = obtain()?;
            let json = serde_json::to_vec(&value).map_err(|_| Failure::other("the token cannot be written as JSON"))?;
            Ok((json, expires_at))
        })?;
        // Nothing of another version of the provider is there (see `keep`), so this is a mistake of its author.
        let value = serde_json::from_slice(&json)
            .map_err(|_| Failure::other(format!("the token {name} was kept as another type")))?;
        Ok(Self { value, key, json })
    }

    /// Drops it, because the cloud refused it: the next [`cached`](Self::cached) obtains another. Another one that was kept
    /// meanwhile stays.
    pub fn forget(&self, state: &State) {
        if usable(&self.key).is_some_and(|kept| kept.json == self.json) {
            state.remove(&self.key);
        }
    }

    /// Makes a request with the token, and once again with a new one when the cloud refuses it.
    ///
    /// # Errors
    /// The error of `obtain` or `attempt`; the second refusal.
    pub fn with<R>(
        state: &State,
        name: &str,
        obtain: impl Fn() -> Result<(T, u64), Failure>,
        mut attempt: impl FnMut(&T) -> Result<Tried<R>, Failure>,
    ) -> Result<R, Failure> {
        second_chance(
            || Self::cached(state, name, &obtain),
            |token| {
                token.forget(state);
                true
            },
            |token| attempt(&token.value),
        )
    }
}

/// The token itself is a secret.
impl<T> fmt::Debug for Token<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A token as it is kept: `RENEW_AT EXPIRES_AT JSON`. Nothing from here on depends on its type, so that a component has it once.
struct Kept {
    /// Seconds since 1970.
    renew_at: u64,
    expires_at: u64,
    json: Vec<u8>,
}

impl Kept {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(3, |byte| *byte == b' ');
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        Some(Self {
            renew_at: number()?,
            expires_at: number()?,
            json: parts.next()?.into(),
        })
    }
}

/// Gives a token in JSON, and when it ends.
type Obtain<'a> = dyn FnMut() -> Result<(Vec<u8>, u64), Failure> + 'a;

fn cached(state: &State, name: &str, key: &str, obtain: &mut Obtain<'_>) -> Result<Vec<u8>, Failure> {
    if let Some(kept) = fresh(key) {
        return Ok(kept.json);
    }
    let _lock = state.lock(key, WAIT);
    if let Some(kept) = fresh(key) {
        return Ok(kept.json);
    }
    match obtain() {
        Ok((json, expires_at)) => {
            keep(key, &json, expires_at);
            Ok(json)
        }
        Err(failure) => match usable(key) {
            Some(kept) => {
                crate::warn!(
                    token = name,
                    "renewing failed, the old one is used on: {}",
                    failure.message()
                );
                Ok(kept.json)
            }
            None => Err(failure),
        },
    }
}

/// What is kept and not over.
fn usable(key: &str) -> Option<Kept> {
    let kept = Kept::parse(&host::state_get(key)?.value)?;
    (host::unix_seconds() < kept.expires_at).then_some(kept)
}

/// What is kept and need not be renewed.
fn fresh(key: &str) -> Option<Kept> {
    usable(key).filter(|kept| host::unix_seconds() < kept.renew_at)
}

fn keep(key: &str, json: &[u8], expires_at: u64) {
    let now = host::unix_seconds();
    let life = expires_at.saturating_sub(now).max(SHORTEST);
    let renew_at = now + life - (life / 10).min(RENEWED_BEFORE);
    let numbers = format!("{renew_at} {} ", (now + life));
    let value = [numbers.as_bytes(), json].concat();
    // Not over a swap: another version of the provider, or other credentials, log in again. Where it cannot be kept, each call logs in;
    // that is slow, not wrong.
    let _ = host::state_put(key, &value, Keep::at_most(Duration::from_secs(life)).wire());
}

#[cfg(test)]
mod tests;
