//! A proxy in front of the API server that makes the faults which a real one cannot make at will.
//!
//! Both replicas reach the API server through it, without credentials of their own: theirs is a canary, the proxy has the real ones.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use kube::Client;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Largest request body, in bytes; more than any object may have.
const LARGEST: usize = 16 * 1024 * 1024;

/// What the proxy does to requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApiFault {
    /// Nothing.
    #[default]
    None,
    /// Drops new connections and cuts open ones.
    Away,
    /// Holds each request for so long.
    Slow(Duration),
    /// Answers each watch with 410 Gone, and passes all else on.
    Gone,
}

struct Proxied {
    upstream: Client,
    fault: Mutex<ApiFault>,
    /// Counts cuts; each open watch ends when it changes.
    cuts: watch::Sender<u64>,
}

impl Proxied {
    fn fault(&self) -> ApiFault {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running proxy.
pub struct ApiProxy {
    address: SocketAddr,
    shared: Arc<Proxied>,
    task: JoinHandle<()>,
}

impl ApiProxy {
    /// Starts one to where this client leads.
    ///
    /// # Errors
    ///
    /// When it cannot listen on loopback.
    pub async fn start(upstream: Client) -> Result<Self> {
        let tcp = TcpListener::bind("127.0.0.1:0")
            .await
            .context("listening on loopback")?;
        let address = tcp.local_addr().context("listening on loopback")?;
        let shared = Arc::new(Proxied {
            upstream,
            fault: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let app = Router::new().fallback(pass).with_state(Arc::clone(&shared));
        let door = Door {
            tcp,
            shared: Arc::clone(&shared),
        };
        let task = tokio::spawn(async move {
            // Ends with the listener only, and that lives as long as the task.
            let _ = axum::serve(door, app).await;
        });
        Ok(Self { address, shared, task })
    }

    /// Its URL, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on this is done to requests.
    pub fn set(&self, fault: ApiFault) {
        *self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        if fault == ApiFault::Away {
            self.cut_watches();
        }
    }

    /// Cuts all watches that are open.
    pub fn cut_watches(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for ApiProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts connections unless the server is away.
struct Door {
    tcp: TcpListener,
    shared: Arc<Proxied>,
}

impl axum::serve::Listener for Door {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let accepted = axum::serve::Listener::accept(&mut self.tcp).await;
            if self.shared.fault() != ApiFault::Away {
                return accepted;
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

async fn pass(State(shared): State<Arc<Proxied>>, request: Request) -> Response {
    let is_watch = request
        .uri()
        .query()
        .is_some_and(|query| query.contains("watch=true") || query.contains("watch=1"));
    match shared.fault() {
        ApiFault::Away => return cut(),
        ApiFault::Gone if is_watch => return gone(),
        ApiFault::Slow(time) => tokio::time::sleep(time).await,
        ApiFault::None | ApiFault::Gone => {}
    }
    let (mut parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    parts.headers.remove(header::HOST);
    parts.headers.remove(header::AUTHORIZATION);
    let mut cuts = shared.cuts.subscribe();
    let request = axum::http::Request::from_parts(parts, kube::client::Body::from(body));
    match shared.upstream.send(request).await {
        Ok(answer) if is_watch => answer.map(|body| {
            let cut = async move { drop(cuts.changed().await) };
            Body::from_stream(Body::new(body).into_data_stream().take_until(cut).chain(broken()))
        }),
        Ok(answer) => answer.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// The end of an answer whose connection breaks.
fn broken() -> futures::stream::Iter<std::array::IntoIter<Result<Bytes, axum::Error>, 1>> {
    futures::stream::iter([Err(axum::Error::new(io::Error::other("cut on purpose")))])
}

fn cut() -> Response {
    Response::new(Body::from_stream(broken()))
}

/// A watch whose resource version is too old.
fn gone() -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version",
    });
    let line = format!("{}\n", json!({ "type": "ERROR", "object": status }));
    ([(header::CONTENT_TYPE, "application/json")], line).into_response()
}
