//! What guests may reach, seen from a guest: the component `fetches` sends one request, through the SDK, `wasi:http` and the egress, to
//! a server on 127.0.0.1, and tells what came back. The finer rules are tested beside the egress itself, without wasm.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use cloudwit_host::http_client::HttpClients;
use cloudwit_host::resolver::{Lookup, LookupFuture};
use cloudwit_host::{Host, HostOptions, Limits, Outside, Provider, ProviderSettings};
use cloudwit_model::{
    Cloud, CloudError, ClusterNode, ClusterView, EventSink, Failure, FaultKind, NodeRef, ObjectEvent, Service,
};
use cloudwit_suite::hosting::LONG;
use cloudwit_test_support::eventually;
use test_server::{Echo, TestServer, secret_file};

/// The same server that the host's own tests use.
#[path = "../../../runtime/host/src/net/testing.rs"]
mod test_server;

const CANARY: &str = "canary/quill+1";

/// Knows the names of the tests.
struct Names;

impl Lookup for Names {
    fn lookup(&self, name: &str) -> LookupFuture {
        let addresses: Vec<IpAddr> = match name {
            "localhost" | "cloud.example" | "elsewhere.example" => vec![[127, 0, 0, 1].into()],
            "metadata.example" => vec![[169, 254, 169, 254].into()],
            _ => return Box::pin(async { Err(io::Error::other("no such name")) }),
        };
        Box::pin(async move { Ok(addresses) })
    }
}

/// A cluster in which there is nothing.
struct Nothing;

impl EventSink for Nothing {
    fn emit(&self, _event: ObjectEvent) {}
}

impl ClusterView for Nothing {
    fn nodes(&self) -> Vec<ClusterNode> {
        Vec::new()
    }

    fn services(&self) -> Vec<Service> {
        Vec::new()
    }
}

/// A host that compiles the guest once.
struct Hosting {
    host: Host,
    _cache: tempfile::TempDir,
}

fn hosting() -> Hosting {
    let cache = tempfile::tempdir().unwrap();
    let options = HostOptions {
        cache_dir: Some(cache.path().into()),
        ..HostOptions::default()
    };
    let host = Host::new(options, &mut prometheus_client::registry::Registry::default()).unwrap();
    Hosting {
        host: host.with_http_clients(HttpClients::with_lookup(Arc::new(Names))),
        _cache: cache,
    }
}

async fn guest(name: &'static str) -> PathBuf {
    tokio::task::spawn_blocking(move || cloudwit_test_support::programs::guests::test_guest(name))
        .await
        .unwrap()
}

/// The guest `fetches` with these grants.
async fn load(hosting: &Hosting, grants: &str) -> Provider {
    load_guest(hosting, "fetches", grants, Limits::default()).await
}

/// A guest with these grants and limits.
async fn load_guest(hosting: &Hosting, name: &'static str, grants: &str, limits: Limits) -> Provider {
    let settings = ProviderSettings {
        name: name.into(),
        config_text: String::new(),
        values: Vec::new(),
        cluster_name: "test".into(),
        cluster_cidrs: Vec::new(),
        grants: serde_saphyr::from_str(grants).unwrap_or_else(|error| panic!("{error}\n{grants}")),
        limits,
    };
    let outside = Outside {
        events: Arc::new(Nothing),
        cluster: Arc::new(Nothing),
    };
    hosting.host.load(&guest(name).await, settings, outside).await.unwrap()
}

/// What the guest is to send.
#[derive(Clone, Default)]
struct Wanted<'a> {
    request: &'a str,
    headers: &'a [&'a str],
    body: Option<&'a str>,
}

