//! One call to a service of the cloud: endpoint, token, JSON, pages, failures.
//!
//! `api.get(Endpoint::Network, "/v2.0/routers/1").read(|json| ...)` finds the endpoint in the catalog, sends the token with the request and
//! reads the answer. A token that is refused is renewed once: it may have been revoked, or Keystone's keys were rotated.

pub mod wire;

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::openstack::{Complaint, complaint, next_page};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde_json::Value;

use crate::api::wire::{Fields, Object, Read, parse};
pub use crate::auth::catalog::Endpoint;
use crate::auth::{Identity, Session};
use crate::config::Global;

/// Nova's version that gives a server's flavor by its name (Pike, 2017).
const COMPUTE_VERSION: (&str, &str) = ("X-OpenStack-Nova-API-Version", "2.47");

/// Nova's version in which volumes that several servers may have are attached (Queens, 2018).
pub const SHARED_VOLUMES: (&str, &str) = (COMPUTE_VERSION.0, "2.60");

/// Cinder's version that lets attached volumes grow (Pike, 2017).
const VOLUME_VERSION: (&str, &str) = ("OpenStack-API-Version", "volume 3.42");

/// The way to all services.
#[derive(Debug)]
pub struct Api {
    http: Http,
    identity: Identity,
}

impl Api {
    /// For this configuration. No network.
    ///
    /// # Errors
    /// `denied` when a secret is needed and not granted.
    pub fn new(global: &Global, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            http: context.http(),
            identity: Identity::new(global, context)?,
        })
    }

    /// Begins a GET. The path begins where [`Endpoint`] defines it.
    pub fn get(&self, endpoint: Endpoint, path: &str) -> Call<'_> {
        self.call("GET", endpoint, path)
    }

    /// Begins a POST.
    pub fn post(&self, endpoint: Endpoint, path: &str) -> Call<'_> {
        self.call("POST", endpoint, path)
    }

    /// Begins a PUT.
    pub fn put(&self, endpoint: Endpoint, path: &str) -> Call<'_> {
        self.call("PUT", endpoint, path)
    }

    /// Begins a DELETE.
    pub fn delete(&self, endpoint: Endpoint, path: &str) -> Call<'_> {
        self.call("DELETE", endpoint, path)
    }

    fn call(&self, method: &'static str, endpoint: Endpoint, path: &str) -> Call<'_> {
        Call {
            api: self,
            method,
            endpoint,
            path: path.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// All pages of a list: `collection` is the key of its items, such as `ports`. `call` is a GET.
    ///
    /// # Errors
    /// The first failure; `unavailable` when a page cannot be read.
    pub fn list<T>(
        &self,
        call: Call<'_>,
        collection: &str,
        read: impl Fn(&Value) -> Read<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut items = Vec::new();
        self.pages(call, collection, &mut |item| {
            items.push(read(item)?);
            Ok(())
        })?;
        Ok(items)
    }

    /// Hands each item of all pages on, to keep only what is needed. Gives the number of pages.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn pages(
        &self,
        call: Call<'_>,
        collection: &str,
        each: &mut dyn FnMut(&Value) -> Read<()>,
    ) -> Result<usize, Failure> {
        let mut pages = 0;
        each_page::<Failure>(|query| {
            pages += 1;
            let mut page = call.clone();
            if let Some(query) = query {
                let path = page.path.split('?').next().unwrap_or_default();
                page.path = format!("{path}?{query}");
            }
            page.read(|json| {
                let Value::Array(items) = json.need_field(collection)? else {
                    return Err(format!("\"{collection}\" is no list"));
                };
                items.iter().try_for_each(&mut *each)?;
                Ok(next_page(json, collection))
            })
        })?;
        Ok(pages)
    }

    /// Where the services are, for the probe.
    pub fn session(&self) -> Result<Session, Failure> {
        self.identity.session()
    }

    fn send(&self, call: &Call<'_>) -> Result<Response, Failure> {
        self.identity.with_session(|session| self.send_with(call, session))
    }

    fn send_with(&self, call: &Call<'_>, session: &Session) -> Result<Response, Failure> {
        let url = format!("{}{}", session.catalog.url(call.endpoint)?, call.path);
        let mut request = self
            .http
            .request(call.method, &url)
            .header("x-auth-token", session.token.as_str())
            .header("accept", "application/json");
        let version = match call.endpoint {
            Endpoint::Compute => Some(COMPUTE_VERSION),
            Endpoint::BlockStorage => Some(VOLUME_VERSION),
            _ => None,
        };
        let is_own = |name: &str| call.headers.iter().any(|(own, _)| *own == name);
        if let Some((name, value)) = version.filter(|(name, _)| !is_own(name)) {
            request = request.header(name, value);
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value.as_str());
        }
        if let Some(body) = &call.body {
            request = request.body("application/json", body.as_str());
        }
        request.send_any()
    }
}

/// A call that is being written.
#[derive(Debug, Clone)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call<'a> {
    api: &'a Api,
    method: &'static str,
    endpoint: Endpoint,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Option<String>,
}

