//! How the cloud's answers become [`Failure`]s.
//!
//! The case of a failure decides when the host tries again, so it is chosen here, once, from the HTTP status and `Retry-After`:
//!
//! | answer | failure |
//! | ------ | ------- |
//! | 404, 410 | `not-found` |
//! | 401, 403 | `denied` |
//! | 409, 412 | `conflict` |
//! | 400, 422 | `invalid` |
//! | 429, and 503 with `Retry-After` | `rate-limited` |
//! | 408, 423 to 425, other 5xx, no answer | `unavailable` |
//! | refused by the host | `denied` |
//! | anything else | `other` |
//!
//! Other kinds come from the cloud's own codes: [`crate::classify`].

use std::time::{Duration, UNIX_EPOCH};

use crate::http::Response;
use crate::types::{Failure, FailureKind};

/// Bytes of an answer's body that are quoted in a failure.
const QUOTED: usize = 300;

/// Constructors of the kinds that carry nothing but a text.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident $kind:ident)+) => {
        impl Failure {
            $($(#[$doc])* pub fn $name(message: impl Into<String>) -> Self {
                Self::new(FailureKind::$kind, message)
            })+
        }
    };
}

kinds! {
    /// Something the call needs does not exist.
    not_found NotFound
    /// Something else has the requested name, address or port.
    already_exists AlreadyExists
    /// Credentials or permissions do not suffice.
    denied Denied
    /// A request that can never succeed as it stands.
    invalid Invalid
    /// The same object was changed concurrently.
    conflict Conflict
    /// A quota, a pool or the cloud's capacity is used up.
    exhausted Exhausted
    /// A value is beyond what the cloud allows.
    out_of_range OutOfRange
    /// The cloud's objects are not in the state that the call needs.
    failed_precondition FailedPrecondition
    /// The cloud began and aborted.
    aborted Aborted
    /// The cloud cannot be reached or failed on its side.
    unavailable Unavailable
    /// Another controller manages this object.
    implemented_elsewhere ImplementedElsewhere
    /// Anything that fits nowhere else.
    other Other
}

impl Failure {
    /// A failure of this kind, without the cloud's code.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: None,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Not finished: the host calls again after this time and hands the token back. At most 4 KiB of token.
    pub fn pending(after: Duration, token: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            retry_after: Some(millis(after)),
            ..Self::new(FailureKind::Pending(token.into()), message)
        }
    }

    /// The cloud throttles requests.
    pub fn rate_limited(after: Option<Duration>, message: impl Into<String>) -> Self {
        Self {
            retry_after: after.map(millis),
            ..Self::new(FailureKind::RateLimited, message)
        }
    }

    /// The failure for an HTTP status, by the table in [`crate::failure`]; for answers that carry the status of each part.
    pub fn from_status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            404 | 410 => FailureKind::NotFound,
            401 | 403 => FailureKind::Denied,
            409 | 412 => FailureKind::Conflict,
            400 | 422 => FailureKind::Invalid,
            429 => FailureKind::RateLimited,
            408 | 423..=425 | 500.. => FailureKind::Unavailable,
            _ => FailureKind::Other,
        };
        Self::new(kind, message)
    }

    /// The same failure with the cloud's own code; an empty one is none.
    pub fn with_code(mut self, code: &str) -> Self {
        self.code = (!code.is_empty()).then(|| code.into());
        self
    }

    /// Whether it is `not-found`.
    pub fn is_not_found(&self) -> bool {
        self.kind == FailureKind::NotFound
    }

    /// Whether the next request would most likely fail alike: its sender is refused, or the cloud is unavailable or throttles.
    pub fn is_shared(&self) -> bool {
        matches!(
            self.kind,
            FailureKind::Denied | FailureKind::RateLimited | FailureKind::Unavailable
        )
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same failure with what was being done in front of its text: `creating the load balancer: ...`.
    pub fn context(mut self, doing: &str) -> Self {
        self.message.insert_str(0, ": ");
        self.message.insert_str(0, doing);
        self
    }
}

/// Milliseconds, at most what fits the contract (49 days).
pub(crate) fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// The failure for an answer that is none of the successes, by the table above. `now` is in seconds since 1970 and only used
/// for a `Retry-After` that is a date, when the answer carries no `Date` of its own.
pub(crate) fn from_response(response: &Response, now: u64) -> Failure {
    let text = describe(response);
    let after = retry_after(response, now);
    match response.status {
        429 | 503 if after.is_some() => Failure::rate_limited(after, text),
        status => Failure::from_status(status, text),
    }
}

