//! How an API host answers: its last success, its errors.

use http::StatusCode;
use jiff::Timestamp;

use crate::egress::request_span::error_type;
use crate::net::http_error::HttpFailure;

/// How an API host has answered since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAnswers {
    /// Requests that left.
    pub requests: u64,
    /// Of these, those that ended with an error.
    pub errors: u64,
    /// Errors since the last success.
    pub errors_in_a_row: u64,
    /// When it last answered as it should.
    pub last_success: Option<Timestamp>,
    /// When it last did not, and how: `503`, `timeout`.
    pub last_error: Option<(Timestamp, String)>,
}

impl HostAnswers {
    /// A request has ended.
    pub(super) fn note(&mut self, answer: Result<StatusCode, &HttpFailure>, now: Timestamp) {
        self.requests += 1;
        let Some(error) = error(answer) else {
            self.last_success = Some(now);
            self.errors_in_a_row = 0;
            return;
        };
        self.errors += 1;
        self.errors_in_a_row += 1;
        self.last_error = Some((now, error));
    }
}

/// What makes an answer an error of the host, not of the request: 404 and 409 are answers, a refused client is an error.
fn error(answer: Result<StatusCode, &HttpFailure>) -> Option<String> {
    let status = match answer {
        Ok(status) => status,
        Err(failed) => return Some(error_type(failed).to_owned()),
    };
    let refuses = matches!(
        status,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
    );
    (refuses || status.is_server_error()).then(|| status.as_u16().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_counted_until_the_next_success() {
        let (mut answers, at) = (HostAnswers::default(), |second| Timestamp::from_second(second).unwrap());
        answers.note(Ok(StatusCode::OK), at(1));
        answers.note(Ok(StatusCode::SERVICE_UNAVAILABLE), at(2));
        answers.note(Err(&HttpFailure::Untrusted("why".into(), true)), at(3));
        let failing = HostAnswers {
            requests: 3,
            errors: 2,
            errors_in_a_row: 2,
            last_success: Some(at(1)),
            last_error: Some((at(3), "tls".into())),
        };
        assert_eq!(answers, failing);
        answers.note(Ok(StatusCode::NOT_FOUND), at(4));
        assert_eq!(
            (answers.errors, answers.errors_in_a_row, answers.last_success),
            (2, 0, Some(at(4)))
        );
        for refusal in [
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::TOO_MANY_REQUESTS,
        ] {
            answers.note(Ok(refusal), at(5));
        }
        assert_eq!(
            (answers.errors_in_a_row, answers.last_error),
            (3, Some((at(5), "429".into())))
        );
    }
}
