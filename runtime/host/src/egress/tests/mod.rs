//! Requests of a guest through the hooks, against a server on 127.0.0.1.
//!
//! Over 400 lines: one test for each promise of the egress, all on the same set-up.

mod budget;
mod client_certificate;
mod h2;
mod plan;
mod rate_limit;
mod secrets;

use std::io;
use std::net::IpAddr;

use bytes::Bytes;
use http::HeaderValue;
use http_body_util::Full;
use prometheus_client::registry::Registry;
use wasmtime_wasi_http::WasiHttpHooks as _;

use super::*;
use crate::egress::hooks::EgressHooks;
use crate::egress::refusal::RefusalReason;
use crate::net::resolver::{Lookup, LookupFuture};
use crate::net::testing::{Echo, TestServer};
use crate::secrets::keys::Keyring;

/// Knows the names of the tests.
pub(super) struct Names;

impl Lookup for Names {
    fn lookup(&self, name: &str) -> LookupFuture {
        let addresses: Vec<IpAddr> = match name {
            "localhost" | "rebound.example" | "other.example" => vec![[127, 0, 0, 1].into()],
            "metadata.example" => vec![[169, 254, 169, 254].into()],
            "mixed.example" => vec![[169, 254, 169, 254].into(), [127, 0, 0, 1].into()],
            "slow.example" => return Box::pin(std::future::pending()),
            _ => return Box::pin(async { Err(io::Error::other("no such name")) }),
        };
        Box::pin(async move { Ok(addresses) })
    }
}

impl Egress {
    /// With default limits and clients of its own.
    pub(super) fn new(provider: &str, grants: &Grants, metrics: EgressMetrics) -> Result<Arc<Self>, GrantError> {
        let (limits, clients) = (Limits::default(), HttpClients::default());
        Self::with_clients(
            provider,
            grants,
            &limits,
            Secrets::new(Keyring::default(), &[]),
            metrics,
            &clients,
            None,
        )
    }
}

pub(super) fn egress_with(yaml: &str, clients: &HttpClients, metrics: &EgressMetrics) -> Arc<Egress> {
    let grants: Grants = serde_saphyr::from_str(yaml).unwrap();
    let secrets = Secrets::new(Keyring::load(&grants.secrets).unwrap(), &[]);
    Egress::with_clients(
        "test",
        &grants,
        &Limits::default(),
        secrets,
        metrics.clone(),
        clients,
        None,
    )
    .unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn egress(yaml: &str) -> Arc<Egress> {
    egress_with(
        yaml,
        &HttpClients::with_lookup(Arc::new(Names)),
        &EgressMetrics::default(),
    )
}

pub(super) fn request(method: &str, url: &str) -> http::request::Builder {
    Request::builder().method(method).uri(url)
}

pub(super) fn with_body(request: http::request::Builder, body: impl Into<Bytes>) -> Request<WasiBody> {
    request
        .body(Full::new(body.into()).map_err(|never| match never {}).boxed_unsync())
        .unwrap()
}

pub(super) async fn send_with(
    hooks: &mut EgressHooks,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<Response<WasiBody>, Error> {
    let answer = hooks.send_request(request, Some(options), Box::new(async { Ok(()) }));
    Ok(Box::into_pin(answer).await?.0)
}

/// Sends a request and reads the whole response.
pub(super) async fn send(
    egress: &Arc<Egress>,
    request: Request<WasiBody>,
) -> Result<Response<Bytes>, (Error, Option<Refusal>)> {
    send_in(&mut call(egress), request).await
}

/// What one call has.
pub(super) fn call(egress: &Arc<Egress>) -> EgressHooks {
    egress.hooks(Instant::now() + Duration::from_secs(60), &egress.secrets)
}

/// The same in this call.
pub(super) async fn send_in(
    hooks: &mut EgressHooks,
    request: Request<WasiBody>,
) -> Result<Response<Bytes>, (Error, Option<Refusal>)> {
    match send_with(hooks, request, RequestOptions::default()).await {
        Err(error) => Err((error, hooks.last_refusal())),
        Ok(response) => {
            let (head, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| (error, None))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        }
    }
}

pub(super) async fn echo(egress: &Arc<Egress>, request: Request<WasiBody>) -> Echo {
    let response = send(egress, request)
        .await
        .unwrap_or_else(|(error, refusal)| panic!("{error} {refusal:?}"));
    serde_json::from_slice(response.body()).unwrap()
}

pub(super) async fn refused(egress: &Arc<Egress>, request: Request<WasiBody>) -> (Error, Refusal) {
    let (error, refusal) = send(egress, request).await.expect_err("the request passed");
    (error, refusal.expect("not refused but failed"))
}

pub(super) fn get(url: &str) -> Request<WasiBody> {
    with_body(request("GET", url), "")
}

#[tokio::test]
async fn a_hundred_calls_share_one_connection() {
    let server = TestServer::start().await;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: 127.0.0.1, port: {}, allowLoopback: true}}]",
        server.port
    ));
    for call in 0..100 {
        let echo = echo(
            &egress,
            get(&format!("http://127.0.0.1:{}/call/{call}?a=b", server.port)),
        )
        .await;
        assert_eq!(echo.uri, format!("/call/{call}?a=b"));
    }
    assert_eq!((server.requests(), server.connections()), (100, 1));
}

