//! Requests and responses for tools that show, record or answer them. Nothing of it is in the way of a process that has no [`Wire`].
//!
//! A tool sees a request as the guest wrote it, with `{secret NAME}` where the host fills a secret in, and a response without the secrets that the
//! host knows. What a cloud gives out as a secret, such as a session token, is not known to the host: that is for the tool to hide.

use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use reqwest::Url;
use wasmtime_wasi_http::Error;

use crate::egress::request_body::Collected;
use crate::net::wire::{Tap, Wire, WireRequest, WireResponse};
use crate::secrets::Secrets;
use crate::secrets::placeholders::Placeholders;

/// What is seen of one request.
pub(super) struct Seen<'a> {
    wire: &'a dyn Wire,
    secrets: &'a Secrets,
    request: WireRequest,
    began: Instant,
}

impl<'a> Seen<'a> {
    /// The request, where somebody looks. `headers` and `body` are those of the guest, nothing filled in.
    pub fn of(
        tap: &'a Tap,
        secrets: &'a Secrets,
        placeholders: &Placeholders,
        (method, url): (&Method, &Url),
        headers: &HeaderMap,
        body: &Collected,
    ) -> Option<Self> {
        let wire = tap.0.as_deref()?;
        let text = |bytes: &[u8]| shown(secrets, &placeholders.named(bytes));
        let request = WireRequest {
            method: method.clone(),
            url: url.clone(),
            headers: named(headers, text),
            body: text(body.start()),
        };
        Some(Self {
            wire,
            secrets,
            request,
            began: Instant::now(),
        })
    }

    /// The answer that the cloud is not asked for.
    pub fn answer(&self) -> Option<Result<Response<Full<Bytes>>, Error>> {
        let answer = self.wire.answer(&self.request)?;
        self.wire.saw(&self.request, Ok(&answer), self.began.elapsed());
        Some(response(answer))
    }

    /// There was no response.
    pub fn failed(&self, why: &impl fmt::Display) {
        let why = shown(self.secrets, why.to_string().as_bytes());
        self.wire.saw(&self.request, Err(&why), self.began.elapsed());
    }

    /// There was a response; its body is read whole.
    pub async fn answered<B>(&self, response: Response<B>) -> Result<Response<Full<Bytes>>, Error>
    where
        B: http_body::Body<Data = Bytes, Error = Error>,
    {
        let (head, body) = response.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                self.failed(&error);
                return Err(error);
            }
        };
        let seen = WireResponse {
            status: head.status.as_u16(),
            headers: named(&head.headers, |value| shown(self.secrets, value)),
            body: shown(self.secrets, &body),
        };
        self.wire.saw(&self.request, Ok(&seen), self.began.elapsed());
        Ok(Response::from_parts(head, Full::new(body)))
    }
}

fn response(answer: WireResponse) -> Result<Response<Full<Bytes>>, Error> {
    let unfit = |what: &dyn fmt::Display| Error::InternalError(Some(format!("the answer cannot be used: {what}")));
    let mut response = Response::new(Full::new(Bytes::from(answer.body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).map_err(|error| unfit(&error))?;
    for (name, value) in &answer.headers {
        let name = name.parse::<HeaderName>().map_err(|error| unfit(&error))?;
        let value = value.parse::<HeaderValue>().map_err(|error| unfit(&error))?;
        response.headers_mut().append(name, value);
    }
    Ok(response)
}

fn named(headers: &HeaderMap, text: impl Fn(&[u8]) -> String) -> Vec<(String, String)> {
    let named = headers.iter();
    named
        .map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())))
        .collect()
}

fn shown(secrets: &Secrets, bytes: &[u8]) -> String {
    secrets.redactor.redact(String::from_utf8_lossy(bytes).into_owned())
}
