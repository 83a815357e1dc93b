//! Waiting for a turn in paused time, and through the hooks against a server on 127.0.0.1.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use tokio::time::Instant;
use wasmtime_wasi_http::WasiHttpHooks as _;

use crate::egress::Egress;
use crate::egress::budget::rate_limit::Rate;
use crate::egress::budget::*;
use crate::egress::metrics::EgressMetrics;
use crate::grants::{Grants, HttpGrant};
use crate::net::destination::{Destination, Host, Scheme};
use crate::net::testing::TestServer;

const SECOND: Duration = Duration::from_secs(1);

/// What a call has left that is not short of time, on a busy machine too.
const LONG: Duration = Duration::from_secs(30);

/// The pause that the server sets, in seconds: long enough that it is not over when the next call begins.
const PAUSE: u64 = 6;

fn budget(requests_per_second: f64, burst: u32) -> Arc<RequestBudget> {
    let grant = HttpGrant {
        requests_per_second: Some(requests_per_second),
        burst: Some(burst),
        ..HttpGrant::default()
    };
    let to = Destination {
        scheme: Scheme::Https,
        host: Host::parse("api.example.com").unwrap(),
        port: 443,
    };
    RequestBudgets::default().of(&to, || Rate::of(&grant))
}

/// A provider that may reach the server, with this in its grant.
fn egress(server: &TestServer, more: &str, metrics: &EgressMetrics) -> Arc<Egress> {
    let yaml = format!(
        "http: [{{scheme: http, host: 127.0.0.1, port: {}, allowLoopback: true{more}}}]",
        server.port
    );
    let grants: Grants = serde_saphyr::from_str(&yaml).unwrap();
    Egress::new("test", &grants, metrics.clone()).unwrap_or_else(|error| panic!("{error}"))
}

/// Sends a GET in a call that has this much time left. Status, `Retry-After` and body.
async fn get(egress: &Arc<Egress>, server: &TestServer, path: &str, left: Duration) -> (u16, Option<u64>, String) {
    let request = http::Request::get(format!("http://127.0.0.1:{}{path}", server.port))
        .body(Full::default().map_err(|never| match never {}).boxed_unsync())
        .unwrap();
    let mut hooks = egress.hooks(Instant::now() + left, &egress.secrets);
    let answer = hooks.send_request(request, None, Box::new(async { Ok(()) }));
    let (head, body) = Box::into_pin(answer).await.unwrap().0.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let after = head.headers.get(http::header::RETRY_AFTER);
    let after = after.map(|value| value.to_str().unwrap().parse().unwrap());
    (head.status.as_u16(), after, String::from_utf8_lossy(&body).into_owned())
}

fn metric(metrics: &EgressMetrics, start: &str) -> Option<String> {
    let mut registry = prometheus_client::registry::Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let line = text.lines().find(|line| line.starts_with(start))?;
    Some(line.rsplit(' ').next()?.to_owned())
}

