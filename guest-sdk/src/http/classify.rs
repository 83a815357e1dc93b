//! From a cloud's error codes to [`Failure`]s.
//!
//! Which case a code is decides when the host tries again, so a provider defines it once, as a table. A code that is not in it is judged by the HTTP status, as
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
use crate::types::{Failure, FailureKind};

/// The cases of a [`Failure`] that an error code can mean; each is explained in `wit/v0.1/common.wit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Something the call needs does not exist.
    NotFound,
    /// Something else has the requested name, address or port.
    AlreadyExists,
    /// Credentials or permissions do not suffice.
    Denied,
    /// The request can never succeed as it stands.
    Invalid,
    /// Something else changes the same thing.
    Conflict,
    /// A quota, a pool or the cloud's capacity is used up.
    Exhausted,
    /// A value is beyond what the cloud allows.
    OutOfRange,
    /// The cloud's objects are not in the state that the call needs.
    FailedPrecondition,
    /// The cloud began and aborted.
    Aborted,
    /// The cloud failed on its side.
    Unavailable,
    /// The cloud throttles requests.
    RateLimited,
    /// Anything else.
    Other,
}

impl Case {
    /// The failure of this case. `after` counts where the cloud throttles.
    pub fn failure(self, after: Option<Duration>, message: impl Into<String>) -> Failure {
        let kind = match self {
            Self::RateLimited => return Failure::rate_limited(after, message),
            Self::NotFound => FailureKind::NotFound,
            Self::AlreadyExists => FailureKind::AlreadyExists,
            Self::Denied => FailureKind::Denied,
            Self::Invalid => FailureKind::Invalid,
            Self::Conflict => FailureKind::Conflict,
            Self::Exhausted => FailureKind::Exhausted,
            Self::OutOfRange => FailureKind::OutOfRange,
            Self::FailedPrecondition => FailureKind::FailedPrecondition,
            Self::Aborted => FailureKind::Aborted,
            Self::Unavailable => FailureKind::Unavailable,
            Self::Other => FailureKind::Other,
        };
        Failure::new(kind, message)
    }
}

/// The failure for an answer to `what` that is not `whose` (`Lab's API`): that of a proxy, or a login page. Its 404 is no denial of anything.
pub fn not_the_cloud(response: &Response, what: &str, whose: &str) -> Failure {
    let text = format!("{what}: something answers {} that is not {whose}", response.status);
    match response.status {
        401 | 403 => Failure::denied(text),
        429 => Failure::rate_limited(retry_after(response, host::unix_seconds()), text),
        _ => Failure::unavailable(text),
    }
}

/// What the error codes of a cloud mean.
#[derive(Debug, Clone, Copy)]
pub struct Codes(&'static [(&'static str, Case)]);

