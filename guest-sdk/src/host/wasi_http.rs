//! Sending a request through `wasi:http`, inside a component.
//!
//! The whole exchange is synchronous: write the body in chunks, wait for the head, read to the end. The host bounds the time of
//! the call as a whole; the timeouts set here only make a slow cloud visible as such.

use std::borrow::Cow;
use std::time::Duration;

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use crate::http::{Answer, Request, TransportError, TransportErrorKind};
use crate::url::split_url;

/// The most that `blocking-write-and-flush` takes at once (its WIT text).
const WRITE_CHUNK: usize = 4096;
/// How much is requested at once while reading.
const READ_CHUNK: u64 = 64 * 1024;

/// Sends the request and reads the whole answer.
pub(crate) fn send(request: &Request, body: &[u8]) -> Result<Answer, TransportError> {
    let outgoing = head(request, body.len())?;
    let options = RequestOptions::new();
    // A little is left of the call's time, so that it ends with a failure that names what was waited for.
    let patience = Duration::from_millis(super::deadline_left() / 10 * 9).min(request.timeout);
    let timeout = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
    // A host that does not support one of them is free to refuse it; its own limits hold then.
    let _ = options.set_connect_timeout(Some(timeout));
    let _ = options.set_first_byte_timeout(Some(timeout));
    let _ = options.set_between_bytes_timeout(Some(timeout));

    let sink = outgoing.body().map_err(|()| malformed("no body"))?;
    let future = handle(outgoing, Some(options)).map_err(from_code)?;
    write(sink, body)?;

    let response = loop {
        match future.get() {
            Some(answer) => {
                break answer
                    .map_err(|()| malformed("the answer was taken twice"))?
                    .map_err(from_code)?;
            }
            None => future.subscribe().block(),
        }
    };
    let mut headers = Vec::new();
    for (name, value) in response.headers().entries() {
        // A value that is not UTF-8 is of no use here.
        if let Ok(value) = String::from_utf8(value) {
            headers.push((name, value));
        }
    }
    Ok(Answer {
        status: response.status(),
        headers,
        body: read(&response, request.limit)?,
    })
}

/// Method, URL and headers. The length is sent in advance, else the body would be sent in chunks, which some clouds refuse.
fn head(request: &Request, length: usize) -> Result<OutgoingRequest, TransportError> {
    let fields = Fields::new();
    for (name, value) in &request.headers {
        if fields.append(name, value.as_bytes()).is_err() {
            return Err(TransportError {
                kind: TransportErrorKind::Malformed,
                message: Cow::Owned(format!("the header {name} cannot be sent")),
            });
        }
    }
    if length > 0 || matches!(request.method, "POST" | "PUT" | "PATCH") {
        let _ = fields.append("content-length", length.to_string().as_bytes());
    }
    let outgoing = OutgoingRequest::new(fields);
    let url = split_url(&request.url).ok_or_else(|| malformed("no URL"))?;
    let path = match url.path {
        path if path.starts_with('/') => Cow::Borrowed(path),
        path => Cow::Owned(format!("/{path}")),
    };
    let scheme = if url.scheme == "https" {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let set = outgoing
        .set_method(&method(request.method))
        .and_then(|()| outgoing.set_scheme(Some(&scheme)))
        .and_then(|()| outgoing.set_authority(Some(url.authority)))
        .and_then(|()| outgoing.set_path_with_query(Some(&path)));
    set.map_err(|()| malformed("method or URL cannot be sent"))?;
    Ok(outgoing)
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        other => Method::Other(other.into()),
    }
}

fn write(sink: OutgoingBody, body: &[u8]) -> Result<(), TransportError> {
    if !body.is_empty() {
        let stream = sink.write().map_err(|()| malformed("no body stream"))?;
        for chunk in body.chunks(WRITE_CHUNK) {
            // A closed stream is no failure yet: the cloud may have answered early, and the answer has the reason.
            if stream.blocking_write_and_flush(chunk).is_err() {
                break;
            }
        }
    }
    match OutgoingBody::finish(sink, None) {
        // Same here: the answer carries the error.
        Ok(()) | Err(ErrorCode::HttpRequestBodySize(_)) => Ok(()),
        Err(code) => Err(from_code(code)),
    }
}

fn read(response: &IncomingResponse, limit: usize) -> Result<Vec<u8>, TransportError> {
    let body: IncomingBody = response.consume().map_err(|()| malformed("the answer has no body"))?;
    let stream = body.stream().map_err(|()| malformed("the answer has no body stream"))?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(READ_CHUNK) {
            Ok(chunk) if bytes.is_empty() => bytes = chunk,
            Ok(chunk) => bytes.extend_from_slice(&chunk),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(StreamError::LastOperationFailed(_)) => return Err(unreachable("the answer broke off")),
        }
        if bytes.len() > limit {
            return Err(TransportError::too_large(limit));
        }
    }
}

fn malformed(message: &'static str) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Malformed,
        message: Cow::Borrowed(message),
    }
}

fn unreachable(message: &'static str) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Unreachable,
        message: Cow::Borrowed(message),
    }
}

/// `wasi:http` has 39 error codes; an author needs three kinds of them, and a short text.
fn from_code(code: ErrorCode) -> TransportError {
    match code {
        ErrorCode::HttpRequestDenied => TransportError {
            kind: TransportErrorKind::Denied,
            message: Cow::Borrowed("the host refused the request"),
        },
        ErrorCode::DestinationIpProhibited => TransportError {
            kind: TransportErrorKind::Denied,
            message: Cow::Borrowed("the name resolves to an address that is not allowed"),
        },
        ErrorCode::DnsTimeout | ErrorCode::DnsError(_) => unreachable("the name cannot be resolved"),
        ErrorCode::DestinationNotFound | ErrorCode::DestinationUnavailable | ErrorCode::DestinationIpUnroutable => {
            unreachable("no way to the destination")
        }
        ErrorCode::ConnectionRefused => unreachable("connection refused"),
        ErrorCode::ConnectionTerminated | ErrorCode::HttpResponseIncomplete => unreachable("the connection broke"),
        ErrorCode::ConnectionTimeout => unreachable("no connection in time"),
        ErrorCode::ConnectionReadTimeout | ErrorCode::ConnectionWriteTimeout | ErrorCode::HttpResponseTimeout => {
            unreachable("no answer in time")
        }
        ErrorCode::ConnectionLimitReached => unreachable("too many connections"),
        ErrorCode::TlsProtocolError | ErrorCode::TlsAlertReceived(_) => unreachable("TLS failed"),
        ErrorCode::TlsCertificateError => unreachable("the certificate is not trusted"),
        ErrorCode::HttpResponseBodySize(_) => malformed("the answer is larger than the host allows"),
        ErrorCode::HttpRequestBodySize(_) => malformed("the request is larger than the host allows"),
        ErrorCode::InternalError(Some(message)) => TransportError {
            kind: TransportErrorKind::Unreachable,
            message: Cow::Owned(message),
        },
        ErrorCode::HttpProtocolError => unreachable("the answer is no HTTP"),
        _ => unreachable("no answer"),
    }
}
