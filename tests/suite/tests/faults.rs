//! Guests that misbehave, each in its own way. Whatever they do costs the one call in which they do it: the fault
//! says what happened and carries the guest's last output, the next call works, and the host does not grow.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex as StdMutex};
use std::time::{Duration, Instant};

use cloudwit_host::{HostOptions, Limits, Provider, ProviderSettings};
use cloudwit_model::{
    Cloud, CloudError, Failure, FaultKind, NewRoute, NodeRef, Presence, ProviderFault, RouteTokens, Service, Target,
};
use cloudwit_suite::hosting::{Hosting, LONG, TRIGGER, limited, node, settings};
use tokio::sync::{Mutex, MutexGuard};

/// How often each guest misbehaves; memory that is lost at each time adds up.
const TIMES: usize = 5;

/// What the process may grow by meanwhile. A single instance of `grows` that is not given back is 64 MiB.
const GROWTH: u64 = 24 << 20;

/// A host for one test at a time, since tests here look at the memory of the whole process.
struct Alone {
    hosting: Hosting,
    _turn: MutexGuard<'static, ()>,
}

async fn alone() -> Alone {
    static TURN: Mutex<()> = Mutex::const_new(());
    let turn = TURN.lock().await;
    Alone {
        hosting: Hosting::new(HostOptions::default()),
        _turn: turn,
    }
}

/// Memory of this process that is really there, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

async fn misbehave(provider: &Provider) -> ProviderFault {
    let trigger = NodeRef {
        provider_id: Some("test://trigger".into()),
        ..node(TRIGGER)
    };
    match tokio::time::timeout(LONG, provider.lookup(&[trigger]))
        .await
        .expect("every call ends")
    {
        Err(CloudError::Fault(fault)) => fault,
        other => panic!("no fault: {other:?}"),
    }
}

async fn behaves(provider: &Provider) {
    let answers = provider.lookup(&[node("a"), node("b")]).await.unwrap();
    let ids: Vec<_> = answers
        .iter()
        .map(|answer| &answer.as_ref().unwrap().instance().unwrap().provider_id)
        .collect();
    assert_eq!(ids, ["test://a", "test://b"]);
}

/// Lets the guest misbehave several times, with a good call after each. Gives the last fault.
async fn costs_one_call(guest: &str, settings: ProviderSettings, kind: FaultKind, message: &str) -> ProviderFault {
    let alone = alone().await;
    let provider = alone.hosting.load(guest, settings).await;
    behaves(&provider).await;
    let mut last = misbehave(&provider).await;
    behaves(&provider).await;
    let before = resident();
    for _ in 1..TIMES {
        last = misbehave(&provider).await;
        behaves(&provider).await;
    }
    let grown = resident().saturating_sub(before);
    assert!(grown < GROWTH, "the host grew by {} KiB", grown >> 10);
    assert_eq!(last.kind, kind, "{last}");
    assert!(last.message.contains(message), "{message:?} is missing in: {last}");
    assert_eq!(last.provider, format!("{guest} {}", env!("CARGO_PKG_VERSION")));
    let faults = format!(
        "cloudwit_provider_faults_total{{provider=\"guest\",kind=\"{}\"}}",
        kind.label()
    );
    assert_eq!(alone.hosting.metric(&faults), Some(TIMES as f64));
    assert_eq!(alone.hosting.metric("cloudwit_provider_instances_in_use"), Some(0.0));
    last
}