/// `Retry-After`: a number of seconds or a date. Anything else counts as no advice.
pub(crate) fn retry_after(response: &Response, now: u64) -> Option<Duration> {
    let value = response.header("retry-after")?.trim_ascii();
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    // Two times of the cloud's own clock: a wrong clock on the host then does no harm.
    let from = response.header("date").and_then(http_date).unwrap_or(now);
    http_date(value).map(|until| Duration::from_secs(until.saturating_sub(from)))
}

/// An HTTP date in seconds since 1970.
pub(crate) fn http_date(text: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(text.trim_ascii()).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// `GET https://cloud/v1/x: 404 Not Found: the body's beginning`.
fn describe(response: &Response) -> String {
    let mut text = String::with_capacity(120);
    text.push_str(&response.request);
    text.push_str(": ");
    text.push_str(&response.status.to_string());
    if let Some(name) = status_name(response.status) {
        text.push(' ');
        text.push_str(name);
    }
    let body = beginning(&response.body).trim_ascii();
    if !body.is_empty() {
        text.push_str(": ");
        // One line: it ends up in Events and log lines.
        text.extend(body.chars().map(|c| if c.is_control() { ' ' } else { c }));
        if response.body.len() > QUOTED {
            text.push_str("...");
        }
    }
    text
}

/// The first part of a text; what is no UTF-8 ends it.
fn beginning(body: &[u8]) -> &str {
    let body = body.get(..QUOTED).unwrap_or(body);
    match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) => body
            .get(..error.valid_up_to())
            .and_then(|valid| std::str::from_utf8(valid).ok())
            .unwrap_or_default(),
    }
}

fn status_name(status: u16) -> Option<&'static str> {
    Some(match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        Response {
            request: "GET https://cloud.test/v1".into(),
            status,
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
            body: body.into(),
        }
    }

    fn failure(status: u16) -> Failure {
        from_response(&response(status, &[], ""), 0)
    }

    #[test]
    fn the_status_decides_the_case() {
        for status in [404, 410] {
            assert!(failure(status).kind == FailureKind::NotFound, "{status}");
        }
        for status in [401, 403] {
            assert!(failure(status).kind == FailureKind::Denied, "{status}");
        }
        for status in [409, 412] {
            assert!(failure(status).kind == FailureKind::Conflict, "{status}");
        }
        for status in [400, 422] {
            assert!(failure(status).kind == FailureKind::Invalid, "{status}");
        }
        for status in [408, 500, 502, 503, 504, 599] {
            assert!(failure(status).kind == FailureKind::Unavailable, "{status}");
        }
        for status in [301, 402, 405, 418] {
            assert!(failure(status).kind == FailureKind::Other, "{status}");
        }
        assert_eq!(
            failure(429),
            Failure::rate_limited(None, "GET https://cloud.test/v1: 429 Too Many Requests")
        );
    }

    #[test]
    fn retry_after_in_seconds_or_as_a_date_is_kept() {
        let after = |status, headers: &[(&str, &str)]| match from_response(&response(status, headers, ""), 784_111_777)
        {
            Failure {
                kind: FailureKind::RateLimited,
                retry_after,
                ..
            } => retry_after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after(429, &[("Retry-After", "7")]), Some(7_000));
        assert_eq!(after(503, &[("retry-after", "0")]), Some(0));
        assert_eq!(
            after(429, &[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]),
            Some(10_000)
        );
        assert_eq!(
            after(
                429,
                &[
                    ("date", "Sun, 06 Nov 1994 08:49:40 GMT"),
                    ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")
                ]
            ),
            Some(7_000)
        );
        assert_eq!(
            after(429, &[("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT")]),
            Some(10_000)
        );
        assert_eq!(after(429, &[("retry-after", "Sun Nov  6 08:49:47 1994")]), Some(10_000));
        assert_eq!(after(429, &[("retry-after", "soon")]), None);
    }

    #[test]
    fn text_names_request_status_and_answer_start_in_one_line() {
        let failure = from_response(&response(409, &[], " {\"message\":\n\"busy\"} "), 0);
        assert_eq!(
            failure.message(),
            "GET https://cloud.test/v1: 409 Conflict: {\"message\": \"busy\"}"
        );
        let long = from_response(&response(500, &[], &"x".repeat(1000)), 0);
        assert!(long.message().ends_with("xxx...") && long.message().len() < 400);
    }

    #[test]
    fn context_is_put_in_front_and_the_case_stays() {
        let failure = Failure::pending(Duration::from_secs(5), "lb-1", "building").context("load balancer web");
        assert_eq!(failure.kind, FailureKind::Pending("lb-1".into()));
        assert_eq!(
            (failure.retry_after, failure.message.as_str()),
            (Some(5_000), "load balancer web: building")
        );
    }
}