#[tokio::test]
async fn ungranted_is_refused_before_sending_and_passes_after_paste() {
    let server = TestServer::start().await;
    let port = server.port;
    let clients = HttpClients::with_lookup(Arc::new(Names));
    let metrics = EgressMetrics::default();
    for (yaml, reason) in [
        ("- {scheme: http, host: example.com}".to_owned(), RefusalReason::Host),
        (
            "- {scheme: http, host: localhost, allowLoopback: true}".to_owned(),
            RefusalReason::Port,
        ),
        (
            format!("- {{host: localhost, port: {port}, allowLoopback: true}}"),
            RefusalReason::Scheme,
        ),
        (
            format!("- {{scheme: http, host: localhost, port: {port}, methods: [PUT], allowLoopback: true}}"),
            RefusalReason::Method,
        ),
    ] {
        let before = server.connections();
        let yaml = format!("http:\n{yaml}\n");
        let url = format!("http://localhost:{port}/");
        let (error, refusal) = refused(&egress_with(&yaml, &clients, &metrics), get(&url)).await;
        assert!(matches!(error, Error::HttpRequestDenied), "{error}");
        assert_eq!(refusal.reason, reason);
        assert_eq!(server.connections(), before);
        // The host alone does not tell that its name leads to loopback, so a second refusal may follow the first.
        let mut pasted = yaml + &refusal.yaml.unwrap() + "\n";
        if reason == RefusalReason::Host {
            let (_, refusal) = refused(&egress_with(&pasted, &clients, &metrics), get(&url)).await;
            assert_eq!(refusal.reason, RefusalReason::Address);
            pasted += &refusal.yaml.unwrap();
        }
        echo(&egress_with(&pasted, &clients, &metrics), get(&url)).await;
    }
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        r#"refusals_total{provider="test",reason="host"} 1"#,
        r#"refusals_total{provider="test",reason="method"} 1"#,
        r#"refusals_total{provider="test",reason="address"} 1"#,
        r#"requests_total{provider="test",method="GET",code="2xx"} 4"#,
        r#"requests_total{provider="test",method="GET",code="error"} 1"#,
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[tokio::test]
async fn loopback_needs_its_flag_whether_as_address_or_behind_a_name() {
    for host in ["127.0.0.1", "rebound.example", "localhost"] {
        let server = TestServer::start().await;
        let yaml = format!("http:\n- {{scheme: http, host: '{host}', port: {}}}\n", server.port);
        let url = format!("http://{host}:{}/", server.port);
        let (error, refusal) = refused(&egress(&yaml), get(&url)).await;
        assert!(matches!(error, Error::DestinationIpProhibited), "{host}: {error}");
        assert_eq!(
            (refusal.reason, server.connections()),
            (RefusalReason::Address, 0),
            "{host}"
        );
        let pasted = yaml + &refusal.yaml.unwrap();
        assert_eq!(
            echo(&egress(&pasted), get(&url)).await.headers["host"],
            format!("{host}:{}", server.port)
        );
    }
}

#[tokio::test]
async fn name_resolving_to_metadata_is_refused_with_loopback_allowed() {
    let egress = egress("http: [{scheme: http, host: metadata.example, allowLoopback: true}]");
    let (error, refusal) = refused(&egress, get("http://metadata.example/latest")).await;
    assert!(matches!(error, Error::DestinationIpProhibited), "{error}");
    assert!(
        refusal
            .message
            .contains("the name leads to 169.254.169.254, which is link-local"),
        "{refusal}"
    );
    assert!(refusal.yaml.unwrap().contains("allowLinkLocal: true"));
}

#[tokio::test]
async fn only_allowed_addresses_of_a_name_are_used() {
    let server = TestServer::start().await;
    let port = server.port;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: mixed.example, port: {port}, allowLoopback: true}}]"
    ));
    echo(&egress, get(&format!("http://mixed.example:{port}/"))).await;
}

