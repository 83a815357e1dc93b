//! Maps errors of the HTTP client to error codes of `wasi:http`.
//!
//! Only closed sets of words and the texts of TLS and the operating system get out of here: the texts of the client itself can contain
//! the URL, and with it whatever the provider put there.

use std::error::Error as StdError;
use std::io;

use rustls::{AlertDescription, CertificateError};
use wasmtime_wasi_http::Error;

use crate::net::connect_deadline::ConnectTimedOut;
use crate::net::resolver::{LookupFailed, Prohibited};

/// Why there is no response.
#[derive(Debug)]
pub enum HttpFailure {
    /// The name leads to addresses that are not allowed.
    Prohibited(Prohibited),
    /// The certificate is not trusted: why, and whether other authorities could change that.
    Untrusted(String, bool),
    /// The server demands a client certificate, or refuses the one that it was presented: its TLS alert.
    ClientCertificate(&'static str),
    /// Anything else.
    Other(Error),
}

/// Why the client has no response.
pub fn without_response(error: &reqwest::Error) -> HttpFailure {
    if let Some(prohibited) = find::<Prohibited>(error) {
        return HttpFailure::Prohibited(*prohibited);
    }
    if let Some(rustls::Error::InvalidCertificate(why)) = find::<rustls::Error>(error) {
        let unknown = matches!(why, CertificateError::UnknownIssuer | CertificateError::BadSignature);
        return HttpFailure::Untrusted(certificate(why), unknown);
    }
    if let Some(rustls::Error::AlertReceived(alert)) = find::<rustls::Error>(error)
        && let Some(name) = about_client_certificate(*alert)
    {
        return HttpFailure::ClientCertificate(name);
    }
    HttpFailure::Other(other(error))
}

/// Why a body ended early.
pub fn in_body(error: &reqwest::Error) -> Error {
    match other(error) {
        Error::HttpProtocolError => Error::HttpResponseIncomplete,
        known => known,
    }
}

fn other(error: &reqwest::Error) -> Error {
    if let Some(error) = find::<Error>(error) {
        return repeat(error);
    }
    if let Some(LookupFailed(error)) = find::<LookupFailed>(error) {
        return Error::DnsError {
            rcode: Some(error.to_string()),
            info_code: None,
        };
    }
    if find::<ConnectTimedOut>(error).is_some() || (error.is_timeout() && error.is_connect()) {
        return Error::ConnectionTimeout;
    }
    if let Some(error) = find::<rustls::Error>(error) {
        return tls(error);
    }
    if find::<hyper::Error>(error).is_some_and(hyper::Error::is_incomplete_message) {
        return Error::ConnectionTerminated;
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => Error::ConnectionRefused,
        Some(io::ErrorKind::TimedOut) => Error::ConnectionTimeout,
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => Error::DestinationIpUnroutable,
        Some(
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof,
        ) => Error::ConnectionTerminated,
        _ if error.is_connect() => Error::DestinationUnavailable,
        _ => Error::HttpProtocolError,
    }
}

/// An error that our own body gave to the client and that comes back. Errors cannot be copied, so the ones that occur are named.
fn repeat(error: &Error) -> Error {
    match error {
        Error::HttpRequestBodySize(limit) => Error::HttpRequestBodySize(*limit),
        Error::ConnectionTerminated => Error::ConnectionTerminated,
        _ => Error::HttpProtocolError,
    }
}

/// The name of an alert by which a server says that the certificate of its client is missing or unacceptable (RFC 8446, 6.2).
fn about_client_certificate(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::CertificateRequired => "certificate_required",
        AlertDescription::BadCertificate => "bad_certificate",
        AlertDescription::UnsupportedCertificate => "unsupported_certificate",
        AlertDescription::CertificateRevoked => "certificate_revoked",
        AlertDescription::CertificateExpired => "certificate_expired",
        AlertDescription::CertificateUnknown => "certificate_unknown",
        AlertDescription::UnknownCA => "unknown_ca",
        AlertDescription::AccessDenied => "access_denied",
        _ => return None,
    })
}

fn tls(error: &rustls::Error) -> Error {
    match error {
        rustls::Error::AlertReceived(alert) => {
            let text = match alert {
                AlertDescription::Unknown(_) => None,
                known => Some(format!("{known:?}")),
            };
            Error::TlsAlertReceived {
                alert_id: Some(u8::from(*alert)),
                alert_message: text,
            }
        }
        _ => Error::TlsProtocolError,
    }
}

/// rustls's own words, except for the most common case, whose words say little.
fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::Other(other) => other.to_string(),
        CertificateError::UnknownIssuer => "it was issued by an authority that is not trusted here".into(),
        other => other.to_string(),
    }
}

/// The first error of this type among the causes. `io::Error` hides what it wraps from `source()`, so it is looked into.
fn find<'e, T: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match inside {
            Some(inside) => Some(inside as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_inside_io_errors_too() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::Expired);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, inner));
        assert!(matches!(
            find::<rustls::Error>(&wrapped),
            Some(rustls::Error::InvalidCertificate(_))
        ));
        assert!(find::<Prohibited>(&wrapped).is_none());
    }

    #[test]
    fn an_alert_is_passed_on_with_number_and_name() {
        let error = tls(&rustls::Error::AlertReceived(AlertDescription::HandshakeFailure));
        let Error::TlsAlertReceived {
            alert_id: Some(40),
            alert_message: Some(text),
        } = error
        else {
            panic!("{error:?}")
        };
        assert_eq!(text, "HandshakeFailure");
    }
}