impl Wanted<'_> {
    async fn from(&self, provider: &Provider) -> Failure {
        let body = self.body.map(|body| format!("body: {body}"));
        let names = ["trigger", self.request]
            .into_iter()
            .chain(self.headers.iter().copied())
            .chain(body.as_deref());
        let nodes: Vec<NodeRef> = names
            .map(|name| NodeRef {
                name: name.into(),
                ..NodeRef::default()
            })
            .collect();
        match provider.lookup(&nodes).await {
            Err(CloudError::Failure(failure)) => failure,
            other => panic!("{other:?}"),
        }
    }

    /// What the server was sent.
    async fn arrives(&self, provider: &Provider) -> Echo {
        let answer = self.from(provider).await.to_string();
        let (status, body) = answer.split_once(' ').unwrap();
        assert_eq!(status, "200", "{answer}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// Why the request did not leave: the text of the failure.
    async fn is_denied(&self, provider: &Provider) -> String {
        match self.from(provider).await {
            Failure::Denied(reason) => reason.message,
            other => panic!("not denied but {other:?}"),
        }
    }
}

fn get(url: &str) -> String {
    format!("GET: {url}")
}

/// The YAML that a message tells to paste.
fn yaml(message: &str) -> &str {
    let (_, entry) = message
        .split_once("- {")
        .unwrap_or_else(|| panic!("no YAML in: {message}"));
    let end = entry.rfind('}').unwrap();
    &message[message.len() - entry.len() - 3..][..end + 4]
}

/// The compiler alone writes gigabytes at this level, and sees no secret.
const LOGGED: &str = "trace,cranelift=off,regalloc2=off,wasmparser=off,wasmtime=off,wasmtime_wasi_http=trace";

/// All that is logged in this process, at every level and by every crate but the compiler's.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text() -> String {
        static LOG: OnceLock<Log> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let log = Log::default();
            let writer = log.clone();
            tracing_subscriber::fmt()
                .with_env_filter(LOGGED)
                .with_ansi(false)
                .with_writer(move || writer.clone())
                .init();
            log
        });
        String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_calls_in_a_hundred_instances_share_one_connection() {
    let (hosting, server) = (hosting(), TestServer::start().await);
    let port = server.port;
    let provider = load(
        &hosting,
        &format!("http: [{{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}]"),
    )
    .await;
    for call in 0..100 {
        let request = get(&format!("http://127.0.0.1:{port}/call/{call}?page=2"));
        let echo = Wanted {
            request: &request,
            ..Wanted::default()
        }
        .arrives(&provider)
        .await;
        assert_eq!(
            (echo.method.as_str(), echo.uri),
            ("GET", format!("/call/{call}?page=2"))
        );
        assert_eq!(echo.headers["host"], format!("127.0.0.1:{port}"));
    }
    assert_eq!((server.requests(), server.connections()), (100, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn ungranted_never_leaves_and_passes_with_logged_yaml() {
    Log::text();
    let (hosting, server) = (hosting(), TestServer::start().await);
    let port = server.port;
    let request = format!("POST: http://cloud.example:{port}/v1");
    let wanted = Wanted {
        request: &request,
        body: Some("{}"),
        ..Wanted::default()
    };
    for (entry, why) in [
        ("- {scheme: http, host: other.example}".to_owned(), "the host is not"),
        (
            "- {scheme: http, host: '*.example', port: 1}".to_owned(),
            "the host is, but not this port",
        ),
        (
            format!("- {{host: cloud.example, port: {port}}}"),
            "host and port are, but not this scheme",
        ),
        (
            format!("- {{scheme: http, host: cloud.example, port: {port}, methods: [GET]}}"),
            "but not this method",
        ),
    ] {
        let before = server.connections();
        let granted = format!("http:\n{entry}\n");
        let denied = wanted.is_denied(&load(&hosting, &granted).await).await;
        assert!(denied.contains(why), "{denied}");
        assert_eq!(server.connections(), before, "{denied}");
        let line = format!("add to grants.http: {}", yaml(&denied));
        let log = Log::text();
        assert!(
            log.lines()
                .any(|logged| logged.contains(" WARN ") && logged.contains(&line)),
            "{line} is not in\n{log}"
        );

        // The name turns out to lead to this machine, which takes a second answer of the operator.
        let granted = granted + yaml(&denied) + "\n";
        let denied = wanted.is_denied(&load(&hosting, &granted).await).await;
        assert!(
            denied.contains("the name leads to 127.0.0.1, which is loopback"),
            "{denied}"
        );
        assert_eq!(server.connections(), before, "{denied}");
        let echo = wanted.arrives(&load(&hosting, &(granted + yaml(&denied))).await).await;
        assert_eq!((echo.method.as_str(), echo.body.as_str()), ("POST", "{}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn local_and_metadata_addresses_need_explicit_permission() {
    let (hosting, server) = (hosting(), TestServer::start().await);
    let port = server.port;
    let provider = load(
        &hosting,
        &format!(
            "http:\n- {{scheme: http, host: 127.0.0.1, port: {port}}}\n- {{scheme: http, host: cloud.example, port: {port}}}\n\
             - {{scheme: http, host: metadata.example}}\n- {{scheme: http, host: 169.254.169.254}}"
        ),
    )
    .await;
    for (url, why) in [
        (format!("http://127.0.0.1:{port}/"), "the address is loopback"),
        (format!("http://2130706433:{port}/"), "the address is loopback"),
        (
            format!("http://cloud.example:{port}/"),
            "the name leads to 127.0.0.1, which is loopback",
        ),
        (
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "the address is link-local",
        ),
        (
            "http://metadata.example/latest/meta-data/".to_owned(),
            "the name leads to 169.254.169.254, which is link-local",
        ),
    ] {
        let denied = Wanted {
            request: &get(&url),
            ..Wanted::default()
        }
        .is_denied(&provider)
        .await;
        assert!(denied.contains(why), "{url}: {denied}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn private_ca_is_trusted_by_grant_else_failure_says_how() {
    let (hosting, (server, ca)) = (hosting(), TestServer::start_tls().await);
    let port = server.port;
    let request = get(&format!("https://localhost:{port}/"));
    let wanted = Wanted {
        request: &request,
        ..Wanted::default()
    };
    let grant = format!("host: localhost, port: {port}, allowLoopback: true");
    let failure = wanted
        .from(&load(&hosting, &format!("http: [{{{grant}}}]")).await)
        .await
        .to_string();
    assert!(
        failure.contains("it was issued by an authority that is not trusted here"),
        "{failure}"
    );
    let repaired = yaml(&failure).replace("/etc/cloudwit/ca.pem", &ca.path().to_string_lossy());
    let echo = wanted
        .arrives(&load(&hosting, &format!("http:\n{repaired}")).await)
        .await;
    assert_eq!(echo.headers["host"], format!("localhost:{port}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_reaches_only_its_host_and_never_the_log() {
    Log::text();
    let (hosting, server) = (hosting(), TestServer::start().await);
    let (port, dir) = (server.port, tempfile::tempdir().unwrap());
    let (user, password) = (
        secret_file(&dir, "user", "admin"),
        secret_file(&dir, "password", CANARY),
    );
    let grants = format!(
        "http:\n- {{scheme: http, host: cloud.example, port: {port}, allowLoopback: true}}\n\
         - {{scheme: http, host: elsewhere.example, port: {port}, allowLoopback: true}}\n\
         secrets:\n- {{name: user, file: '{}', hosts: [cloud.example], uses: [placeholder]}}\n\
         - {{name: password, file: '{}', hosts: ['cloud.example:{port}'], uses: [placeholder]}}\n",
        user.display(),
        password.display()
    );
    let provider = load(&hosting, &grants).await;
    let request = format!("PUT: http://cloud.example:{port}/login");
    let wanted = Wanted {
        request: &request,
        headers: &["authorization: <user:password>", "x-token: <password|base64>"],
        body: Some("user=<user|form>&password=<password|form>"),
    };
    let told = wanted.arrives(&provider).await;
    let echo = server.last().unwrap();
    assert_eq!(echo.headers["authorization"], "Basic YWRtaW46Y2FuYXJ5L3F1aWxsKzE=");
    assert_eq!(echo.headers["x-token"], "Y2FuYXJ5L3F1aWxsKzE=");
    assert_eq!(echo.body, "user=admin&password=canary%2Fquill%2B1");
    assert_eq!(echo.headers["content-length"], echo.body.len().to_string());
    // The server sends all of it back, and of that nobody reads a secret.
    assert_eq!(told.headers["x-token"], "[secret password]");
    // A text as short as "admin" is not taken for a secret.
    assert_eq!(told.body, "user=admin&password=[secret password]");
    for shape in ["canary", "Y2FuYXJ5"] {
        assert!(!format!("{told:?}").contains(shape), "{shape} is in {told:?}");
    }

    let other = format!("PUT: http://elsewhere.example:{port}/login");
    let query = format!("GET: http://cloud.example:{port}/login?password=<password>");
    for (wanted, why) in [
        (
            Wanted {
                request: &other,
                ..wanted.clone()
            },
            "is not granted as a placeholder in requests to http://elsewhere.example",
        ),
        (
            Wanted {
                request: &other,
                headers: &[],
                ..wanted.clone()
            },
            "is not granted as a placeholder",
        ),
        (
            Wanted {
                request: &query,
                ..Wanted::default()
            },
            "its URL contains a placeholder",
        ),
        (
            Wanted {
                body: Some("<passwort>"),
                ..wanted.clone()
            },
            "\"passwort\" is not granted",
        ),
    ] {
        let denied = wanted.is_denied(&provider).await;
        assert!(denied.contains(why), "{denied}");
        assert!(!denied.contains("canary"), "{denied}");
    }
    assert_eq!(server.requests(), 1);

    let log = Log::text();
    assert!(
        log.contains("is not granted as a placeholder in requests to http://elsewhere.example"),
        "{log}"
    );
    for shape in [
        "canary",
        "Y2FuYXJ5L3F1aWxsKzE=",
        "YWRtaW46Y2FuYXJ5L3F1aWxsKzE=",
        "canary%2F",
    ] {
        let line = log.lines().find(|line| line.contains(shape));
        assert!(line.is_none(), "{shape} is in the log: {line:?}");
    }
}

/// One destination, and the secret `password` bound to it.
fn with_password(port: u16, dir: &tempfile::TempDir, password: &str) -> String {
    let file = secret_file(dir, "password", password);
    format!(
        "http:\n- {{scheme: http, host: cloud.example, port: {port}, allowLoopback: true}}\n\
         secrets:\n- {{name: password, file: '{}', hosts: ['cloud.example:{port}'], uses: [placeholder]}}\n",
        file.display()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_cluster_and_cloud_never_pull_a_secret() {
    let (hosting, server) = (hosting(), TestServer::start().await);
    let (port, dir) = (server.port, tempfile::tempdir().unwrap());
    let grants = with_password(port, &dir, CANARY);
    let provider = load_guest(&hosting, "abuses_placeholders", &grants, Limits::default()).await;
    let request = format!("PUT: http://cloud.example:{port}/");
    for (written, decoded) in [
        ("{{secret:password}}", "{{secret:password}}"),
        ("%7B%7Bsecret%3Apassword%7D%7D", "{{secret:password}}"),
        ("\\u007b\\u007bsecret:password|json}}", "{{secret:password|json}}"),
        ("%7b\\u007bbasic:password:password}}", "{{basic:password:password}}"),
        (
            "cloudwit%2Dplaceholder-0123456789abcdef0123456789abcdef",
            "cloudwit-placeholder-0123456789abcdef0123456789abcdef",
        ),
        (
            "cloudwit-placeholder-password.plain",
            "cloudwit-placeholder-password.plain",
        ),
    ] {
        let wanted = Wanted {
            request: &request,
            headers: &[&format!("decode: {written}")],
            body: None,
        };
        assert_eq!(wanted.arrives(&provider).await.body, decoded);
    }
    // A placeholder of an earlier call is a text like any other.
    let wanted = Wanted {
        request: &request,
        headers: &["keep: yes"],
        body: None,
    };
    assert_eq!(wanted.arrives(&provider).await.body, "nothing was kept");
    let first = wanted.arrives(&provider).await.body;
    let second = wanted.arrives(&provider).await.body;
    for kept in [&first, &second] {
        assert!(kept.starts_with("cloudwit-placeholder-"), "{kept}");
    }
    assert_ne!(first, second);
}

/// The most memory that this process ever had, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn multiplied_placeholders_are_refused_with_bounded_memory() {
    let (hosting, server) = (hosting(), TestServer::start().await);
    let (port, dir) = (server.port, tempfile::tempdir().unwrap());
    // Filled, the largest body would have 1.2 GiB.
    let grants = with_password(port, &dir, &"canary".repeat(11_000));
    let provider = load_guest(&hosting, "abuses_placeholders", &grants, Limits::default()).await;
    let request = format!("PUT: http://cloud.example:{port}/");
    let before = peak();
    for (times, says) in [
        ("times: 19000", "contains more than 16 placeholders"),
        ("times: 17", "contains more than 16 placeholders"),
        ("times: 100000", "has more than 1048576 bytes"),
        ("times: 16", "secrets filled it has more than 1048576 bytes"),
    ] {
        let wanted = Wanted {
            request: &request,
            headers: &[times],
            body: None,
        };
        let denied = wanted.is_denied(&provider).await;
        assert!(denied.contains(says), "{times}: {denied}");
    }
    assert_eq!(server.requests(), 0);
    // The other tests of this process compile meanwhile.
    let grown = peak() - before;
    assert!(grown < 768 << 10, "{grown} KiB more at its peak");
}

#[tokio::test(flavor = "multi_thread")]
async fn call_due_after_deadline_is_rate_limited_with_retry_after() {
    let (hosting, server) = (hosting(), TestServer::start().await);
    let port = server.port;
    let provider = load(
        &hosting,
        &format!(
            "http: [{{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true, requestsPerSecond: 0.005, burst: 2}}]"
        ),
    )
    .await;
    let request = get(&format!("http://127.0.0.1:{port}/"));
    let wanted = Wanted {
        request: &request,
        headers: &["strict"],
        body: None,
    };
    for _ in 0..2 {
        assert!(matches!(wanted.from(&provider).await, Failure::Other(text) if text.message.starts_with("200 ")));
    }
    let Failure::RateLimited { after, message } = wanted.from(&provider).await else {
        panic!("the budget of two requests let a third one pass")
    };
    let after = after.map(|after| after.as_secs());
    assert!(after.is_some_and(|after| (150..=200).contains(&after)), "{after:?}");
    assert!(message.message.contains("not sent by Cloudwit"), "{message}");
    assert_eq!(server.requests(), 2);
}

/// What the guest `opens_many_requests` is to do.
fn open(url: &str, requests: usize) -> Vec<NodeRef> {
    vec![NodeRef {
        name: "trigger".into(),
        provider_id: Some(url.into()),
        system_uuid: Some(requests.to_string()),
        ..NodeRef::default()
    }]
}

/// A call that opens hundreds of requests has as many in flight as it may, ends by its own deadline, and leaves room to another call.
#[tokio::test]
async fn requests_in_flight_of_a_call_are_bounded() {
    let (server, hosting) = (TestServer::start().await, hosting());
    let limits = Limits {
        requests_per_call: 5,
        requests: 8,
        wall_time: Duration::from_secs(15),
        ..Limits::default()
    };
    let grants = format!(
        "http: [{{scheme: http, host: localhost, port: {}, allowLoopback: true}}]",
        server.port
    );
    let provider = load_guest(&hosting, "opens_many_requests", &grants, limits).await;
    let url = |path: &str| format!("http://localhost:{}/{path}", server.port);
    let (silent, large) = (open(&url("silent"), 400), open(&url("large"), 3));
    let silent = provider.lookup(&silent);
    let others = async {
        eventually(LONG, "it has as many as it may", || async { server.connections() == 5 }).await;
        provider.lookup(&large).await.unwrap_err()
    };
    let (silent, other) = futures::join!(silent, others);
    assert!(other.to_string().contains("3 responses of 3"), "{other}");
    let Err(CloudError::Fault(fault)) = silent else {
        panic!("{silent:?}")
    };
    assert_eq!(fault.kind, FaultKind::Deadline);
    assert_eq!(server.connections(), 5 + 3);
}

/// Responses that are not read keep their places: the sixth request is not sent, and the call ends by its own deadline.
#[tokio::test]
async fn responses_that_are_never_read_keep_their_places() {
    let (server, hosting) = (TestServer::start().await, hosting());
    let limits = Limits {
        requests_per_call: 5,
        wall_time: Duration::from_secs(15),
        ..Limits::default()
    };
    let grants = format!(
        "http: [{{scheme: http, host: localhost, port: {}, allowLoopback: true}}]",
        server.port
    );
    let provider = load_guest(&hosting, "opens_many_requests", &grants, limits).await;
    let url = format!("http://localhost:{}/large", server.port);
    let five = provider.lookup(&open(&url, 5)).await.unwrap_err();
    assert!(five.to_string().contains("5 responses of 5"), "{five}");
    let six = provider.lookup(&open(&url, 6)).await.unwrap_err();
    assert!(
        matches!(&six, CloudError::Fault(fault) if fault.kind == FaultKind::Deadline),
        "{six:?}"
    );
}
