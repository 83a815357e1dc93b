//! Requests that are held, failed and passed on.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::routing::post;

use super::*;

/// A server that counts, behind a gate; and a client in front of it.
async fn stage() -> (Gate, Client, Arc<AtomicUsize>) {
    let effects = Arc::<AtomicUsize>::default();
    let counter = Arc::clone(&effects);
    let effect = move |body: String| async move {
        counter.fetch_add(1, Ordering::SeqCst);
        format!("did {body}")
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/do", post(effect))).await });
    let client = |url: String| {
        let mut config = Config::new(url.parse().unwrap());
        config.default_retry = false;
        Client::try_from(config).unwrap()
    };
    let gate = Gate::to(client(format!("http://{address}"))).await.unwrap();
    let front = client(gate.url());
    (gate, front, effects)
}

fn request(body: &str) -> axum::http::Request<Vec<u8>> {
    axum::http::Request::post("/do?x=1").body(body.into()).unwrap()
}

#[tokio::test]
async fn mismatch_passes_and_match_stops_before_its_effect() {
    let (gate, client, effects) = stage().await;
    let stop = gate.stop_at(Point::before(Method::POST, "/do").with("b").with("a"));
    assert_eq!(client.request_text(request("a")).await.unwrap(), "did a");
    let sender = tokio::spawn({
        let client = client.clone();
        async move { client.request_text(request("ab")).await }
    });
    stop.reached().await;
    assert_eq!((effects.load(Ordering::SeqCst), stop.count()), (1, 1));
    sender.abort();
    gate.open();
    assert_eq!(client.request_text(request("ab")).await.unwrap(), "did ab");
    assert_eq!(gate.deliver(&stop).await, [200], "it arrives late");
    assert_eq!(effects.load(Ordering::SeqCst), 3);
}

#[test]
fn a_name_in_a_target_is_not_the_beginning_of_another_name() {
    for (target, text, fits) in [
        ("/v1/load-balancers/lb-1", "/v1/load-balancers/lb-1", true),
        ("/v1/load-balancers/lb-1/targets", "/v1/load-balancers/lb-1", true),
        ("/v1/load-balancers/lb-13", "/v1/load-balancers/lb-1", false),
        ("/v1/nodes/gone-too", "/nodes/gone", false),
        ("/v1/nodes/gone", "/nodes/", true),
        ("/v1/x?owner=1&cluster=c", "owner=1", true),
        ("/lb-13/x/lb-1", "lb-1", true),
    ] {
        assert_eq!(contains_whole(target, text), fits, "{text} in {target}");
    }
}

#[tokio::test]
async fn what_is_refused_has_no_effect() {
    let (gate, client, effects) = stage().await;
    gate.refuse(Point::before(Method::POST, "x=1"), StatusCode::UNPROCESSABLE_ENTITY);
    let refused = client.request_text(request("a")).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 422));
    assert_eq!(effects.load(Ordering::SeqCst), 0);
    gate.open();
    assert_eq!(client.request_text(request("a")).await.unwrap(), "did a");
}

#[tokio::test]
async fn fault_hits_requested_count_then_clears() {
    let (gate, client, effects) = stage().await;
    let busy = Fault::status(StatusCode::SERVICE_UNAVAILABLE).header("retry-after", "7");
    let busy = gate.fail(Point::before(Method::POST, "/do"), busy.times(1));
    let cut = gate.fail(Point::before(Method::POST, "/do"), Fault::cut(3).times(1));
    let broken = gate.fail(Point::before(Method::POST, "/do"), Fault::broken(3).times(1));
    let send = || client.send(request("a").map(kube::client::Body::from));
    let refused = send().await.unwrap();
    assert_eq!(
        (refused.status(), &refused.headers()["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"7".parse().unwrap())
    );
    assert_eq!(effects.load(Ordering::SeqCst), 0);
    assert_eq!(client.request_text(request("a")).await.unwrap(), "did");
    assert!(
        client.request_text(request("a")).await.is_err(),
        "the connection breaks in the middle"
    );
    assert_eq!(client.request_text(request("a")).await.unwrap(), "did a");
    assert_eq!(
        (busy.met(), cut.met(), broken.met(), effects.load(Ordering::SeqCst)),
        (1, 1, 1, 3)
    );
    assert_eq!(gate.count(&Point::before(Method::POST, "/do").with("a")), 4);
}

#[tokio::test]
async fn answer_is_edited_after_the_effect() {
    let (gate, client, effects) = stage().await;
    let edit = gate.fail(
        Point::before(Method::POST, "/do"),
        Fault::edit("did", "will do").times(1),
    );
    assert_eq!(client.request_text(request("a")).await.unwrap(), "will do a");
    assert_eq!(client.request_text(request("a")).await.unwrap(), "did a");
    assert_eq!((edit.met(), effects.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn an_answer_is_stopped_after_the_effect() {
    let (gate, client, effects) = stage().await;
    let stop = gate.stop_at(Point::after(Method::POST, "x=1"));
    let sender = tokio::spawn(async move { client.request_text(request("a")).await });
    stop.reached().await;
    assert_eq!(effects.load(Ordering::SeqCst), 1);
    assert!(!sender.is_finished());
    sender.abort();
}
