//! Span of one HTTP request of a guest, from the request to the head of the response.
//!
//! It hangs below the span of the provider's call. Its attributes are a closed set (docs/reference/tracing.md, named as OpenTelemetry names
//! them): method, host, port, status, the kind of error, the wait for a turn. Path, query, headers and bodies are never in it: providers put
//! ids and clouds put secrets there. No `traceparent` is sent to the cloud, whose requests may be signed over all their headers.

use std::time::{Duration, Instant};

use http::Method;
use tracing::Span;
use tracing::field::Empty;
use wasmtime_wasi_http::Error;

use crate::egress::metrics::method_class;
use crate::net::http_error::HttpFailure;

/// A span for a request with this method, below the current span.
pub(crate) fn begin(method: &Method) -> Span {
    tracing::info_span!(
        "http_request",
        http.request.method = method_class(method),
        server.address = Empty,
        server.port = Empty,
        http.response.status_code = Empty,
        "error.type" = Empty,
        waited_ms = Empty,
    )
}

/// The current request may go there.
pub(crate) fn goes_to(host: &str, port: u16) {
    let span = Span::current();
    span.record("server.address", host);
    span.record("server.port", port);
}

/// The current request does not leave: `refused` by the grants, or `throttled` by the budget.
pub(crate) fn not_sent(why: &'static str) {
    Span::current().record("error.type", why);
}

/// Notes how long this took as the current request's wait for its place or turn, after it waited so long before. Answers the sum too.
pub(crate) async fn spent_waiting<T>(before: Duration, turn: impl Future<Output = T>) -> (T, Duration) {
    let began = Instant::now();
    let turn = turn.await;
    let waited = before + began.elapsed();
    Span::current().record("waited_ms", whole_milliseconds(waited));
    (turn, waited)
}

/// The current request has its answer, or none.
pub(crate) fn answered(answer: &Result<reqwest::Response, HttpFailure>) {
    let span = Span::current();
    match answer {
        Ok(response) => span.record("http.response.status_code", response.status().as_u16()),
        Err(failed) => span.record("error.type", error_type(failed)),
    };
}

fn whole_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What kind of error it is; a closed set.
pub(super) fn error_type(failed: &HttpFailure) -> &'static str {
    match failed {
        HttpFailure::Prohibited(_) => "refused",
        HttpFailure::Untrusted(..) | HttpFailure::ClientCertificate(_) => "tls",
        HttpFailure::Other(error) => match error {
            Error::DnsError { .. } | Error::DnsTimeout => "dns",
            Error::TlsProtocolError | Error::TlsCertificateError | Error::TlsAlertReceived { .. } => "tls",
            Error::ConnectionTimeout | Error::ConnectionReadTimeout | Error::HttpResponseTimeout => "timeout",
            Error::ConnectionRefused
            | Error::ConnectionTerminated
            | Error::DestinationUnavailable
            | Error::DestinationIpUnroutable => "connection",
            _ => "protocol",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_errors_are_distinguished() {
        let kinds = [
            (HttpFailure::Untrusted("why".into(), true), "tls"),
            (HttpFailure::Other(Error::ConnectionTimeout), "timeout"),
            (HttpFailure::Other(Error::HttpResponseTimeout), "timeout"),
            (HttpFailure::Other(Error::ConnectionRefused), "connection"),
            (HttpFailure::Other(Error::HttpProtocolError), "protocol"),
        ];
        for (failed, kind) in kinds {
            assert_eq!(error_type(&failed), kind);
        }
    }
}
