//! A proxy that stops requests at points of the test's choice, so that a process can be killed exactly there.
//!
//! ```text
//!   cloudwit --- plain HTTP ---> Gate --- kube's client (TLS, credentials) ---> API server, or a simulated cloud
//! ```
//!
//! In front of a server of others it also makes the faults that the server cannot make itself ([`Fault`]).
//!
//! A request that is stopped never goes on: whoever sent it is about to be killed. It is stopped before it is passed on, and then
//! has no effect unless [`Gate::deliver`] lets it arrive late; or it has had its effect and its answer never arrives.

pub mod fault;
pub mod tls;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::gate::fault::Fault;
use crate::wait::within;

/// How long a process may take to come to a point.
const REACHED: Duration = Duration::from_secs(300);

/// Requests with this method, this text in their target and all these texts in their body. In a target only whole names count:
/// `/v1/load-balancers/lb-1` is not in `/v1/load-balancers/lb-13`.
#[derive(Debug, Clone)]
pub struct Point {
    method: Method,
    target: String,
    body: Vec<String>,
    answered: bool,
}

impl Point {
    /// Before the request arrives. `target` is a part of path and query.
    pub fn before(method: Method, target: impl Into<String>) -> Self {
        Self {
            method,
            target: target.into(),
            body: Vec::new(),
            answered: false,
        }
    }

    /// After the request has had its effect, before its answer arrives.
    pub fn after(method: Method, target: impl Into<String>) -> Self {
        Self {
            answered: true,
            ..Self::before(method, target)
        }
    }

    /// Only with this text in the body, beside those named before.
    pub fn with(mut self, text: impl Into<String>) -> Self {
        self.body.push(text.into());
        self
    }

    fn fits(&self, parts: &Parts, body: &[u8]) -> bool {
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        self.method == parts.method
            && contains_whole(target, &self.target)
            && self.body.iter().all(|text| contains(body, text.as_bytes()))
    }
}

/// Whether the text is in there, and its last name does not go on after it.
fn contains_whole(target: &str, text: &str) -> bool {
    let in_name = |character: char| character.is_ascii_alphanumeric() || character == '-';
    target.match_indices(text).any(|(at, found)| {
        let rest = &target[at + found.len()..];
        !(found.ends_with(in_name) && rest.starts_with(in_name))
    })
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

/// The requests that were stopped at one point.
#[derive(Debug, Clone)]
pub struct Stop {
    point: Point,
    stopped: watch::Sender<Vec<(Parts, Bytes)>>,
}

impl Stop {
    /// Waits until a request was stopped here.
    ///
    /// # Panics
    ///
    /// When none comes within five minutes; the message names the point.
    pub async fn reached(&self) {
        let reached = within(REACHED, || async { self.count() > 0 }).await;
        assert!(reached.is_ok(), "no request came to {:?}", self.point);
    }

    /// How many requests were stopped here.
    pub fn count(&self) -> usize {
        self.stopped.borrow().len()
    }
}

struct Shared {
    upstream: Client,
    /// Whether the upstream is told the host that the request was for, which signatures of requests cover.
    keeps_host: bool,
    requests: Mutex<Vec<(Parts, Bytes)>>,
    changes: Mutex<Vec<Instant>>,
    stops: Mutex<Vec<Stop>>,
    faults: Mutex<Vec<(Point, Fault)>>,
}

impl Shared {
    fn stops(&self) -> MutexGuard<'_, Vec<Stop>> {
        self.stops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self, parts: &Parts, body: &Bytes) -> Option<Stop> {
        self.stops().iter().find(|stop| stop.point.fits(parts, body)).cloned()
    }

    fn remember(&self, parts: &Parts, body: &Bytes) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push((parts.clone(), body.clone()));
    }

    fn fault(&self, parts: &Parts, body: &Bytes) -> Option<Fault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting = faults.iter().filter(|(point, _)| point.fits(parts, body));
        fitting.find(|(_, fault)| fault.meet()).map(|(_, fault)| fault.clone())
    }

    async fn pass_on(&self, mut parts: Parts, body: Bytes) -> Response {
        if parts.method != Method::GET {
            let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            changes.push(Instant::now());
        }
        if !self.keeps_host {
            // The client makes its own.
            parts.headers.remove(header::HOST);
        }
        let request = axum::http::Request::from_parts(parts, kube::client::Body::from(body));
        match self.upstream.send(request).await {
            Ok(response) => response.map(Body::new),
            Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
        }
    }
}

