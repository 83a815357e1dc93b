//! Requests and responses for tools that show, record or answer them; no cost without a [`Wire`].
//!
//! A tool sees a request as the guest wrote it, with `{secret NAME}` where the host fills a secret in, and a response without the secrets that the
//! host knows. What a cloud gives out as a secret, such as a session token, is unknown to the host: the tool has to hide it.

use std::fmt;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use reqwest::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::egress::Stopped;
use crate::egress::request_body::Collected;
use crate::net::wire::{Tap, Wire, WireRequest, WireResponse};
use crate::secrets::Secrets;
use crate::secrets::placeholders::Placeholders;

/// What is seen of one request.
pub(super) struct ObservedRequest<'a> {
    wire: &'a dyn Wire,
    secrets: &'a Secrets,
    placeholders: &'a Placeholders,
    request: WireRequest,
    began: Instant,
}

impl<'a> ObservedRequest<'a> {
    /// The request, where there is a tool. `headers` are those of the guest, nothing filled in.
    pub fn of(
        tap: &'a Tap,
        secrets: &'a Secrets,
        placeholders: &'a Placeholders,
        (method, url): (&Method, &Url),
        headers: &HeaderMap,
    ) -> Option<Self> {
        let wire = tap.0.as_deref()?;
        let request = WireRequest {
            method: method.clone(),
            url: url.clone(),
            headers: named(headers, |value| shown(secrets, &placeholders.named(value))),
            body: String::new(),
        };
        Some(Self {
            wire,
            secrets,
            placeholders,
            request,
            began: Instant::now(),
        })
    }

    /// The answer to send it in the place of the cloud's, if the tool has one. `body` is the guest's, nothing filled in.
    pub fn answer(&mut self, body: &Collected) -> Option<Result<Response<WasiBody>, Error>> {
        self.request.body = shown(self.secrets, &self.placeholders.named(body.start()));
        self.wire.answer(&self.request).map(response)
    }

    /// What came of it. The body of a response is read whole.
    pub async fn ended(self, outcome: Result<Response<WasiBody>, Stopped>) -> Result<Response<WasiBody>, Stopped> {
        let whole = match outcome {
            Ok(response) => whole(response).await.map_err(Stopped::Failed),
            Err(stopped) => Err(stopped),
        };
        let took = self.began.elapsed();
        match whole {
            Ok(response) => {
                let seen = WireResponse {
                    status: response.status().as_u16(),
                    headers: named(response.headers(), |value| shown(self.secrets, value)),
                    body: shown(self.secrets, response.body()),
                };
                self.wire.saw(&self.request, Ok(&seen), took);
                Ok(response.map(boxed))
            }
            Err(stopped) => {
                let why = shown(self.secrets, stopped.to_string().as_bytes());
                self.wire.saw(&self.request, Err(&why), took);
                Err(stopped)
            }
        }
    }
}

async fn whole(response: Response<WasiBody>) -> Result<Response<Bytes>, Error> {
    let (head, body) = response.into_parts();
    Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
}

fn boxed(body: Bytes) -> WasiBody {
    Full::new(body).map_err(|never| match never {}).boxed_unsync()
}

fn response(answer: WireResponse) -> Result<Response<WasiBody>, Error> {
    let unfit = |what: &dyn fmt::Display| Error::InternalError(Some(format!("the answer cannot be used: {what}")));
    let mut response = Response::new(boxed(Bytes::from(answer.body)));
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
