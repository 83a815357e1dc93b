//! From a cloud's error codes to [`Failure`]s.
//!
//! Which case a code is decides when the host tries again, so a provider says it once, as a table. A code that is not in it is judged by the HTTP status, as
//! in [`crate::failure`].
//!
//! ```
//! use cloudwit_guest_sdk::classify::{Case, Codes};
//!
//! const CODES: Codes = Codes::new(&[
//!     ("InvalidInstanceID.NotFound", Case::NotFound),
//!     ("Throttling*", Case::RateLimited),
//!     ("DependencyViolation", Case::Conflict),
//! ]);
//! assert_eq!(CODES.case("ThrottlingException"), Some(Case::RateLimited));
//! assert_eq!(CODES.case("Other"), None);
//! ```

use std::time::Duration;

use crate::failure::retry_after;
use crate::host;
use crate::http::Response;
use crate::types::Failure;

/// The cases of a [`Failure`] that an error code can mean; each is explained in `wit/v0.1/types.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Something the call needs does not exist.
    NotFound,
    /// Credentials or permissions do not suffice.
    Denied,
    /// The request can never succeed as it stands.
    Invalid,
    /// Somebody else changes the same thing.
    Conflict,
    /// The cloud failed on its side.
    Unavailable,
    /// The cloud asks to slow down.
    RateLimited,
    /// Anything else.
    Other,
}

impl Case {
    /// The failure of this case. `after` counts where the cloud asks to slow down.
    pub fn failure(self, after: Option<Duration>, message: impl Into<String>) -> Failure {
        let message = message.into();
        match self {
            Self::NotFound => Failure::NotFound(message),
            Self::Denied => Failure::Denied(message),
            Self::Invalid => Failure::Invalid(message),
            Self::Conflict => Failure::Conflict(message),
            Self::Unavailable => Failure::Unavailable(message),
            Self::RateLimited => Failure::rate_limited(after, message),
            Self::Other => Failure::Other(message),
        }
    }
}

/// What the error codes of a cloud mean.
#[derive(Debug, Clone, Copy)]
pub struct Codes(&'static [(&'static str, Case)]);

impl Codes {
    /// A code that ends with `*` stands for all that begin so; of several that fit the first counts.
    pub const fn new(codes: &'static [(&'static str, Case)]) -> Self {
        Self(codes)
    }

    /// What a code means; none when it is not in the table.
    pub fn case(&self, code: &str) -> Option<Case> {
        let fits = |known: &str| match known.strip_suffix('*') {
            Some(start) => code.starts_with(start),
            None => known == code,
        };
        self.0.iter().find(|(known, _)| fits(known)).map(|(_, case)| *case)
    }

    /// The failure for an answer with this code and text. `Retry-After` is kept where the case is to slow down, and makes `unavailable` such a case.
    pub fn failure(&self, response: &Response, code: &str, message: &str) -> Failure {
        let after = retry_after(response, host::unix_seconds());
        let mut text = [response.request.as_str(), ": ", code].concat();
        if !message.is_empty() {
            text.push_str(": ");
            text.push_str(message);
        }
        match self.case(code) {
            Some(Case::Unavailable) if after.is_some() => Failure::rate_limited(after, text),
            Some(case) => case.failure(after, text),
            None if after.is_some() && matches!(response.status, 429 | 503) => Failure::rate_limited(after, text),
            None => Failure::from_status(response.status, text),
        }
    }
}