fn quick() -> Limits {
    Limits {
        cpu_time: Duration::from_millis(200),
        ..Limits::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_spins_is_stopped_by_its_cpu_time() {
    let fault = costs_one_call(
        "spins",
        limited(quick()),
        FaultKind::Deadline,
        "more than 200ms of CPU time",
    )
    .await;
    assert!(fault.to_string().contains("took too long"), "{fault}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_guest_that_spins_lets_others_run_even_on_one_thread() {
    let alone = alone().await;
    let spins = alone.hosting.load("spins", settings()).await;
    let (trigger, good) = ([node(TRIGGER)], [node("a")]);
    tokio::select! {
        biased;
        stopped = spins.lookup(&trigger) => panic!("the spinning call ended first: {stopped:?}"),
        answered = spins.lookup(&good) => assert_eq!(answered.unwrap().len(), 1),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_grows_is_stopped_by_its_memory_limit() {
    let message = "limits.memoryBytes is 67108864";
    costs_one_call("grows", settings(), FaultKind::Memory, message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_in_handles_count_as_memory_of_the_call() {
    let mut settings = settings();
    settings.limits.memory_bytes = 16 << 20;
    costs_one_call("hoards_headers", settings, FaultKind::Memory, "bytes of HTTP headers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_ends_up_in_the_fault_with_its_text() {
    let fault = costs_one_call("panics", settings(), FaultKind::Trap, "panicked or aborted").await;
    assert!(fault.output.contains("no idea what to do with \"trigger\""), "{fault}");
    assert!(fault.output.contains("panics.rs:"), "the place: {fault}");
    assert!(fault.to_string().contains("its last output: "), "{fault}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_exits_ends_its_call_and_nothing_else() {
    let fault = costs_one_call("exits", settings(), FaultKind::Trap, "process::exit").await;
    assert_eq!(fault.output, "cannot go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_recursion_uses_up_only_the_guests_stack() {
    costs_one_call(
        "recurses",
        settings(),
        FaultKind::Trap,
        "used up its stack, most likely by endless recursion",
    )
    .await;
    let alone = alone().await;
    let provider = alone.hosting.load("recurses", settings()).await;
    let wide = NodeRef {
        system_uuid: Some("wide".into()),
        ..node(TRIGGER)
    };
    let error = provider.lookup(&[wide]).await.unwrap_err().to_string();
    assert!(
        error.contains("outside of its memory, for example by endless recursion"),
        "{error}"
    );
    behaves(&provider).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_about_fewer_nodes_is_not_used() {
    let message = "instances.lookup has 0 answers for 1 items";
    costs_one_call("wrong_length", settings(), FaultKind::BadAnswer, message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_machine_costs_its_own_node_alone() {
    let alone = alone().await;
    let provider = alone.hosting.load("odd_machines", settings()).await;
    let ways = [
        ("empty-id", "the provider id of node \"trigger\" is empty"),
        (
            "bad-address",
            "the ExternalIP of node \"trigger\" is \"203.0.113.300\", which is not an IP address",
        ),
        ("empty-label", "the key of a label of node \"trigger\" is empty"),
        (
            "foreign-id",
            "the provider id of node \"trigger\" is \"other://1\", which begins with no prefix",
        ),
        (
            "many-addresses",
            "the addresses of node \"trigger\" has 20000 entries, at most 1024 are allowed",
        ),
        ("long-zone", "at most 65536 are allowed"),
    ];
    for (way, expected) in ways {
        let odd = NodeRef {
            provider_id: Some(format!("test://{way}")),
            ..node(TRIGGER)
        };
        let answers = provider.lookup(&[node("a"), odd, node("b")]).await.unwrap();
        match &answers[1] {
            Err(Failure::InvalidResponse(problem)) => assert!(problem.contains(expected), "{problem}"),
            other => panic!("{way} is not invalid: {other:?}"),
        }
        for (answer, id) in [(&answers[0], "test://a"), (&answers[2], "test://b")] {
            assert_eq!(answer.as_ref().unwrap().instance().unwrap().provider_id, id, "{way}");
        }
    }
    let invalid = |kind: &str| {
        let name = format!("cloudwit_provider_invalid_items_total{{provider=\"guest\",kind=\"{kind}\"}}");
        alone.hosting.metric(&name)
    };
    assert_eq!(invalid("node"), Some(ways.len() as f64), "each is counted once");
    assert_eq!(alone.hosting.metric("cloudwit_provider_faults_total"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_odd_route_is_left_out_and_counted() {
    let alone = alone().await;
    let provider = alone.hosting.load("odd_machines", settings()).await;
    let routes = provider.list_routes().await.unwrap();
    let ids: Vec<&str> = routes.iter().map(|route| route.id.as_str()).collect();
    assert_eq!(ids, ["a", "b"]);
    let invalid = "cloudwit_provider_invalid_items_total{provider=\"guest\",kind=\"route\"}";
    assert_eq!(alone.hosting.metric(invalid), Some(1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_20_mb_is_refused_before_it_is_copied() {
    let message = "more than 16777216 bytes to the host at once (limits.answerBytes)";
    costs_one_call("huge_answer", settings(), FaultKind::BadAnswer, message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_waits_in_the_host_is_stopped_by_the_wall_clock() {
    // Long enough for the calls that behave, on a busy machine too.
    let limits = Limits {
        wall_time: Duration::from_secs(5),
        ..Limits::default()
    };
    let started = Instant::now();
    costs_one_call(
        "sleeps",
        limited(limits),
        FaultKind::Deadline,
        "not done after 5s (limits.wallTime)",
    )
    .await;
    // The turns of other tests are in it.
    assert!(started.elapsed() < Duration::from_secs(3600), "it sleeps for an hour");
}

/// Counts the lines and bytes that `tracing` prints.
#[derive(Clone, Default)]
struct Printed(Arc<StdMutex<(usize, usize)>>);

impl std::io::Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut counts = self.0.lock().unwrap();
        counts.0 += bytes.iter().filter(|byte| **byte == b'\n').count();
        counts.1 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_flood_of_output_is_cut_off_and_the_panic_behind_it_is_not() {
    // While only one subscriber exists, tracing asks the thread that comes to a line first whether anybody wants the line,
    // and remembers that for all threads. Tests run on many; a second subscriber keeps each asking for itself.
    let _second: tracing::Dispatch = tracing_subscriber::fmt().finish().into();
    let printed = Printed::default();
    let writer = printed.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    // With a secret whose beginning is in every line there is most to do.
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "canary-canary-canary-7391").unwrap();
    let mut settings = settings();
    settings.grants.secrets = vec![cloudwit_host::grants::SecretGrant {
        name: "token".into(),
        file: file.path().into(),
        hosts: Vec::new(),
        uses: vec![cloudwit_host::grants::SecretUse::Reveal],
    }];
    let fault = costs_one_call("floods_log", settings, FaultKind::Trap, "panicked").await;
    assert!(fault.output.contains("drowned"), "{fault}");
    assert!(fault.output.len() < 5 << 10, "{} bytes", fault.output.len());
    let (lines, bytes) = *printed.0.lock().unwrap();
    let each = lines / TIMES;
    assert!((100..2000).contains(&each), "{each} lines for each flood");
    assert!(bytes / TIMES < 512 << 10, "{} bytes for each flood", bytes / TIMES);
}

#[tokio::test(flavor = "multi_thread")]
async fn balancer_without_ingress_is_not_ready() {
    let alone = alone().await;
    let provider = alone.hosting.load("no_ingress", settings()).await;
    let service = |name: &str| Service {
        name: name.into(),
        uid: "u".into(),
        ..Service::default()
    };
    let targets = [Target {
        node: node("a"),
        ready: true,
    }];
    let bad = |error: CloudError| match error {
        CloudError::Fault(fault) if fault.kind == FaultKind::BadAnswer => fault.message,
        other => panic!("no bad answer: {other}"),
    };
    let message = bad(provider
        .ensure_balancer(&service(TRIGGER), &targets, None)
        .await
        .unwrap_err());
    assert!(message.contains("ingress is empty"), "{message}");
    assert_eq!(
        provider
            .ensure_balancer(&service("web"), &targets, None)
            .await
            .unwrap()
            .ingress
            .len(),
        1
    );
    // From `get` it is a load balancer that is half built.
    assert_eq!(
        provider.get_balancer(&service(TRIGGER)).await.unwrap().unwrap().ingress,
        []
    );

    let new = NewRoute {
        name_hint: "n".into(),
        destination: "10.0.0.0/24".into(),
        node: node("a"),
    };
    let message = bad(provider.apply_routes(&[new], &[], RouteTokens::NONE).await.unwrap_err());
    assert_eq!(message, "routes.apply (created) has 0 answers for 1 items");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_request_is_a_failure_with_the_grant_to_add() {
    let alone = alone().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let app = axum::Router::new().route("/", axum::routing::get(|| async { "hello" }));
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let mut settings = settings();
    let grant = |host: &str, port: u16| cloudwit_host::grants::HttpGrant {
        scheme: cloudwit_host::destination::Scheme::Http,
        host: host.into(),
        port: Some(port),
        ..Default::default()
    };
    let loopback = cloudwit_host::grants::HttpGrant {
        allow_loopback: true,
        ..grant("127.0.0.1", port)
    };
    settings.grants.http = vec![grant("169.254.169.254", 80), grant("localhost", port), loopback];
    let provider = alone.hosting.load("forbidden_host", settings).await;

    for (url, expected) in [
        (format!("http://127.0.0.1:{port}/"), "got through: status 200"),
        (format!("http://127.0.0.1:{}/", port ^ 1), "port"),
        (
            "https://cloud.example.com/".into(),
            "add to grants.http: - {host: cloud.example.com",
        ),
        (
            "http://169.254.169.254/latest/meta-data/".into(),
            "allowLinkLocal: true",
        ),
        (format!("http://localhost:{port}/"), "allowLoopback: true"),
    ] {
        let trigger = NodeRef {
            provider_id: Some(url.clone()),
            ..node(TRIGGER)
        };
        match provider.lookup(&[trigger]).await {
            Err(CloudError::Failure(failure)) => {
                assert!(
                    failure.to_string().contains(expected),
                    "{expected:?} is missing for {url} in: {failure}"
                );
            }
            other => panic!("no failure for {url}: {other:?}"),
        }
    }
    behaves(&provider).await;
    let refusals = alone
        .hosting
        .metric("cloudwit_egress_refusals_total{provider=\"guest\",reason=\"address\"}");
    assert_eq!(refusals, Some(2.0));
    server.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_no_files_arguments_variables_or_sockets() {
    let alone = alone().await;
    let provider = alone.hosting.load("looks_around", settings()).await;
    let error = provider.lookup(&[node(TRIGGER)]).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "files: None, passwd: None, arguments: 0, environment: 0, socket: false"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_export_is_never_called() {
    let alone = alone().await;
    let provider = alone.hosting.load("only_instances", settings()).await;
    let abilities = provider.abilities();
    assert!(abilities.instances && !abilities.load_balancers && !abilities.routes);
    for error in [
        provider.list_routes().await.unwrap_err(),
        provider.get_balancer(&Service::default()).await.unwrap_err(),
    ] {
        assert!(
            matches!(&error, CloudError::Fault(fault) if fault.kind == FaultKind::NotExported),
            "{error}"
        );
    }
    assert!(matches!(
        provider.lookup(&[node("a")]).await.unwrap()[0],
        Ok(Presence::Running(_))
    ));
    assert_eq!(provider.check().await.unwrap(), []);
    provider.probe().await.unwrap();
}
