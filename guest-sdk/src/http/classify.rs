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

/// The cases of a [`Failure`] that an error code can mean; each is explained in `wit/v0.1/common.wit`.
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
        let mut text = format!("{}: {code}", response.request);
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
        assert_eq!(failure(400, &[], "Gone"), Failure::NotFound(text("Gone")));
        assert_eq!(failure(400, &[], "AuthFailure"), Failure::Denied(text("AuthFailure")));
        assert_eq!(failure(500, &[], "Bad"), Failure::Invalid(text("Bad")));
        assert_eq!(failure(400, &[], "Taken"), Failure::Conflict(text("Taken")));
        assert_eq!(failure(400, &[], "Broken"), Failure::Unavailable(text("Broken")));
        assert_eq!(
            failure(400, &[], "SlowDown"),
            Failure::rate_limited(None, text("SlowDown"))
        );
        assert_eq!(failure(404, &[], "Odd"), Failure::Other(text("Odd")));
    }

    #[test]
    fn of_several_codes_that_fit_the_first_counts_and_only_stars_stand_for_more() {
        assert_eq!(CODES.case("SlowButWrong"), Some(Case::RateLimited));
        assert_eq!(CODES.case("Auth"), Some(Case::Denied));
        assert_eq!(CODES.case("GoneToo"), None);
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
            let expected = case.failure(None, "POST https://cloud.test/: New: words");
            assert_eq!(failure(status, &[], "New"), expected);
        }
        assert!(matches!(failure(429, &[], "New"), Failure::RateLimited(_)));
    }

    #[test]
    fn the_clouds_advice_on_when_to_come_back_is_kept() {
        let advice = [("retry-after", "7")];
        for (status, code) in [(400, "SlowDown"), (503, "New"), (429, "New"), (503, "Broken")] {
            match failure(status, &advice, code) {
                Failure::RateLimited(throttle) => assert_eq!(throttle.after_ms, Some(7_000), "{status} {code}"),
                other => panic!("{status} {code}: {other:?}"),
            }
        }
        assert!(matches!(failure(500, &advice, "New"), Failure::Unavailable(_)));
        assert!(matches!(failure(503, &advice, "Bad"), Failure::Invalid(_)));
    }

    #[test]
    fn a_code_without_words_is_enough() {
        let response = Response {
            request: "GET x".into(),
            status: 400,
            headers: Vec::new(),
            body: Vec::new(),
        };
        assert_eq!(CODES.failure(&response, "Gone", ""), Failure::not_found("GET x: Gone"));
    }
}
