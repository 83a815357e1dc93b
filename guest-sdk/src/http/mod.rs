//! A small blocking HTTP client for the cloud's API.
//!
//! `cloud.http().base(&config.endpoint).bearer(&token)` makes the client, `.get("/v1/machines").query("limit", 500).send()?.json()?`
//! sends a request. An unsuccessful answer is a [`Failure`] of the right case already (see [`crate::failure`]), redirects are answers
//! like any other, and only destinations that the operator granted are reached.

pub mod classify;
pub mod form;
pub mod items;
pub mod openstack;
pub mod url;
pub mod xml;

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::host;
use crate::keys::Placeholder;
use crate::url::{encode_into, split_url};
use crate::{failure, types::Failure};

/// Largest answer that is read unless [`Http::limit`] is set. A page of 500 machines is a quarter of a megabyte.
pub const DEFAULT_LIMIT: usize = 16 * 1024 * 1024;

/// How long to wait for a connection, for the first byte and between bytes, unless [`Http::timeout`] is set.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Pages after which [`paginate`] gives up: a cloud may return page tokens without end.
const MAX_PAGES: usize = 10_000;

/// A client: where requests go, and what all of them carry. Cheap to make; connections are pooled by the host.
#[derive(Debug, Clone)]
pub struct Http {
    base: String,
    headers: Vec<(Cow<'static, str>, String)>,
    timeout: Duration,
    limit: usize,
}

impl Http {
    pub(crate) fn new() -> Self {
        Self {
            base: String::new(),
            headers: Vec::new(),
            timeout: DEFAULT_TIMEOUT,
            limit: DEFAULT_LIMIT,
        }
    }

    /// The URL that every request's path is appended to; a `/` at its end does not count.
    pub fn base(mut self, url: &str) -> Self {
        self.base = url.trim_end_matches('/').into();
        self
    }

    /// A header for every request.
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// `Authorization: Bearer` for every request, with a secret that the host fills in: it never enters the component.
    pub fn bearer(self, secret: &Placeholder) -> Self {
        self.header("authorization", format!("Bearer {secret}"))
    }

    /// How long to wait for a connection, for the first byte, and between bytes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The largest answer that is read, in bytes; a larger one is a failure.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Begins a request. `target` is a path under [`base`](Self::base), or a whole URL.
    pub fn request(&self, method: &'static str, target: &str) -> Request {
        let mut url = String::with_capacity(self.base.len() + target.len());
        if !target.starts_with("https://") && !target.starts_with("http://") {
            url.push_str(&self.base);
        }
        url.push_str(target);
        Request {
            method,
            url,
            headers: self.headers.clone(),
            body: Ok(Vec::new()),
            timeout: self.timeout,
            limit: self.limit,
        }
    }

    /// Begins a GET.
    pub fn get(&self, target: &str) -> Request {
        self.request("GET", target)
    }

    /// Begins a POST.
    pub fn post(&self, target: &str) -> Request {
        self.request("POST", target)
    }

    /// Begins a PUT.
    pub fn put(&self, target: &str) -> Request {
        self.request("PUT", target)
    }

    /// Begins a PATCH.
    pub fn patch(&self, target: &str) -> Request {
        self.request("PATCH", target)
    }

    /// Begins a DELETE.
    pub fn delete(&self, target: &str) -> Request {
        self.request("DELETE", target)
    }
}

/// A request that is being written.
#[derive(Debug)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(Cow<'static, str>, String)>,
    pub(crate) body: Result<Vec<u8>, Failure>,
    pub(crate) timeout: Duration,
    pub(crate) limit: usize,
}

impl Request {
    /// Adds a header.
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds a query parameter, percent-encoded.
    pub fn query(mut self, name: &str, value: impl ToString) -> Self {
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        encode_into(&mut self.url, name);
        self.url.push('=');
        encode_into(&mut self.url, &value.to_string());
        self
    }

    /// Adds a query parameter if there is a value.
    pub fn query_opt(self, name: &str, value: Option<impl ToString>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// The body, and its content type.
    pub fn body(mut self, content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        self.body = Ok(body.into());
        self.header("content-type", content_type)
    }

    /// A JSON body.
    pub fn json<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        self.body = serde_json::to_vec(body)
            .map_err(|mistake| Failure::other(format!("the request's body cannot be written as JSON: {mistake}")));
        self.header("content-type", "application/json")
    }

    /// Sends it. Anything but a 2xx answer is a failure, by the table in [`crate::failure`].
    ///
    /// # Errors
    /// That, or `denied` when the operator did not grant the destination, or `unavailable` when there was no answer.
    pub fn send(self) -> Result<Response, Failure> {
        self.send_any()?.success()
    }

    /// Sends it; 404 and 410 are none.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `not-found`.
    pub fn send_optional(self) -> Result<Option<Response>, Failure> {
        let response = self.send_any()?;
        if matches!(response.status, 404 | 410) {
            Ok(None)
        } else {
            response.success().map(Some)
        }
    }

