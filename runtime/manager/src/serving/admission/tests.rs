//! Stories about requests and what lets them through.

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::routing::get;
use clap::Parser;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::*;
use crate::flags::args::Args;
use crate::serving::access::fake_reviews::FakeReviews;
use crate::serving::access::metrics::AccessMetrics;

/// Pages with everything that the real ones have to be guarded, behind the flags' default.
fn pages(reviews: &FakeReviews) -> Router {
    let metrics = AccessMetrics::new(&mut Registry::default());
    let args = Args::parse_from(["cloudwit"]);
    let admission = Admission {
        authenticator: Arc::new(Authenticator::new(
            &args.authentication,
            Some(reviews.reviewer()),
            metrics.clone(),
        )),
        authorizer: Authorizer::new(&args.authorization, Some(reviews.reviewer()), metrics),
    };
    let seen = |headers: HeaderMap, trusted: Option<Extension<Trusted>>| async move {
        format!("secret, {} headers, trusted {}", headers.len(), trusted.is_some())
    };
    let router = Router::new()
        .route("/healthz", get(seen))
        .route("/healthz/{name}", get(seen))
        .route("/metrics", get(seen).delete(seen));
    admission.before(router).layer(Extension(Chain::default()))
}

async fn answer(pages: &Router, method: &str, uri: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = pages
        .clone()
        .oneshot(request.body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache, private");
    let code = response.status();
    let body = axum::body::to_bytes(response.into_body(), 10_000).await.unwrap();
    (code, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn no_way_of_writing_a_path_leads_around_authorization() {
    let reviews = FakeReviews::default();
    let pages = pages(&reviews);
    for uri in [
        "/metrics",
        "//metrics",
        "/metrics/",
        "/metrics?x=/healthz",
        "/metrics#/healthz",
        "/./metrics",
        "/healthz/../metrics",
        "/healthz/..%2fmetrics",
        "/healthz/%2e%2e/metrics",
        "/%6detrics",
        "/metrics%00",
        "/METRICS",
        "/healthz/ping",
        "//healthz",
        "/healthz/",
        "https://healthz/metrics",
        "/nothing",
        "/",
    ] {
        for method in ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "TRACE", "BREW"] {
            let (code, text) = answer(&pages, method, uri, &[]).await;
            assert_eq!(code, 403, "{method} {uri}: {text}");
            assert!(!text.contains("secret"), "{method} {uri}: {text}");
        }
    }
    let open = answer(&pages, "GET", "/healthz?verbose", &[]).await;
    assert_eq!(open, (StatusCode::OK, "secret, 0 headers, trusted false".into()));
}

#[tokio::test(start_paused = true)]
async fn method_is_the_verb_that_is_requested() {
    let reviews = FakeReviews::default();
    reviews.token("ann", json!({ "username": "ann" }));
    reviews.allow("ann", "get", "/metrics");
    let pages = pages(&reviews);
    let ann = [("authorization", "Bearer ann")];
    let (code, text) = answer(&pages, "GET", "/metrics", &ann).await;
    assert_eq!(
        (code, text.as_str()),
        (StatusCode::OK, "secret, 0 headers, trusted true")
    );
    for method in ["HEAD", "DELETE", "PUT", "POST", "PATCH", "OPTIONS"] {
        let (code, text) = answer(&pages, method, "/metrics", &ann).await;
        assert_eq!(code, 403, "{method}: {text}");
        let verb = method.to_lowercase();
        let asked = reviews.asked().pop().unwrap();
        assert_eq!(
            asked["nonResourceAttributes"],
            json!({ "verb": verb, "path": "/metrics" })
        );
        assert_eq!(asked["user"], "ann");
    }
    reviews.allow("ann", "delete", "/metrics");
    tokio::time::advance(std::time::Duration::from_secs(11)).await;
    assert_eq!(answer(&pages, "DELETE", "/metrics", &ann).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_refused_even_where_none_are_needed() {
    let reviews = FakeReviews::default();
    let pages = pages(&reviews);
    for uri in ["/healthz", "/metrics", "/nothing"] {
        let (code, text) = answer(&pages, "GET", uri, &[("authorization", "Bearer wrong")]).await;
        assert_eq!(code, 401, "{uri}");
        let status: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&status["kind"], &status["message"]),
            (&json!("Status"), &json!("Unauthorized"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_found_out_is_not_allowed() {
    let reviews = FakeReviews::default();
    reviews.down(true);
    let pages = pages(&reviews);
    let (code, text) = answer(&pages, "GET", "/metrics", &[]).await;
    assert_eq!(code, 500);
    assert!(!text.contains("secret") && !text.contains("down"), "{text}");
    assert_eq!(
        answer(&pages, "GET", "/healthz", &[]).await.0,
        200,
        "health needs no API server"
    );
}

#[tokio::test(start_paused = true)]
async fn headers_of_a_proxy_are_withheld() {
    let reviews = FakeReviews::default();
    let pages = pages(&reviews);
    let headers = [
        ("x-remote-user", "admin"),
        ("x-remote-group", "system:masters"),
        ("impersonate-user", "admin"),
    ];
    let (code, text) = answer(&pages, "GET", "/metrics", &headers).await;
    assert_eq!(code, 403);
    assert!(
        text.contains(r#"User \"system:anonymous\" cannot get path \"/metrics\""#),
        "{text}"
    );
    let (_, text) = answer(&pages, "GET", "/healthz", &headers[..2]).await;
    assert_eq!(text, "secret, 0 headers, trusted false");
}

#[tokio::test(start_paused = true)]
async fn anonymous_floods_get_429_and_probes_their_answer() {
    let reviews = FakeReviews::default();
    let pages = pages(&reviews);
    let tokens = futures::future::join_all((0..200).map(async |number| {
        let token = format!("Bearer made-up-{number}");
        answer(&pages, "GET", "/metrics", &[("authorization", token.as_str())])
            .await
            .0
    }));
    let paths = futures::future::join_all(
        (0..200).map(async |number| answer(&pages, "GET", &format!("/a/{number}"), &[]).await.0),
    );
    let (tokens, paths, probe) = tokio::join!(tokens, paths, answer(&pages, "GET", "/healthz", &[]));
    assert_eq!(probe.0, StatusCode::OK);
    let busy = |codes: &[StatusCode]| {
        codes
            .iter()
            .filter(|code| **code == StatusCode::TOO_MANY_REQUESTS)
            .count()
    };
    assert_eq!((busy(&tokens), busy(&paths)), (192, 192));
    assert_eq!(reviews.asked().len(), 16);
}
