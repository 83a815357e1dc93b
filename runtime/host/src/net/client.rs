//! HTTP clients: pooled connections, rustls, private authorities, proxies.
//!
//! Grants of one provider with the same authorities or thumbprints, client certificate, proxy, addresses and connect time share a client
//! and with it its connections, across calls. Grants that differ in any of these never do: a connection to a loopback address that one grant allows is out of reach
//! of another. Providers never share anything: no connection, no flow-control window, no resolver.
//!
//! Over HTTP/2 the connection's window has room for the windows of all responses that may be in flight, so a response that is not read holds up no other.
//! Idle connections are bounded, whatever the number of hosts that a wildcard grants.
//!
//! A process that may no longer act ([`HttpClients::only_while`]) sends nothing more, whatever a guest is in the middle of.
//!
//! reqwest on our own rustls configuration: no redirects, cookies, decompression or proxies from the environment. Authorities are those of the
//! grant's `ca`, unless its `thumbprints` name the certificates themselves; else those of the file in `SSL_CERT_FILE`; else Mozilla's, which are built in, so that an image needs no files.

use std::collections::{BTreeSet, HashMap};
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use http::{HeaderMap, Method};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::watch;
use wasmtime_wasi_http::Error;

use crate::grants::{GrantProblem, HttpGrant};
use crate::net::connect_deadline::{CONNECTING, ConnectDeadline, Connecting, unanswered_for};
use crate::net::destination::Scheme;
use crate::net::dns::SystemResolver;
use crate::net::http_error::{self, HttpFailure};
use crate::net::resolver::{AddressRule, CheckedResolver, Lookup};
use crate::net::tls::client_identity::ClientIdentity;
use crate::net::tls::thumbprint::{NO_THUMBPRINT, Thumbprint};
pub use crate::net::tls::tls;
use crate::net::tls::{crypto, trusting};
use crate::net::wire::{Tap, Wire};

/// HTTP/2 flow-control window of one response, in bytes: what a server may send of a body that is not read.
pub(crate) const STREAM_WINDOW: u32 = 256 << 10;

/// Idle connections are kept this long, and at most this many to one host.
const IDLE: Duration = Duration::from_secs(90);
const MOST_IDLE: usize = 16;

/// So many hosts a client may have had requests to before it is replaced by a fresh one, whose predecessor's idle connections close: wildcards grant
/// endless names.
pub(super) const MOST_HOSTS: usize = 16;

/// Largest window of HTTP/2 (RFC 9113, 6.9.1).
pub(super) const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// How often an idle connection is probed, so that a firewall that dropped it is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// Where public authorities can be put instead of the built-in ones; OpenSSL's name.
const ROOTS_VARIABLE: &str = "SSL_CERT_FILE";

/// What makes clients different.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ClientKey {
    provider: String,
    /// Requests that may be in flight.
    requests: u32,
    /// Contents of the bundle, not its path: a renewed file is another bundle.
    ca: Option<Vec<u8>>,
    thumbprints: Vec<Thumbprint>,
    /// Digest of client certificate and key: renewed ones are others.
    identity: Option<[u8; 32]>,
    proxy: Option<String>,
    addresses: AddressRule,
    connect_timeout: Duration,
}

/// All clients of a process. Cloning is cheap and gives the same set.
#[derive(Clone)]
pub struct HttpClients(pub(super) Arc<Shared>);

/// Whether requests may leave.
type Open = Arc<dyn Fn() -> bool + Send + Sync>;

/// Makes the resolver of one client.
type Resolvers = Box<dyn Fn() -> Arc<dyn Lookup> + Send + Sync>;

pub(super) struct Shared {
    resolvers: Resolvers,
    open: Open,
    tap: Tap,
    pub(super) live: Mutex<HashMap<ClientKey, Weak<HttpClient>>>,
}

impl Default for HttpClients {
    fn default() -> Self {
        Self::only_while(|| true)
    }
}

fn system_resolvers() -> Resolvers {
    Box::new(|| Arc::new(SystemResolver::default()))
}

impl HttpClients {
    /// Clients that look names up elsewhere, for tests.
    pub fn with_lookup(lookup: Arc<dyn Lookup>) -> Self {
        let resolvers = Box::new(move || Arc::clone(&lookup) as _);
        Self::new(resolvers, Arc::new(|| true), Tap::default())
    }

