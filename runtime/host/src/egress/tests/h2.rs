//! Responses that are not read, over HTTP/2 and TLS: what they hold, and what they leave to others.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::stream;
use http_body::Frame;
use http_body_util::{Empty, Full, StreamBody};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use wasmtime_wasi_http::WasiHttpHooks as _;

use crate::egress::hooks::EgressHooks;
use crate::egress::*;
use crate::net::client::STREAM_WINDOW;
use crate::net::resolver::{Lookup, LookupFuture};
use crate::secrets::keys::Keyring;

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(300);

/// What one piece of a body has, in bytes.
const PIECE: usize = 16 << 10;

/// Every name is this machine.
struct Here;

impl Lookup for Here {
    fn lookup(&self, _name: &str) -> LookupFuture {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

/// Speaks HTTP/2 alone. `/endless` has a body without end, everything else one of a mebibyte.
struct Http2Server {
    port: u16,
    authority: tempfile::NamedTempFile,
    connections: Arc<AtomicUsize>,
    /// Pieces of endless bodies that were taken from it.
    pieces: Arc<AtomicUsize>,
}

impl Http2Server {
    async fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned()];
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let authority = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(authority.path(), certificate.pem()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            authority,
            connections: Arc::default(),
            pieces: Arc::default(),
        };
        let (connections, pieces) = (Arc::clone(&server.connections), Arc::clone(&server.pieces));
        let tls = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            loop {
                let (tcp, _) = listener.accept().await.unwrap();
                let Ok(stream) = tls.accept(tcp).await else { continue };
                connections.fetch_add(1, Ordering::SeqCst);
                let pieces = Arc::clone(&pieces);
                let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
                    let pieces = Arc::clone(&pieces);
                    async move { Ok::<_, std::convert::Infallible>(answer(request.uri().path(), pieces)) }
                });
                let serve = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(async move { serve.serve_connection(TokioIo::new(stream), service).await });
            }
        });
        server
    }

    /// The way out of a provider with these limits.
    fn egress(&self, provider: &str, limits: &Limits, clients: &HttpClients) -> Arc<Egress> {
        let yaml = format!(
            "http: [{{host: localhost, port: {}, ca: {}, allowLoopback: true}}]",
            self.port,
            self.authority.path().display()
        );
        let grants: Grants = serde_saphyr::from_str(&yaml).unwrap();
        let metrics = EgressMetrics::default();
        Egress::with_clients(
            provider,
            &grants,
            limits,
            Secrets::new(Keyring::default(), &[]),
            metrics,
            clients,
            None,
        )
        .unwrap()
    }

    fn request(&self, path: &str) -> Request<WasiBody> {
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        let uri = format!("https://localhost:{}{path}", self.port);
        Request::builder().uri(uri).body(body).unwrap()
    }
}

type Body = http_body_util::Either<Full<Bytes>, WasiBody>;

fn answer(path: &str, pieces: Arc<AtomicUsize>) -> Response<Body> {
    if path != "/endless" {
        return Response::new(Body::Left(Full::new(vec![7; 1 << 20].into())));
    }
    let endless = stream::repeat_with(move || {
        pieces.fetch_add(1, Ordering::SeqCst);
        Ok(Frame::data(Bytes::from_static(&[0; PIECE])))
    });
    Response::new(Body::Right(StreamBody::new(endless).boxed_unsync()))
}

async fn send(hooks: &mut EgressHooks, request: Request<WasiBody>) -> Response<WasiBody> {
    let answer = hooks.send_request(request, None, Box::new(async { Ok(()) }));
    let answer = timeout(LONG, Box::into_pin(answer)).await.expect("no answer in time");
    answer.unwrap_or_else(|error| panic!("{error}")).0
}

fn call(egress: &Arc<Egress>) -> EgressHooks {
    egress.hooks(Instant::now() + Duration::from_secs(600), &egress.secrets)
}

#[tokio::test]
async fn unread_responses_do_not_hold_up_another_call() {
    let server = Http2Server::start().await;
    let limits = Limits::default();
    let egress = server.egress("test", &limits, &HttpClients::with_lookup(Arc::new(Here)));
    let (mut never_reads, mut unread) = (call(&egress), Vec::new());
    for _ in 0..limits.requests_per_call {
        unread.push(send(&mut never_reads, server.request("/endless")).await);
    }
    // Until each of them has filled its window.
    let filled = unread.len() * STREAM_WINDOW as usize / PIECE;
    let full = async {
        while server.pieces.load(Ordering::SeqCst) < filled {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, full).await.expect("the windows are smaller");
    let response = send(&mut call(&egress), server.request("/small")).await;
    let body = timeout(LONG, response.into_body().collect()).await;
    let body = body.expect("held up by responses that are not read").unwrap();
    assert_eq!(body.to_bytes().len(), 1 << 20);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    // What an unread response may hold is bounded by its window, and a piece in hand on both sides.
    let most = unread.len() * (STREAM_WINDOW as usize / PIECE + 64);
    assert!(server.pieces.load(Ordering::SeqCst) <= most);
}

#[tokio::test]
async fn a_call_that_never_reads_waits_at_its_limit() {
    let server = Http2Server::start().await;
    let limits = Limits {
        requests_per_call: 2,
        requests: 3,
        ..Limits::default()
    };
    let egress = server.egress("test", &limits, &HttpClients::with_lookup(Arc::new(Here)));
    let mut never_reads = call(&egress);
    let mut unread = vec![
        send(&mut never_reads, server.request("/endless")).await,
        send(&mut never_reads, server.request("/endless")).await,
    ];
    let third = never_reads.send_request(server.request("/small"), None, Box::new(async { Ok(()) }));
    let mut third = Box::into_pin(third);
    assert!(futures::poll!(third.as_mut()).is_pending());
    // Another call of the provider has a place, until that one is taken too.
    let other = send(&mut call(&egress), server.request("/small")).await;
    assert!(futures::poll!(third.as_mut()).is_pending());
    drop(unread.pop());
    let (head, body) = timeout(LONG, third).await.expect("no place").unwrap().0.into_parts();
    assert_eq!(head.status, 200);
    let mut all = call(&egress);
    let mut fourth = Box::into_pin(all.send_request(server.request("/small"), None, Box::new(async { Ok(()) })));
    assert!(
        futures::poll!(fourth.as_mut()).is_pending(),
        "more than limits.requests"
    );
    // A response that was read to its end leaves its place.
    body.collect().await.unwrap();
    drop(timeout(LONG, fourth).await.expect("no place").unwrap());
    drop(other);
}

#[tokio::test]
async fn providers_have_connections_of_their_own() {
    let server = Http2Server::start().await;
    let clients = HttpClients::with_lookup(Arc::new(Here));
    let mut kept = Vec::new();
    for (provider, connections) in [("one", 1), ("one", 1), ("other", 2)] {
        let egress = server.egress(provider, &Limits::default(), &clients);
        let response = send(&mut call(&egress), server.request("/small")).await;
        response.into_body().collect().await.unwrap();
        assert_eq!(server.connections.load(Ordering::SeqCst), connections, "{provider}");
        kept.push(egress);
    }
}
