//! Test server on 127.0.0.1: echoes requests, counts connections and requests.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server was sent; its answer as JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Echo {
    pub method: String,
    pub uri: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

#[derive(Default)]
pub struct Counts {
    connections: AtomicUsize,
    requests: AtomicUsize,
    last: Mutex<Option<Echo>>,
}

/// Runs until the test's runtime ends.
pub struct TestServer {
    pub port: u16,
    counts: Arc<Counts>,
}

impl TestServer {
    /// Over plain HTTP.
    pub async fn start() -> Self {
        Self::serve(None).await
    }

    /// Over TLS for `localhost`, with a certificate that nobody knows; the file is its authority.
    pub async fn start_tls() -> (Self, tempfile::NamedTempFile) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), certificate.pem()).unwrap();
        (Self::serve(Some(TlsAcceptor::from(Arc::new(config)))).await, file)
    }

    async fn serve(tls: Option<TlsAcceptor>) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = tcp.local_addr().unwrap().port();
        let counts = Arc::<Counts>::default();
        let router = Router::new()
            .route("/silent", get(std::future::pending::<()>))
            .route(
                "/redirect",
                get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]) }),
            )
            .route("/large", get(|| async { vec![0_u8; 1000] }))
            .route(
                "/gzip",
                get(|| async { ([(header::CONTENT_ENCODING, "gzip")], "not really") }),
            )
            .route("/cut", get(cut_off))
            .route("/answer/{status}/{retry_after}", get(answer))
            .fallback(echo)
            .with_state(Arc::clone(&counts));
        let listener = Counting {
            tcp,
            tls,
            counts: Arc::clone(&counts),
        };
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { port, counts }
    }

    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }

    /// What it was sent last, whatever became of its answer on the way.
    pub fn last(&self) -> Option<Echo> {
        self.counts.last.lock().unwrap().clone()
    }
}

async fn echo(State(counts): State<Arc<Counts>>, request: Request) -> Response {
    counts.requests.fetch_add(1, Ordering::SeqCst);
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let echo = Echo {
        method: parts.method.to_string(),
        uri: parts.uri.to_string(),
        headers: text(&parts.headers),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    *counts.last.lock().unwrap() = Some(echo.clone());
    axum::Json(echo).into_response()
}

/// Answers as the path asks for.
async fn answer(State(counts): State<Arc<Counts>>, Path((status, after)): Path<(u16, String)>) -> Response {
    counts.requests.fetch_add(1, Ordering::SeqCst);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    (status, [(header::RETRY_AFTER, after)]).into_response()
}

async fn cut_off() -> Body {
    let pieces = [Ok(Bytes::from_static(b"begun")), Err(io::Error::other("cut off"))];
    Body::from_stream(futures::stream::iter(pieces))
}

fn text(headers: &HeaderMap) -> BTreeMap<String, String> {
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

struct Counting {
    tcp: TcpListener,
    tls: Option<TlsAcceptor>,
    counts: Arc<Counts>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Listener for Counting {
    type Io = Box<dyn Stream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, from)) = self.tcp.accept().await else {
                continue;
            };
            self.counts.connections.fetch_add(1, Ordering::SeqCst);
            let Some(tls) = &self.tls else {
                return (Box::new(stream), from);
            };
            if let Ok(stream) = tls.accept(stream).await {
                return (Box::new(stream), from);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// A file with a secret in it, kept as long as the folder is.
pub fn secret_file(dir: &tempfile::TempDir, name: &str, secret: &str) -> PathBuf {
    let file = dir.path().join(name);
    std::fs::write(&file, secret).unwrap();
    file
}