#[tokio::test]
async fn pooled_connection_is_not_shared_across_grants() {
    let server = TestServer::start().await;
    let (clients, metrics) = (HttpClients::with_lookup(Arc::new(Names)), EgressMetrics::default());
    let url = format!("http://rebound.example:{}/", server.port);
    let yaml = |flag: &str| {
        format!(
            "http: [{{scheme: http, host: rebound.example, port: {}{flag}}}]",
            server.port
        )
    };
    let generous = egress_with(&yaml(", allowLoopback: true"), &clients, &metrics);
    echo(&generous, get(&url)).await;
    let strict = egress_with(&yaml(""), &clients, &metrics);
    assert_eq!(refused(&strict, get(&url)).await.1.reason, RefusalReason::Address);
    let equal = egress_with(&yaml(", allowLoopback: true"), &clients, &metrics);
    echo(&equal, get(&url)).await;
    assert_eq!((server.connections(), server.requests()), (1, 2), "equal grants share");
}

#[tokio::test]
async fn private_ca_works_with_ca_grant_and_fails_clearly_without() {
    let (server, ca) = TestServer::start_tls().await;
    let port = server.port;
    let url = format!("https://localhost:{port}/");
    let grant = format!("host: localhost, port: {port}, allowLoopback: true");
    let with_ca = format!("http: [{{{grant}, ca: '{}'}}]", ca.path().display());
    assert_eq!(echo(&egress(&with_ca), get(&url)).await.method, "GET");

    let (error, refusal) = refused(&egress(&format!("http: [{{{grant}}}]")), get(&url)).await;
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
    let message = &refusal.message;
    assert!(
        message.starts_with(&format!(
            "the certificate of https://localhost:{port} is not trusted: it was issued by"
        )),
        "{message}"
    );
    let repaired = refusal
        .yaml
        .unwrap()
        .replace("/etc/cloudwit/ca.pem", &ca.path().to_string_lossy());
    echo(&egress(&format!("http:\n{repaired}")), get(&url)).await;

    let (_other, other_ca) = TestServer::start_tls().await;
    let with_other = format!("http: [{{{grant}, ca: '{}'}}]", other_ca.path().display());
    let (_, refusal) = refused(&egress(&with_other), get(&url)).await;
    assert!(
        refusal.message.contains("which this entry of grants.http names as ca"),
        "{refusal}"
    );
}

/// The thumbprint of the certificate in this PEM file, as OpenSSL prints it.
pub(super) fn thumbprint(file: &tempfile::NamedTempFile, hash: &'static ring::digest::Algorithm) -> String {
    use rustls::pki_types::pem::PemObject as _;
    let certificate = rustls::pki_types::CertificateDer::from_pem_file(file.path()).unwrap();
    let digest = ring::digest::digest(hash, &certificate);
    let bytes: Vec<String> = digest.as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    bytes.join(":")
}