    /// Clients whose requests and responses a tool sees, and may answer itself.
    pub fn seen_by(wire: Arc<dyn Wire>) -> Self {
        Self::new(system_resolvers(), Arc::new(|| true), Tap(Some(wire)))
    }

    /// Clients that send nothing once `open` says no. It is checked before a request leaves and each time one in flight continues, so it has
    /// to be quick.
    pub fn only_while(open: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self::new(system_resolvers(), Arc::new(open), Tap::default())
    }

    pub(crate) fn tap(&self) -> Tap {
        self.0.tap.clone()
    }

    fn new(resolvers: Resolvers, open: Open, tap: Tap) -> Self {
        Self(Arc::new(Shared {
            resolvers,
            open,
            tap,
            live: Mutex::default(),
        }))
    }

    /// The client of this provider for this grant, which is entry number `at` of the list. `requests`: how many may be in flight. Reads the files
    /// of authorities and of client certificates.
    pub(crate) fn client(
        &self,
        provider: &str,
        requests: u32,
        grant: &HttpGrant,
        at: usize,
    ) -> Result<Arc<HttpClient>, GrantProblem> {
        let thumbprints = thumbprints(grant, at)?;
        let file = match thumbprints.as_slice() {
            [] => grant.ca.clone().or_else(|| public_roots(grant)),
            _ => None,
        };
        let ca = match &file {
            None => None,
            Some(file) => Some(
                std::fs::read(file)
                    .map_err(|error| ca_problem(grant, at, file, &format!("cannot be read: {error}")))?,
            ),
        };
        let identity = ClientIdentity::read(grant, at)?;
        let addresses = AddressRule {
            loopback: grant.allow_loopback,
            link_local: grant.allow_link_local,
        };
        let key = ClientKey {
            provider: provider.to_owned(),
            requests,
            ca,
            thumbprints,
            identity: identity.as_ref().map(ClientIdentity::digest),
            proxy: grant.proxy.clone(),
            addresses,
            connect_timeout: grant.connect_timeout(),
        };
        let mut live = self.0.live.lock();
        live.retain(|_, client| client.strong_count() > 0);
        if let Some(client) = live.get(&key).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let certified = identity.map(|identity| identity.certified(&crypto())).transpose()?;
        let tls = trusting(key.ca.as_deref(), &key.thumbprints, certified)
            .map_err(|wrong| ca_problem(grant, at, file.as_deref().unwrap_or(Path::new("")), &wrong))?;
        let (lookup, of) = ((self.0.resolvers)(), key.clone());
        let make = move || build(&of, tls.clone(), Arc::clone(&lookup));
        let connections = Connections::new(Box::new(make)).map_err(|_| GrantProblem {
            path: format!("http[{at}]"),
            value: grant.host.clone(),
            wrong: "gives no usable HTTP client".into(),
            fix: "check proxy: it has to be http://HOST:PORT or https://HOST:PORT".into(),
        })?;
        let (open, identity) = (Arc::clone(&self.0.open), key.identity);
        let client = Arc::new(HttpClient {
            connections: Mutex::new(connections),
            identity,
            open,
        });
        live.insert(key, Arc::downgrade(&client));
        Ok(client)
    }
}

/// The file of public authorities, for those who need any.
fn public_roots(grant: &HttpGrant) -> Option<PathBuf> {
    let over_tls = grant.scheme == Scheme::Https || grant.proxy.as_ref().is_some_and(|url| url.starts_with("https:"));
    std::env::var_os(ROOTS_VARIABLE)
        .filter(|file| over_tls && !file.is_empty())
        .map(PathBuf::from)
}

fn ca_problem(grant: &HttpGrant, at: usize, file: &Path, wrong: &str) -> GrantProblem {
    let fix = if grant.ca.is_some() {
        "put a PEM file with the certificates of the trusted authorities there, or correct the path".to_owned()
    } else {
        format!("the path comes from the environment variable {ROOTS_VARIABLE}: correct or unset it")
    };
    GrantProblem {
        path: format!("http[{at}].ca"),
        value: file.display().to_string(),
        wrong: wrong.to_owned(),
        fix,
    }
}

/// The thumbprints of the grant, read.
pub(super) fn thumbprints(grant: &HttpGrant, at: usize) -> Result<Vec<Thumbprint>, GrantProblem> {
    let read = |(index, text): (usize, &String)| {
        Thumbprint::parse(text).ok_or_else(|| GrantProblem {
            path: format!("http[{at}].thumbprints[{index}]"),
            value: text.clone(),
            wrong: NO_THUMBPRINT.0.into(),
            fix: NO_THUMBPRINT.1.into(),
        })
    };
    grant.thumbprints.iter().enumerate().map(read).collect()
}