impl Codes {
    /// A code that ends with `*` matches all that begin so, one that begins with `*` all that end so, one with both all that have it; of several that
    /// fit the first counts.
    pub const fn new(codes: &'static [(&'static str, Case)]) -> Self {
        Self(codes)
    }

    /// What a code means; none when it is not in the table.
    pub fn case(&self, code: &str) -> Option<Case> {
        let fits = |known: &str| match (known.strip_prefix('*'), known.strip_suffix('*')) {
            (Some(part), Some(_)) => code.contains(part.trim_end_matches('*')),
            (Some(end), None) => code.ends_with(end),
            (None, Some(start)) => code.starts_with(start),
            (None, None) => known == code,
        };
        self.0.iter().find(|(known, _)| fits(known)).map(|(_, case)| *case)
    }

    /// What the code means with which an operation in the cloud has ended. Never one of those cases over which the token of a `pending` answer is kept: the
    /// operation would be checked again and again, and nothing new begun.
    pub fn case_of_ended(&self, code: &str) -> Case {
        match self.case(code) {
            Some(Case::Conflict | Case::RateLimited | Case::Aborted | Case::Unavailable) | None => Case::Other,
            Some(case) => case,
        }
    }

    /// The failure for an answer with this code and text. `Retry-After` is kept where the case is to slow down, and makes `unavailable` such a case.
    pub fn failure(&self, response: &Response, code: &str, message: &str) -> Failure {
        let after = retry_after(response, host::unix_seconds());
        let mut text = format!("{}: {code}", response.request);
        if !message.is_empty() {
            text.push_str(": ");
            text.push_str(message);
        }
        let failure = match self.case(code) {
            Some(Case::Unavailable) if after.is_some() => Failure::rate_limited(after, text),
            Some(case) => case.failure(after, text),
            None if after.is_some() && matches!(response.status, 429 | 503) => Failure::rate_limited(after, text),
            None => Failure::from_status(response.status, text),
        };
        failure.with_code(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: Codes = Codes::new(&[
        ("Gone", Case::NotFound),
        ("Auth*", Case::Denied),
        ("Bad", Case::Invalid),
        ("Taken", Case::Conflict),
        ("Broken", Case::Unavailable),
        ("Slow*", Case::RateLimited),
        ("Odd", Case::Other),
        ("SlowButWrong", Case::Invalid),
        ("*.None", Case::NotFound),
        ("*Quota*", Case::Exhausted),
    ]);

    fn failure(status: u16, headers: &[(&str, &str)], code: &str) -> Failure {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let response = Response {
            request: "POST https://cloud.test/".into(),
            status,
            headers,
            body: Vec::new(),
        };
        CODES.failure(&response, code, "words")
    }

    #[test]
    fn the_code_counts_more_than_the_status() {
        let text = |code: &str| format!("POST https://cloud.test/: {code}: words");
        assert_eq!(
            failure(400, &[], "Gone"),
            Failure::not_found(text("Gone")).with_code("Gone")
        );
        assert_eq!(
            failure(400, &[], "AuthFailure"),
            Failure::denied(text("AuthFailure")).with_code("AuthFailure")
        );
        assert_eq!(failure(500, &[], "Bad"), Failure::invalid(text("Bad")).with_code("Bad"));
        assert_eq!(
            failure(400, &[], "Taken"),
            Failure::conflict(text("Taken")).with_code("Taken")
        );
        assert_eq!(
            failure(400, &[], "Broken"),
            Failure::unavailable(text("Broken")).with_code("Broken")
        );
        assert_eq!(
            failure(400, &[], "SlowDown"),
            Failure::rate_limited(None, text("SlowDown")).with_code("SlowDown")
        );
        assert_eq!(failure(404, &[], "Odd"), Failure::other(text("Odd")).with_code("Odd"));
    }

    #[test]
    fn first_matching_code_wins_and_only_stars_match_more() {
        assert_eq!(CODES.case("SlowButWrong"), Some(Case::RateLimited));
        assert_eq!(CODES.case("Auth"), Some(Case::Denied));
        assert_eq!(CODES.case("GoneToo"), None);
        assert_eq!(CODES.case("Disk.None"), Some(Case::NotFound));
        assert_eq!(CODES.case("Disk.NoneToo"), None);
        assert_eq!(CODES.case("DiskQuotaReached"), Some(Case::Exhausted));
        assert_eq!(CODES.case("Authority.None"), Some(Case::Denied));
        assert_eq!(CODES.case(""), None);
    }

    #[test]
    fn an_unknown_code_is_judged_by_the_status() {
        for (status, case) in [
            (404, Case::NotFound),
            (403, Case::Denied),
            (409, Case::Conflict),
            (400, Case::Invalid),
            (502, Case::Unavailable),
        ] {
            let expected = case
                .failure(None, "POST https://cloud.test/: New: words")
                .with_code("New");
            assert_eq!(failure(status, &[], "New"), expected);
        }
        assert_eq!(failure(429, &[], "New").kind, FailureKind::RateLimited);
    }

    #[test]
    fn the_clouds_advice_on_when_to_come_back_is_kept() {
        let advice = [("retry-after", "7")];
        for (status, code) in [(400, "SlowDown"), (503, "New"), (429, "New"), (503, "Broken")] {
            match failure(status, &advice, code) {
                Failure {
                    kind: FailureKind::RateLimited,
                    retry_after,
                    ..
                } => assert_eq!(retry_after, Some(7_000), "{status} {code}"),
                other => panic!("{status} {code}: {other:?}"),
            }
        }
        assert_eq!(failure(500, &advice, "New").kind, FailureKind::Unavailable);
        assert_eq!(failure(503, &advice, "Bad").kind, FailureKind::Invalid);
    }

    #[test]
    fn what_is_not_the_cloud_denies_nothing() {
        let failure = |status| {
            let response = Response {
                request: "GET x".into(),
                status,
                headers: Vec::new(),
                body: b"<html>".to_vec(),
            };
            not_the_cloud(&response, "GetThing", "Lab's API")
        };
        let text = "GetThing: something answers 404 that is not Lab's API";
        assert_eq!(failure(404), Failure::unavailable(text));
        assert_eq!(failure(200).kind, FailureKind::Unavailable);
        assert_eq!(failure(403).kind, FailureKind::Denied);
        assert_eq!(failure(429).kind, FailureKind::RateLimited);
    }

    #[test]
    fn a_code_without_words_is_enough() {
        let response = Response {
            request: "GET x".into(),
            status: 400,
            headers: Vec::new(),
            body: Vec::new(),
        };
        assert_eq!(
            CODES.failure(&response, "Gone", ""),
            Failure::not_found("GET x: Gone").with_code("Gone")
        );
    }
}