#[tokio::test]
async fn thumbprint_trusts_exactly_one_certificate() {
    let (server, file) = TestServer::start_tls().await;
    let (port, url) = (server.port, format!("https://other.example:{}/", server.port));
    let entry = |print: &str| {
        format!("http: [{{host: other.example, port: {port}, allowLoopback: true, thumbprints: ['{print}']}}]")
    };
    for hash in [&ring::digest::SHA256, &ring::digest::SHA1_FOR_LEGACY_USE_ONLY] {
        let egress = egress(&entry(&thumbprint(&file, hash)));
        assert_eq!(echo(&egress, get(&url)).await.method, "GET");
    }
    let (_other, other) = TestServer::start_tls().await;
    let (error, refusal) = refused(&egress(&entry(&thumbprint(&other, &ring::digest::SHA256))), get(&url)).await;
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
    let presented = thumbprint(&file, &ring::digest::SHA256);
    assert!(
        refusal.message.contains(&presented) && refusal.message.contains("grants.http"),
        "{refusal}"
    );
}

#[tokio::test]
async fn certificate_for_other_name_is_untrusted_without_ca_hint() {
    let (server, ca) = TestServer::start_tls().await;
    let port = server.port;
    let yaml = format!(
        "http: [{{host: other.example, port: {port}, allowLoopback: true, ca: '{}'}}]",
        ca.path().display()
    );
    let (error, refusal) = refused(&egress(&yaml), get(&format!("https://other.example:{port}/"))).await;
    assert!(matches!(error, Error::TlsCertificateError), "{error}");
    assert_eq!(refusal.yaml, None);
    assert!(refusal.message.contains("other.example"), "{refusal}");
}

#[tokio::test]
async fn a_large_body_without_placeholder_arrives_whole() {
    let server = TestServer::start().await;
    let port = server.port;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: localhost, port: {port}, allowLoopback: true}}]"
    ));
    let sent = "x".repeat(3 * request_body::BUFFER_LIMIT);
    let echo = echo(
        &egress,
        with_body(request("PUT", &format!("http://localhost:{port}/")), sent.clone()),
    )
    .await;
    assert!(echo.body == sent);
}

#[tokio::test]
async fn the_host_header_is_always_that_of_the_url() {
    let server = TestServer::start().await;
    let port = server.port;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: localhost, port: {port}, allowLoopback: true}}]"
    ));
    let request = request("GET", &format!("http://localhost:{port}/")).header("host", "internal.example");
    let echo = echo(&egress, with_body(request, "")).await;
    assert_eq!(echo.headers["host"], format!("localhost:{port}"));
    assert!(!echo.headers.contains_key("accept-encoding") && !echo.headers.contains_key("cookie"));
}

#[tokio::test]
async fn redirects_and_compressed_bodies_are_the_guests_business() {
    let server = TestServer::start().await;
    let port = server.port;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: localhost, port: {port}, allowLoopback: true}}]"
    ));
    let redirect = send(&egress, get(&format!("http://localhost:{port}/redirect")))
        .await
        .unwrap();
    assert_eq!(
        (redirect.status().as_u16(), &redirect.headers()["location"]),
        (302, &HeaderValue::from_static("/elsewhere"))
    );
    let gzip = send(&egress, get(&format!("http://localhost:{port}/gzip")))
        .await
        .unwrap();
    assert_eq!(
        (gzip.body().as_ref(), &gzip.headers()["content-encoding"]),
        (b"not really".as_slice(), &HeaderValue::from_static("gzip"))
    );
    assert_eq!(server.requests(), 0, "the redirect was not followed");
}

