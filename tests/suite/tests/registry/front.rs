//! Proxy in front of the registry: it wants a login, sends blobs elsewhere, and lies.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, LOCATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;

/// User and password, and the same as `Authorization: Basic` has it.
pub const LOGIN: (&str, &str) = ("puller", "pa:ss");
const BASIC: &str = "Basic cHVsbGVyOnBhOnNz";
/// The token that the token service gives out.
pub const TOKEN: &str = "registry-token-of-the-test";

/// What it does beside passing requests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Honest,
    /// Each request gets 503.
    Down,
    /// No request is answered.
    Hangs,
    /// Manifests are another text.
    GarbageManifest,
    /// Each blob has one other byte.
    OtherBytes,
    /// Blobs never end.
    EndlessBlob,
    /// Wants user and password.
    Basic,
    /// Wants a token of its own token service, which wants user and password; blobs are elsewhere.
    Token,
    /// Blobs are at an address that no registry may lead to.
    LeadsToMetadata,
}

/// The proxy, and what it saw.
pub struct Front {
    pub address: String,
    state: Shared,
}

#[derive(Clone)]
struct Shared {
    registry: String,
    /// Where blobs are sent to.
    elsewhere: String,
    manner: Arc<Mutex<Manner>>,
    /// Authorization headers of requests that came to where blobs are sent to.
    seen_elsewhere: Arc<Mutex<Vec<Option<String>>>>,
    requests: Arc<Mutex<usize>>,
}

impl Front {
    pub async fn new(registry: &str) -> Self {
        // For the proxy's own requests; another test of this process may have been first.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (front, blobs) = (listener().await, listener().await);
        let address = front.local_addr().unwrap().to_string();
        let state = Shared {
            registry: registry.to_owned(),
            elsewhere: blobs.local_addr().unwrap().to_string(),
            manner: Arc::new(Mutex::new(Manner::Honest)),
            seen_elsewhere: Arc::default(),
            requests: Arc::default(),
        };
        let of = |handler: Router<Shared>| handler.with_state(state.clone());
        let (app, store) = (of(Router::new().fallback(answer)), of(Router::new().fallback(blob)));
        tokio::spawn(async move { axum::serve(front, app).await });
        tokio::spawn(async move { axum::serve(blobs, store).await });
        Self { address, state }
    }

    pub fn is(&self, manner: Manner) {
        *self.state.manner.lock().unwrap() = manner;
    }

    /// What came to where blobs are sent to: each request's credential.
    pub fn seen_elsewhere(&self) -> Vec<Option<String>> {
        self.state.seen_elsewhere.lock().unwrap().clone()
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        *self.state.requests.lock().unwrap()
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

async fn answer(State(state): State<Shared>, request: Request) -> Response {
    *state.requests.lock().unwrap() += 1;
    let manner = *state.manner.lock().unwrap();
    let path = request.uri().path().to_owned();
    let credential = credential(request.headers());
    let is_blob = request.method() == Method::GET && path.contains("/blobs/sha256:");
    let host = request.headers().get(HOST).unwrap().to_str().unwrap().to_owned();
    match manner {
        Manner::Down => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Manner::Hangs => {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Manner::GarbageManifest if path.contains("/manifests/") => return "<html>a login page</html>".into_response(),
        Manner::Basic if credential.as_deref() != Some(BASIC) => {
            return (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, "Basic realm=\"a, registry\"".to_owned())],
            )
                .into_response();
        }
        Manner::Token if path == "/token" => return token(&request),
        Manner::Token if credential != Some(format!("Bearer {TOKEN}")) => {
            let challenge = format!(
                "Bearer realm=\"http://{host}/token\",service=\"registry of the test\",scope=\"repository:cloudwit/sim:pull,push\""
            );
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)]).into_response();
        }
        Manner::Token if is_blob => {
            let place = format!("http://{}{path}?signature=secret", state.elsewhere);
            return (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, place)]).into_response();
        }
        Manner::LeadsToMetadata if is_blob => {
            let place = "http://169.254.169.254/latest/meta-data/iam".to_owned();
            return (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, place)]).into_response();
        }
        Manner::EndlessBlob if is_blob => {
            let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[0; 65536])));
            return Body::from_stream(pieces).into_response();
        }
        Manner::OtherBytes if is_blob => {
            let mut content = passed(&state, request).await.2.to_vec();
            *content.last_mut().unwrap() ^= 1;
            return content.into_response();
        }
        _ => {}
    }
    passed(&state, request).await.into_response()
}

/// The token service: to those who log in, for what they ask for.
fn token(request: &Request) -> Response {
    let wanted = request.uri().query().unwrap_or_default();
    assert!(
        wanted.contains("service=registry+of+the+test")
            && wanted.contains("scope=repository%3Acloudwit%2Fsim%3Apull%2Cpush"),
        "{wanted}"
    );
    match credential(request.headers()).as_deref() {
        Some(BASIC) => format!("{{\"token\": \"{TOKEN}\", \"expires_in\": 300}}").into_response(),
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

/// Where blobs are sent to.
async fn blob(State(state): State<Shared>, request: Request) -> Response {
    state.seen_elsewhere.lock().unwrap().push(credential(request.headers()));
    passed(&state, request).await.into_response()
}

fn credential(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(AUTHORIZATION)?.to_str().unwrap().to_owned())
}

type Passed = (StatusCode, HeaderMap, Bytes);

/// The registry's own answer.
async fn passed(state: &Shared, request: Request) -> Passed {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().unwrap();
    let mut headers = parts.headers;
    headers.remove(HOST);
    headers.remove(AUTHORIZATION);
    let content = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let sent = reqwest::Client::new().request(parts.method, format!("http://{}{path}", state.registry));
    let answer = sent.headers(headers).body(content).send().await.unwrap();
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove("transfer-encoding");
    (status, headers, answer.bytes().await.unwrap())
}