#[tokio::test(start_paused = true)]
async fn turns_are_given_in_the_order_of_asking_and_at_the_rate() {
    let (budget, metrics) = (budget(10.0, 2), EgressMetrics::default());
    let start = Instant::now();
    let order = Mutex::new(Vec::new());
    join_all((0..12).map(|call| {
        let (budget, metrics, order) = (&budget, &metrics, &order);
        async move {
            let admitted = budget.turn(start + 60 * SECOND, "test", metrics).await;
            assert!(admitted.is_ok());
            order.lock().unwrap().push(call);
        }
    }))
    .await;
    assert_eq!(order.into_inner().unwrap(), (0..12).collect::<Vec<_>>());
    let took = start.elapsed();
    assert!((SECOND..SECOND + SECOND / 10).contains(&took), "{took:?}");
    let waits = r#"cloudwit_egress_waits_total{provider="test",reason="budget"}"#;
    assert_eq!(metric(&metrics, waits).as_deref(), Some("10"));
    let waiting = r#"cloudwit_egress_requests_waiting{provider="test"}"#;
    assert_eq!(metric(&metrics, waiting).as_deref(), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_while_it_waits_makes_room() {
    let (budget, metrics) = (budget(1.0, 1), EgressMetrics::default());
    let start = Instant::now();
    let latest = start + 60 * SECOND;
    drop(budget.turn(latest, "test", &metrics).await.ok().unwrap());
    let given_up = tokio::time::timeout(SECOND / 2, budget.turn(latest, "test", &metrics));
    let (gone, next) = tokio::join!(given_up, budget.turn(latest, "test", &metrics));
    assert!(gone.is_err() && next.is_ok());
    assert_eq!(start.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn pause_refuses_waiting_calls_it_outlasts() {
    let (budget, metrics) = (budget(1.0, 1), EgressMetrics::default());
    let start = Instant::now();
    let first = budget.turn(start + 60 * SECOND, "test", &metrics).await.ok().unwrap();
    let short = budget.turn(start + 5 * SECOND, "test", &metrics);
    let long = budget.turn(start + 60 * SECOND, "test", &metrics);
    let pause = async {
        tokio::task::yield_now().await;
        first.pause(10 * SECOND, "test", &metrics);
        drop(first);
        Instant::now()
    };
    let refused = async { (short.await.err().unwrap(), Instant::now()) };
    let admitted = async { (long.await.is_ok(), Instant::now()) };
    let (began, (refused, refused_at), (admitted, admitted_at)) = tokio::join!(pause, refused, admitted);
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers()["retry-after"], "10");
    assert_eq!(refused_at, began);
    assert!(admitted && admitted_at >= began + 10 * SECOND);
}

#[test]
fn wildcards_are_bounded_in_memory_and_pause_is_kept() {
    let (budgets, now) = (RequestBudgets::default(), Instant::now());
    let to = |number: usize| Destination {
        scheme: Scheme::Https,
        host: Host::parse(&format!("h{number}.example.com")).unwrap(),
        port: 443,
    };
    budgets.of(&to(0), || None).limit.lock().pause(SECOND * 60, now);
    for number in 1..10 * REMEMBERED {
        budgets.of(&to(number), || None);
    }
    assert!(budgets.0.lock().len() <= REMEMBERED);
    assert!(!budgets.of(&to(0), || None).limit.lock().is_idle(now));
}

#[tokio::test]
async fn deckhouse_12982_limiter_guards_cloud_and_metric_shows_it() {
    let (server, metrics) = (TestServer::start().await, EgressMetrics::default());
    let egress = egress(&server, ", requestsPerSecond: 0.01, burst: 3", &metrics);
    for _ in 0..3 {
        assert_eq!(get(&egress, &server, "/", LONG).await.0, 200);
    }
    let (status, after, text) = get(&egress, &server, "/", LONG).await;
    assert_eq!(status, 429);
    assert!(after.is_some_and(|after| (70..=100).contains(&after)), "{after:?}");
    assert!(
        text.contains("not sent by Cloudwit") && text.contains("requestsPerSecond"),
        "{text}"
    );
    assert_eq!(server.requests(), 3);
    let throttled = r#"cloudwit_egress_throttled_total{provider="test",reason="budget"}"#;
    assert_eq!(metric(&metrics, throttled).as_deref(), Some("1"));
}

#[tokio::test]
async fn syself_1331_retry_after_holds_for_all_calls() {
    let (server, metrics) = (TestServer::start().await, EgressMetrics::default());
    let egress = egress(&server, "", &metrics);
    for status in [429, 503] {
        let before = server.requests();
        let began = Instant::now();
        let asked = get(&egress, &server, &format!("/answer/{status}/{PAUSE}"), LONG).await;
        assert_eq!((asked.0, asked.1), (status, Some(PAUSE)));
        // Who has no time is told so without a request, the others all wait, and all arrive.
        let (status, after, text) = get(&egress, &server, "/", SECOND / 2).await;
        assert_eq!(status, 429);
        assert!(after.is_some_and(|after| (1..=PAUSE).contains(&after)), "{after:?}");
        assert!(text.contains("set a pause"), "{text}");
        assert_eq!(server.requests(), before + 1);
        let answers = join_all((0..20).map(|_| get(&egress, &server, "/", LONG))).await;
        assert!(answers.iter().all(|(status, ..)| *status == 200));
        assert!(began.elapsed() >= Duration::from_secs(PAUSE));
        assert_eq!(server.requests(), before + 21);
    }
    let pauses = r#"cloudwit_egress_pauses_total{provider="test"}"#;
    assert_eq!(metric(&metrics, pauses).as_deref(), Some("2"));
}

#[tokio::test]
async fn a_pause_is_for_one_api_host_and_not_for_its_neighbour() {
    let (paused, other) = (TestServer::start().await, TestServer::start().await);
    let yaml = format!(
        "http:\n- {{scheme: http, host: 127.0.0.1, port: {}, allowLoopback: true}}\n\
         - {{scheme: http, host: 127.0.0.1, port: {}, allowLoopback: true}}",
        paused.port, other.port
    );
    let grants: Grants = serde_saphyr::from_str(&yaml).unwrap();
    let egress = Egress::new("test", &grants, EgressMetrics::default()).unwrap();
    assert_eq!(get(&egress, &paused, "/answer/429/60", LONG).await.0, 429);
    assert_eq!(get(&egress, &other, "/", LONG).await.0, 200);
    assert_eq!(get(&egress, &paused, "/", SECOND).await.0, 429);
    assert_eq!(paused.requests(), 1);
}