/// The proxy. It ends when this is dropped.
pub struct Gate {
    address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Gate {
    /// Starts a proxy to where this client leads.
    ///
    /// # Errors
    ///
    /// When it cannot listen on loopback.
    pub async fn to(upstream: Client) -> Result<Self> {
        Self::open_on(listen().await?, "http", upstream, false)
    }

    /// Starts a proxy to the server with this URL. The server sees requests as they were sent, with the proxy's address as host.
    ///
    /// # Errors
    ///
    /// When it cannot listen on loopback or the URL is none.
    pub async fn to_url(url: &str) -> Result<Self> {
        let mut config = Config::new(url.parse().context("reading the URL of a server")?);
        config.default_retry = false;
        let upstream = Client::try_from(config)?;
        Self::open_on(listen().await?, "http", upstream, true)
    }

    /// The same behind a certificate and its key, both PEM, to a server at `https://ADDRESS` whose certificate this authority has signed.
    ///
    /// # Errors
    ///
    /// When it cannot listen on loopback or a file is no certificate or key.
    pub async fn to_tls(address: &str, authority: &Path, certificate: &Path, key: &Path) -> Result<Self> {
        let mut config = Config::new(format!("https://{address}").parse().context("reading an address")?);
        config.root_cert = Some(vec![tls::certificate(authority)?]);
        config.default_retry = false;
        let listener = tls::Listener::new(listen().await?, certificate, key)?;
        Self::open_on(listener, "https", Client::try_from(config)?, true)
    }

    /// The same in front of a server with this plain URL.
    ///
    /// # Errors
    ///
    /// As [`to_tls`](Self::to_tls).
    pub async fn tls_to_url(url: &str, certificate: &Path, key: &Path) -> Result<Self> {
        let mut config = Config::new(url.parse().context("reading the URL of a server")?);
        config.default_retry = false;
        let listener = tls::Listener::new(listen().await?, certificate, key)?;
        Self::open_on(listener, "https", Client::try_from(config)?, true)
    }

    fn open_on<L>(listener: L, scheme: &'static str, upstream: Client, keeps_host: bool) -> Result<Self>
    where
        L: axum::serve::Listener<Addr = SocketAddr>,
    {
        let address = listener.local_addr().context("listening on loopback")?;
        let shared = Arc::new(Shared {
            upstream,
            keeps_host,
            requests: Mutex::default(),
            changes: Mutex::default(),
            stops: Mutex::default(),
            faults: Mutex::default(),
        });
        let app = Router::new().fallback(pass).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // Ends with the listener only, and that lives as long as the task.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            scheme,
            shared,
            server,
        })
    }

    /// Its URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// How many requests of this kind have come so far, whatever became of them.
    pub fn count(&self, point: &Point) -> usize {
        let requests = self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.iter().filter(|(parts, body)| point.fits(parts, body)).count()
    }

    /// When it has passed requests on that are not GET, in their order.
    pub fn changes(&self) -> Vec<Instant> {
        self.shared
            .changes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// From now on, stops all requests of this kind.
    pub fn stop_at(&self, point: Point) -> Stop {
        let stop = Stop {
            point,
            stopped: watch::Sender::new(Vec::new()),
        };
        self.shared.stops().push(stop.clone());
        stop
    }

    /// From now on, answers all requests of this kind with this status, as a server does that knows no such thing.
    pub fn refuse(&self, point: Point, status: StatusCode) {
        self.fail(point, Fault::status(status));
    }

    /// From now on, requests of this kind meet this fault; of several for one request, the first that has not met enough. Gives the fault, to ask
    /// how many it has met.
    pub fn fail(&self, point: Point, fault: Fault) -> Fault {
        let mut faults = self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.push((point, fault.clone()));
        fault
    }

    /// From now on, passes everything on. What was stopped stays so.
    pub fn open(&self) {
        self.shared.stops().clear();
        let mut faults = self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.clear();
    }

    /// Lets the requests that were stopped before they arrived arrive now, after their sender has died. Gives the status of each
    /// answer.
    pub async fn deliver(&self, stop: &Stop) -> Vec<u16> {
        let late = stop.stopped.borrow().clone();
        let mut answers = Vec::new();
        for (parts, body) in late {
            answers.push(self.shared.pass_on(parts, body).await.status().as_u16());
        }
        answers
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn listen() -> Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    listener.context("listening on loopback")
}

async fn pass(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    shared.remember(&parts, &body);
    if let Some(fault) = shared.fault(&parts, &body) {
        return fault.answer(shared.pass_on(parts, body)).await;
    }
    let Some(stop) = shared.stop(&parts, &body) else {
        return shared.pass_on(parts, body).await;
    };
    if stop.point.answered {
        // The whole answer: with its first byte alone the effect may not be complete.
        let (_, answer) = shared.pass_on(parts.clone(), body.clone()).await.into_parts();
        drop(to_bytes(answer, usize::MAX).await);
    }
    stop.stopped.send_modify(|stopped| stopped.push((parts, body)));
    std::future::pending().await
}

#[cfg(test)]
mod tests;