    /// Sends it; every answer is a success, whatever its status.
    ///
    /// # Errors
    /// `denied` when the operator did not grant the destination, `unavailable` when there was no answer.
    pub fn send_any(mut self) -> Result<Response, Failure> {
        let body = std::mem::replace(&mut self.body, Ok(Vec::new()))?;
        if split_url(&self.url).is_none() {
            return Err(Failure::invalid(format!(
                "{}: this is no http or https URL",
                self.name()
            )));
        }
        match host::send(&self, &body) {
            Ok(answer) => Ok(Response {
                request: self.name(),
                status: answer.status,
                headers: answer.headers,
                body: answer.body,
            }),
            Err(error) => Err(error.into_failure(&self.name())),
        }
    }

    /// Method and URL for messages. Without the query, which is long and may carry a signature.
    pub(crate) fn name(&self) -> String {
        let url = self.url.split('?').next().unwrap_or_default();
        format!("{} {url}", self.method)
    }
}

/// An answer, read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub(crate) request: String,
    /// Status code.
    pub status: u16,
    /// Headers as they came.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name, in whatever case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The value of a cookie that the answer sets, to be sent back as `NAME=VALUE` in a `Cookie` header.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        let mut cookies = self
            .headers
            .iter()
            .filter(|(key, _)| key.eq_ignore_ascii_case("set-cookie"));
        cookies.find_map(|(_, cookie)| {
            let (known, value) = cookie.split(';').next()?.split_once('=')?;
            (known.trim_ascii() == name).then(|| value.trim_ascii())
        })
    }

    /// When the cloud sent it by its own clock, in seconds since 1970: its difference to [`Context::now`](crate::Context::now) is how wrong the host's is.
    pub fn date(&self) -> Option<u64> {
        self.header("date").and_then(failure::http_date)
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// `other`, naming the request and the place, when it is not what was expected.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let body = &mut serde_json::Deserializer::from_slice(&self.body);
        serde_path_to_error::deserialize(body).map_err(|mistake| {
            Failure::other(format!(
                "{}: the answer is not what was expected: {mistake}",
                self.request
            ))
        })
    }

    /// The body as text; what is no UTF-8 is replaced.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    /// Itself when the status is 2xx.
    ///
    /// # Errors
    /// The failure for its status, by the table in [`crate::failure`].
    pub fn success(self) -> Result<Self, Failure> {
        if (200..300).contains(&self.status) {
            Ok(self)
        } else {
            Err(failure::from_response(&self, host::unix_seconds()))
        }
    }
}

/// Collects all pages: `page` gets the token of the page (none for the first) and gives its items and the token of the next.
///
/// ```
/// # use cloudwit_guest_sdk::{http::paginate, Failure};
/// # fn ask(_: Option<&str>) -> Result<(Vec<u32>, Option<String>), Failure> { Ok((vec![1, 2], None)) }
/// let machines = paginate(|token| ask(token))?;
/// # assert_eq!(machines, [1, 2]);
/// # Ok::<(), Failure>(())
/// ```
///
/// # Errors
/// The first failure of `page`, or `other` when a page names itself as the next one or they do not end.
pub fn paginate<T>(
    mut page: impl FnMut(Option<&str>) -> Result<(Vec<T>, Option<String>), Failure>,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    each_page::<Failure>(|token| {
        let (items, next) = page(token)?;
        all.extend(items);
        Ok(next)
    })?;
    Ok(all)
}

/// The same where `page` keeps what it needs of the items itself, or fails in the cloud's own words.
///
/// # Errors
/// As [`paginate`].
pub fn each_page<E: From<Failure>>(mut page: impl FnMut(Option<&str>) -> Result<Option<String>, E>) -> Result<(), E> {
    let mut token: Option<String> = None;
    for _ in 0..MAX_PAGES {
        match page(token.as_deref())?.filter(|next| !next.is_empty()) {
            None => return Ok(()),
            next if next == token => break,
            next => token = next,
        }
    }
    Err(Failure::other("the cloud's list does not end: the page token repeats, or there are over 10,000 pages").into())
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TransportError {
    pub(crate) kind: TransportErrorKind,
    /// The cause in a few words.
    pub(crate) message: Cow<'static, str>,
}

/// What kind of no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportErrorKind {
    /// The host refused: not granted.
    Denied,
    /// The request cannot be sent as it is.
    Malformed,
    /// No connection, no answer in time, or a broken one.
    Unreachable,
}

impl TransportError {
    /// The answer is over the request's limit.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the answer is larger than {limit} bytes");
        Self {
            kind: TransportErrorKind::Malformed,
            message: Cow::Owned(message),
        }
    }

    pub(crate) fn into_failure(self, request: &str) -> Failure {
        let mut text = format!("{request}: {}", self.message);
        match self.kind {
            TransportErrorKind::Denied => {
                text.push_str("; the destination is not granted: the controller's log has the grant to add");
                Failure::denied(text)
            }
            TransportErrorKind::Malformed => Failure::other(text),
            TransportErrorKind::Unreachable => Failure::unavailable(text),
        }
    }
}

/// What the host brought back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[cfg(test)]
mod tests;