pub(super) fn build(
    key: &ClientKey,
    tls: rustls::ClientConfig,
    lookup: Arc<dyn Lookup>,
) -> Result<reqwest::Client, BuildFailed> {
    let rule = key.proxy.is_none().then_some(key.addresses);
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(CheckedResolver { lookup, rule }))
        .connector_layer(ConnectDeadline)
        .connect_timeout(key.connect_timeout)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(MOST_IDLE)
        .tcp_keepalive(KEEPALIVE)
        .http2_keep_alive_interval(KEEPALIVE)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(connection_window(key.requests))
        .no_proxy();
    if let Some(proxy) = &key.proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(|_| BuildFailed)?.no_proxy(None));
    }
    builder.build().map_err(|_| BuildFailed)
}

/// Room for the windows of all responses that may be in flight, and one more.
pub(super) fn connection_window(requests: u32) -> u32 {
    requests
        .saturating_add(1)
        .saturating_mul(STREAM_WINDOW)
        .min(LARGEST_WINDOW)
}

/// The client's own error is not kept: it can contain the proxy's URL.
pub(super) struct BuildFailed;

/// Makes a client without any connection.
pub(super) type Make = Box<dyn Fn() -> Result<reqwest::Client, BuildFailed> + Send + Sync>;

/// The connections of one client, to a bounded number of hosts.
pub(super) struct Connections {
    client: reqwest::Client,
    make: Make,
    pub(super) hosts: BTreeSet<(String, Option<u16>)>,
}

impl Connections {
    pub(super) fn new(make: Make) -> Result<Self, BuildFailed> {
        Ok(Self {
            client: make()?,
            make,
            hosts: BTreeSet::new(),
        })
    }

    /// For a request to this URL; requests in flight keep what they have.
    pub(super) fn to(&mut self, url: &Url) -> reqwest::Client {
        let host = (
            url.host_str().unwrap_or_default().to_owned(),
            url.port_or_known_default(),
        );
        if self.hosts.len() >= MOST_HOSTS && !self.hosts.contains(&host) {
            // It was made once of the same parts.
            if let Ok(fresh) = (self.make)() {
                self.client = fresh;
                self.hosts.clear();
            }
        }
        self.hosts.insert(host);
        self.client.clone()
    }
}

/// One client.
pub struct HttpClient {
    connections: Mutex<Connections>,
    identity: Option<[u8; 32]>,
    open: Open,
}

/// A request that may leave.
pub struct Outgoing {
    /// Method.
    pub method: Method,
    /// URL.
    pub url: Url,
    /// Headers; the client adds `host` and the length.
    pub headers: HeaderMap,
    /// Body.
    pub body: reqwest::Body,
    /// Longest time to connect.
    pub connect: Duration,
    /// Longest time from then to the head of the response.
    pub first_byte: Duration,
}

impl HttpClient {
    /// Digest of its client certificate and key.
    pub(crate) fn identity(&self) -> Option<&[u8; 32]> {
        self.identity.as_ref()
    }

    /// Sends a request and waits for the head of the response.
    pub async fn send(&self, outgoing: Outgoing) -> Result<reqwest::Response, HttpFailure> {
        let mut exchange = pin!(self.exchange(outgoing));
        poll_fn(|context| {
            if !(self.open)() {
                return Poll::Ready(Err(HttpFailure::Other(Error::HttpRequestDenied)));
            }
            exchange.as_mut().poll(context)
        })
        .await
    }

    async fn exchange(&self, outgoing: Outgoing) -> Result<reqwest::Response, HttpFailure> {
        let Outgoing {
            method,
            url,
            headers,
            body,
            connect,
            first_byte,
        } = outgoing;
        let (busy, mut connecting) = watch::channel(false);
        let client = self.connections.lock().to(&url);
        let request = client.request(method, url).headers(headers).body(body).send();
        tokio::select! {
            response = CONNECTING.scope(Connecting { limit: connect, busy }, request) => {
                response.map_err(|error| http_error::without_response(&error))
            }
            () = unanswered_for(first_byte, &mut connecting) => Err(HttpFailure::Other(Error::HttpResponseTimeout)),
        }
    }
}

#[cfg(test)]
mod tests;
