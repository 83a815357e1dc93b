//! Denied requests: reason, message, and the grant that would allow them.
//!
//! The guest gets a `wasi:http` error code, the operator one log line with YAML to paste, and the caller can read the
//! last refusal to attach it to a failure.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use wasmtime_wasi_http::Error;

use crate::net::destination::Destination;

/// Why a request was refused. A closed set: it is a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// No grant names the host.
    Host,
    /// The host is granted, but not this port.
    Port,
    /// Host and port are granted, but not this scheme.
    Scheme,
    /// The destination is granted, but not this method.
    Method,
    /// The address is loopback, link-local or worse, and not allowed.
    Address,
    /// A placeholder could not be filled.
    Placeholder,
    /// The URL is none that a request could go to.
    Url,
    /// The server's certificate is not trusted.
    Certificate,
    /// The server demands a client certificate, or refuses the granted one.
    ClientCertificate,
}

impl RefusalReason {
    /// The reason as a metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Port => "port",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Address => "address",
            Self::Placeholder => "placeholder",
            Self::Url => "url",
            Self::Certificate => "certificate",
            Self::ClientCertificate => "client_certificate",
        }
    }

    /// What the guest gets.
    pub fn error(self) -> Error {
        match self {
            Self::Host | Self::Port | Self::Scheme | Self::Method | Self::Placeholder => Error::HttpRequestDenied,
            Self::Address => Error::DestinationIpProhibited,
            Self::Url => Error::HttpRequestUriInvalid,
            Self::Certificate | Self::ClientCertificate => Error::TlsCertificateError,
        }
    }
}

/// A refused request. Contains no header value, no body, no query and no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why, as a closed set.
    pub reason: RefusalReason,
    /// Where to; none when that cannot be said.
    pub destination: Option<Destination>,
    /// Why, in words, and what to do about it.
    pub message: String,
    /// The entry for `grants.http` or `grants.secrets` (the message says which) that would allow it, if one would.
    pub yaml: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// For how long the same refusal is not logged again.
const QUIET: Duration = Duration::from_secs(60);

/// Most different refusals logged in that time: a provider that tries every host of the world must not fill the log.
const MOST: usize = 50;

/// Remembers which refusals were logged lately.
#[derive(Debug, Default)]
pub struct RefusalLog(Mutex<HashMap<(RefusalReason, Option<Destination>), Instant>>);

impl RefusalLog {
    /// Whether this refusal is to be logged now: once a minute for each reason and destination.
    pub fn admit(&self, refusal: &Refusal) -> bool {
        let now = Instant::now();
        let mut logged = self.0.lock();
        logged.retain(|_, at| now.duration_since(*at) < QUIET);
        let key = (refusal.reason, refusal.destination.clone());
        if logged.contains_key(&key) || logged.len() >= MOST {
            return false;
        }
        logged.insert(key, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::destination::{Host, Scheme};

    fn refusal(reason: RefusalReason, port: u16) -> Refusal {
        let destination = Destination {
            scheme: Scheme::Http,
            host: Host::Name("a.example".into()),
            port,
        };
        Refusal {
            reason,
            destination: Some(destination),
            message: String::new(),
            yaml: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_refusal_is_logged_once_a_minute() {
        let log = RefusalLog::default();
        assert!(log.admit(&refusal(RefusalReason::Port, 1)));
        assert!(!log.admit(&refusal(RefusalReason::Port, 1)));
        assert!(log.admit(&refusal(RefusalReason::Port, 2)));
        assert!(log.admit(&refusal(RefusalReason::Method, 1)));
        tokio::time::advance(QUIET).await;
        assert!(log.admit(&refusal(RefusalReason::Port, 1)));
    }

    #[tokio::test(start_paused = true)]
    async fn endless_new_destinations_do_not_fill_the_log() {
        let log = RefusalLog::default();
        let admitted = (1..1000)
            .filter(|port| log.admit(&refusal(RefusalReason::Port, *port)))
            .count();
        assert_eq!(admitted, MOST);
    }

    #[test]
    fn every_reason_has_its_own_label() {
        const ALL: [RefusalReason; 9] = [
            RefusalReason::Host,
            RefusalReason::Port,
            RefusalReason::Scheme,
            RefusalReason::Method,
            RefusalReason::Address,
            RefusalReason::Placeholder,
            RefusalReason::Url,
            RefusalReason::Certificate,
            RefusalReason::ClientCertificate,
        ];
        let labels: std::collections::BTreeSet<_> = ALL.iter().map(|reason| reason.label()).collect();
        assert_eq!(labels.len(), ALL.len());
    }
}