impl Call<'_> {
    /// Adds a query parameter.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        let separator = if self.path.contains('?') { "&" } else { "?" };
        for part in [separator, &percent_encode(name), "=", &percent_encode(value)] {
            self.path.push_str(part);
        }
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The body.
    pub fn body(mut self, body: Object) -> Self {
        self.body = Some(body.into_text());
        self
    }

    /// Sends it. Anything but a 2xx answer is a failure, see [`success`].
    ///
    /// # Errors
    /// That; `denied` also when the credentials are refused or the endpoint is not granted.
    pub fn send(&self) -> Result<Response, Failure> {
        success(self.send_any()?)
    }

    /// Sends it; none when Nova or Cinder itself reports it as not found. A 404 of anything else, such as a proxy whose backend is gone, is a failure.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `not-found`.
    pub fn send_present(&self) -> Result<Option<Response>, Failure> {
        let response = self.send_any()?;
        if response.status != 404 {
            return success(response).map(Some);
        }
        match parse(&response.text()).is_ok_and(|json| json.field("itemNotFound").is_some()) {
            true => Ok(None),
            false => Err(Failure::unavailable(format!(
                "{}: the 404 is none of the service's",
                self.path
            ))),
        }
    }

    /// Sends it; 404 is none.
    ///
    /// # Errors
    /// As [`send`](Self::send), but never `not-found`.
    pub fn send_optional(&self) -> Result<Option<Response>, Failure> {
        let response = self.send_any()?;
        if response.status == 404 {
            Ok(None)
        } else {
            success(response).map(Some)
        }
    }

    /// Sends it; every answer is a success but a 401 after which a new token was refused as well.
    ///
    /// # Errors
    /// That; when there is no token, no endpoint or no answer.
    pub fn send_any(&self) -> Result<Response, Failure> {
        self.api.send(self)
    }

    /// Sends it and reads the answer.
    ///
    /// # Errors
    /// As [`send`](Self::send); `unavailable` when the answer is cut or not what was expected.
    pub fn read<T>(&self, read: impl FnMut(&Value) -> Read<T>) -> Result<T, Failure> {
        self.parse(&self.send()?, read)
    }

    /// Sends it and reads the answer; 404 is none.
    ///
    /// # Errors
    /// As [`read`](Self::read), but never `not-found`.
    pub fn read_optional<T>(&self, read: impl FnMut(&Value) -> Read<T>) -> Result<Option<T>, Failure> {
        self.send_optional()?
            .map(|response| self.parse(&response, read))
            .transpose()
    }

    /// Reads an answer to this call. An answer that is cut in the middle is no evidence about the cloud, so it counts as none.
    ///
    /// # Errors
    /// `unavailable`, with the place.
    pub fn parse<T>(&self, response: &Response, mut read: impl FnMut(&Value) -> Read<T>) -> Result<T, Failure> {
        parse(&response.text()).and_then(|json| read(&json)).map_err(|wrong| {
            let path = self.path.split('?').next().unwrap_or_default();
            let call = format!("{} {}{path}", self.method, self.endpoint.service_type());
            Failure::unavailable(format!("{call}: the answer cannot be read: {wrong}"))
        })
    }
}

/// The answer, or the failure for it: by its status (see [`cloudwit_guest_sdk::failure`]), with the service's own message. A quota that
/// Neutron or Cinder names so is `exhausted`, a load balancer that Octavia works on `failed-precondition`. 413 is how Nova throttles, and how Cinder reports
/// that a quota is used up: then there is nothing to wait for.
///
/// # Errors
/// That failure.
pub fn success(mut response: Response) -> Result<Response, Failure> {
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    let Complaint { kind, message } = complaint(&response);
    if let Some(message) = message {
        response.body = message.into_bytes();
    }
    let wait = response.header("retry-after").filter(|_| response.status == 413);
    let (over_quota, throttled) = (wait.is_some_and(|wait| wait == "0"), wait.is_some());
    if throttled {
        response.status = 429;
    }
    // Keystone and Octavia have no codes of their own: the name of the envelope has no meaning.
    let code = match kind.as_str() {
        "" | "error" | "Client" | "Server" => response.status.to_string(),
        _ => kind.clone(),
    };
    response.success().map_err(|mut failure| {
        if kind.ends_with("OverQuota") || over_quota {
            failure.kind = FailureKind::Exhausted;
            failure.retry_after = None;
        } else if failure.kind == FailureKind::Conflict && is_busy(&failure.message) {
            failure.kind = FailureKind::FailedPrecondition;
        }
        failure.with_code(&code)
    })
}

/// Whether a conflict means that Octavia works on the load balancer; parts word it otherwise than the load balancer itself, and none has a
/// code. The only place where a message is parsed.
fn is_busy(conflict: &str) -> bool {
    // Searched by bytes: `str::contains` would bring its own four kilobytes.
    let says = |words: &str| {
        conflict
            .as_bytes()
            .windows(words.len())
            .any(|part| part == words.as_bytes())
    };
    says("is immutable") || says("Invalid state PENDING_")
}