#[tokio::test]
async fn a_response_over_the_grants_limit_is_not_delivered() {
    let server = TestServer::start().await;
    let port = server.port;
    let grant = format!("scheme: http, host: localhost, port: {port}, allowLoopback: true");
    let url = format!("http://localhost:{port}/large");
    let limited = egress(&format!("http: [{{{grant}, maxResponseBytes: 999}}]"));
    assert!(matches!(
        send(&limited, get(&url)).await,
        Err((Error::HttpResponseBodySize(Some(1000)), None))
    ));
    let enough = egress(&format!("http: [{{{grant}, maxResponseBytes: 1000}}]"));
    assert_eq!(send(&enough, get(&url)).await.unwrap().body().len(), 1000);
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_an_error_and_not_a_short_body() {
    let server = TestServer::start().await;
    let port = server.port;
    let egress = egress(&format!(
        "http: [{{scheme: http, host: localhost, port: {port}, allowLoopback: true}}]"
    ));
    let (error, _) = send(&egress, get(&format!("http://localhost:{port}/cut")))
        .await
        .unwrap_err();
    assert!(
        matches!(error, Error::HttpResponseIncomplete | Error::ConnectionTerminated),
        "{error}"
    );
}

#[tokio::test]
async fn silent_server_is_bounded_by_guest_and_grant() {
    let server = TestServer::start().await;
    let port = server.port;
    let grant = format!("scheme: http, host: localhost, port: {port}, allowLoopback: true");
    for (seconds, asked) in [(60, Duration::from_millis(50)), (1, Duration::from_secs(3600))] {
        let egress = egress(&format!("http: [{{{grant}, responseTimeoutSeconds: {seconds}}}]"));
        let options = RequestOptions {
            first_byte_timeout: Some(asked),
            ..RequestOptions::default()
        };
        let start = std::time::Instant::now();
        let answer = send_with(
            &mut egress.hooks(Instant::now() + Duration::from_secs(60), &egress.secrets),
            get(&format!("http://localhost:{port}/silent")),
            options,
        )
        .await;
        assert!(matches!(answer, Err(Error::HttpResponseTimeout)));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}

#[tokio::test(start_paused = true)]
async fn slow_connect_is_bounded_by_guest_and_grant() {
    let egress = egress("http: [{host: slow.example, connectTimeoutSeconds: 5, responseTimeoutSeconds: 1}]");
    for (asked, expected) in [(Some(2), 2), (Some(3600), 5), (None, 5)] {
        let options = RequestOptions {
            connect_timeout: asked.map(Duration::from_secs),
            ..RequestOptions::default()
        };
        let start = tokio::time::Instant::now();
        let answer = send_with(
            &mut egress.hooks(Instant::now() + Duration::from_secs(60), &egress.secrets),
            get("https://slow.example/"),
            options,
        )
        .await;
        assert!(matches!(answer, Err(Error::ConnectionTimeout)), "{:?}", answer.err());
        assert_eq!(start.elapsed().as_secs(), expected);
    }
}

#[tokio::test]
async fn an_unknown_name_and_a_closed_port_have_their_own_errors() {
    let server = TestServer::start().await;
    // Bound, so that no other test gets the port, and never listening.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = bound.local_addr().unwrap().port();
    assert_ne!(closed, server.port);
    let egress = egress(&format!(
        "http: [{{host: unknown.example}}, {{scheme: http, host: 127.0.0.1, port: {closed}, allowLoopback: true}}]"
    ));
    let unknown = send(&egress, get("https://unknown.example/")).await.unwrap_err();
    assert!(matches!(unknown, (Error::DnsError { .. }, None)), "{unknown:?}");
    let refused = send(&egress, get(&format!("http://127.0.0.1:{closed}/")))
        .await
        .unwrap_err();
    assert!(matches!(refused, (Error::ConnectionRefused, None)), "{refused:?}");
}

#[tokio::test]
async fn proxy_resolves_the_name_and_its_own_address_is_not_checked() {
    let proxy = TestServer::start().await;
    let egress = egress(&format!(
        "http:\n- {{scheme: http, host: unknown.example, proxy: 'http://127.0.0.1:{0}'}}\n\
         - {{scheme: http, host: 169.254.169.254, proxy: 'http://127.0.0.1:{0}'}}",
        proxy.port
    ));
    let echo = echo(&egress, get("http://unknown.example/v1")).await;
    assert_eq!(echo.uri, "http://unknown.example/v1");
    let (_, refusal) = refused(&egress, get("http://169.254.169.254/")).await;
    assert_eq!(
        refusal.reason,
        RefusalReason::Address,
        "a literal address is checked all the same"
    );
}

#[test]
fn unenforceable_grants_are_refused_with_all_reasons() {
    let grants: Grants =
        serde_saphyr::from_str("http: [{host: a.example, ca: /nowhere/a}, {host: b.example, ca: /nowhere/b}]").unwrap();
    let error = Egress::new("test", &grants, EgressMetrics::default())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("grants.http[0].ca: \"/nowhere/a\"") && error.contains("grants.http[1].ca"),
        "{error}"
    );
    let invalid = Grants {
        http: vec![Default::default()],
        ..Grants::default()
    };
    assert!(Egress::new("test", &invalid, EgressMetrics::default()).is_err());
}

/// Collects what is logged, at every level and by every crate.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// For the whole process: with a subscriber for one thread, tests on other threads could switch log lines off for all.
    fn of_the_process() -> Self {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::set_global_default(subscriber).expect("this is the only one");
        log
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn refusal_is_one_log_line_and_never_logs_a_secret() {
    let log = Log::of_the_process();
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let egress = egress(&secrets::granted(server.port, &dir));
    let here = format!("http://localhost:{}/", server.port);
    let mut call = call(&egress);
    let (basic, plain, form) = secrets::three_of(&call);
    for url in [
        &here,
        "http://localhost:1/",
        "http://localhost:1/",
        "http://localhost:1/",
    ] {
        let request = request("POST", url).header("authorization", &basic);
        let _ = send_in(&mut call, with_body(request, format!("{plain}&{form}"))).await;
    }
    let _ = send_in(&mut call, get(&format!("{here}?{plain}"))).await;
    assert_eq!(server.requests(), 1);
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let refusals = text
        .lines()
        .filter(|line| line.contains("WARN") && line.contains("localhost:1 is not granted"));
    assert_eq!(refusals.count(), 1, "{text}");
    assert!(
        text.contains(
            "add to grants.http: - {scheme: http, host: localhost, port: 1, methods: [POST], allowLoopback: true}"
        ),
        "{text}"
    );
    for shape in [secrets::CANARY, "canary", "quill", "YWRtaW46Y2FuYXJ5ICJxdWlsbCI="] {
        assert!(!text.contains(shape), "{shape} is in the log:\n{text}");
    }
}

#[tokio::test]
async fn fenced_process_sends_nothing_and_aborts_in_flight() {
    let server = TestServer::start().await;
    let open = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let asked = Arc::clone(&open);
    let clients = HttpClients::only_while(move || asked.load(std::sync::atomic::Ordering::SeqCst));
    let port = server.port;
    let yaml = format!("http: [{{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}]");
    let egress = egress_with(&yaml, &clients, &EgressMetrics::default());
    echo(&egress, get(&format!("http://127.0.0.1:{port}/before"))).await;

    let mut hooks = egress.hooks(Instant::now() + Duration::from_secs(60), &egress.secrets);
    let in_flight = get(&format!("http://127.0.0.1:{port}/during"));
    let mut in_flight = Box::pin(send_with(&mut hooks, in_flight, RequestOptions::default()));
    assert!(futures::poll!(in_flight.as_mut()).is_pending());
    open.store(false, std::sync::atomic::Ordering::SeqCst);
    assert!(matches!(in_flight.await, Err(Error::HttpRequestDenied)));
    let sent = server.requests();
    let (error, _) = send(&egress, get(&format!("http://127.0.0.1:{port}/after")))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::HttpRequestDenied), "{error}");
    assert_eq!(server.requests(), sent);
}
