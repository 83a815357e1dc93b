//! Stories about who is believed.

use std::time::Duration;

use clap::Parser;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::*;
use crate::flags::args::Args;
use crate::serving::access::fake_reviews::FakeReviews;
use crate::serving::tls::clients::tests::signed;

fn authenticator(flags: &[&str], reviews: Option<&FakeReviews>) -> Authenticator {
    let args = Args::parse_from(["cloudwit"].iter().chain(flags)).authentication;
    let metrics = AccessMetrics::new(&mut Registry::default());
    Authenticator::new(&args, reviews.map(FakeReviews::reviewer), metrics)
}

fn with_token(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    headers
}

fn as_admin() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-remote-user", "admin".parse().unwrap());
    headers.insert("X-Remote-Group", "system:masters".parse().unwrap());
    headers.insert("x-remote-extra-scope", "all".parse().unwrap());
    headers
}

#[tokio::test]
async fn headers_of_a_proxy_count_for_nothing_from_others() {
    let (pem, proxy) = signed("front-proxy", "proxies");
    let (_, stranger) = signed("front-proxy", "proxies");
    let authenticator = authenticator(&["--requestheader-allowed-names=front-proxy"], None);
    let mut headers = as_admin();
    assert_eq!(authenticator.who(&mut headers, &[]).await, Ok(User::anonymous()));
    assert!(headers.is_empty(), "nobody later can take them for true");
    let nobody = authenticator.who(&mut as_admin(), std::slice::from_ref(&proxy)).await;
    assert_eq!(nobody, Ok(User::anonymous()), "no authority of proxies is known yet");

    authenticator.proxies.set(pem.as_bytes()).unwrap();
    assert_eq!(authenticator.who(&mut as_admin(), &[]).await, Ok(User::anonymous()));
    assert_eq!(
        authenticator.who(&mut as_admin(), &[stranger]).await,
        Ok(User::anonymous())
    );
    let mut headers = as_admin();
    let admin = authenticator.who(&mut headers, &[proxy]).await.unwrap();
    assert_eq!(
        (admin.name.as_str(), admin.groups),
        (
            "admin",
            vec!["system:masters".to_owned(), "system:authenticated".into()]
        )
    );
    assert!(headers.is_empty());
}

#[tokio::test]
async fn a_proxy_of_another_name_is_refused() {
    let (pem, other) = signed("other", "proxies");
    let authenticator = authenticator(&["--requestheader-allowed-names=front-proxy"], None);
    authenticator.proxies.set(pem.as_bytes()).unwrap();
    let why = authenticator
        .who(&mut as_admin(), &[other])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("\"other\" is none of --requestheader-allowed-names"),
        "{why}"
    );
}

#[tokio::test]
async fn a_certificate_of_a_client_does_not_let_it_speak_for_others() {
    let (clients, ann) = signed("ann", "admins");
    let (proxies, _) = signed("front-proxy", "proxies");
    let authenticator = authenticator(&[], None);
    authenticator.clients.set(clients.as_bytes()).unwrap();
    authenticator.proxies.set(proxies.as_bytes()).unwrap();
    let user = authenticator.who(&mut as_admin(), &[ann]).await.unwrap();
    assert_eq!(
        (user.name.as_str(), user.groups.len()),
        ("ann", 2),
        "herself, with her own groups"
    );
}

#[tokio::test]
async fn changed_authorities_hold_from_the_next_request_on() {
    let ((first, ann), (second, bea)) = (signed("ann", "a"), signed("bea", "b"));
    let authenticator = authenticator(&[], None);
    authenticator.clients.set(first.as_bytes()).unwrap();
    let none = || HeaderMap::new();
    assert!(authenticator.who(&mut none(), std::slice::from_ref(&ann)).await.is_ok());
    assert!(
        authenticator
            .who(&mut none(), std::slice::from_ref(&bea))
            .await
            .is_err()
    );
    authenticator.clients.set(second.as_bytes()).unwrap();
    assert!(authenticator.who(&mut none(), &[ann]).await.is_err());
    assert!(authenticator.who(&mut none(), &[bea]).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn token_review_is_cached_until_it_expires() {
    let reviews = FakeReviews::default();
    let ann = json!({ "username": "ann", "uid": "1", "groups": ["dev"], "extra": { "scope": ["read"] } });
    reviews.token("good", ann);
    let authenticator = authenticator(&[], Some(&reviews));
    let mut headers = with_token("good");
    let user = authenticator.who(&mut headers, &[]).await.unwrap();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("ann", "1"));
    assert_eq!(
        (user.groups, &user.extra["scope"]),
        (
            vec!["dev".to_owned(), "system:authenticated".into()],
            &vec!["read".to_owned()]
        )
    );
    assert!(headers.is_empty(), "the token goes no further");

    reviews.revoke();
    tokio::time::advance(Duration::from_secs(9)).await;
    assert!(authenticator.who(&mut with_token("good"), &[]).await.is_ok());
    assert_eq!(reviews.asked().len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    let why = authenticator
        .who(&mut with_token("good"), &[])
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("counts for nothing") && !why.contains("good"), "{why}");
    assert_eq!(reviews.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_requests_with_one_token_are_one_question() {
    let reviews = FakeReviews::default();
    reviews.token("good", json!({ "username": "ann" }));
    let authenticator = authenticator(&[], Some(&reviews));
    let all = futures::future::join_all((0..50).map(async |number| {
        let token = if number % 2 == 0 { "good" } else { "bad" };
        authenticator.who(&mut with_token(token), &[]).await.is_ok() == (number % 2 == 0)
    }));
    assert!(all.await.into_iter().all(|right| right));
    assert_eq!(reviews.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn unverified_token_is_rejected_and_reviewed_again() {
    let reviews = FakeReviews::default();
    reviews.token("good", json!({ "username": "ann" }));
    reviews.token("nameless", json!({ "groups": ["system:masters"] }));
    reviews.down(true);
    let authenticator = authenticator(&[], Some(&reviews));
    let why = authenticator
        .who(&mut with_token("good"), &[])
        .await
        .unwrap_err()
        .to_string();
    assert!(why.contains("could not be checked: down"), "{why}");
    assert_eq!(reviews.asked().len(), 5, "it was tried again");
    reviews.down(false);
    assert!(authenticator.who(&mut with_token("good"), &[]).await.is_ok());
    assert!(authenticator.who(&mut with_token("nameless"), &[]).await.is_err());
}

#[tokio::test]
async fn only_bearer_tokens_are_tokens() {
    let reviews = FakeReviews::default();
    let authenticator = authenticator(&[], Some(&reviews));
    for credentials in ["Basic YTpi", "Bearer", "Bearer ", "good", ""] {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, credentials.parse().unwrap());
        assert_eq!(
            authenticator.who(&mut headers, &[]).await,
            Ok(User::anonymous()),
            "{credentials}"
        );
    }
    assert!(reviews.asked().is_empty());
    assert!(authenticator.who(&mut with_token("bad"), &[]).await.is_err());
}

/// 2,000 tokens at once, as somebody sends them who has none.
#[tokio::test(start_paused = true)]
async fn made_up_tokens_do_not_flood_reviews() {
    let reviews = FakeReviews::default();
    reviews.token("good", json!({ "username": "ann" }));
    let authenticator = authenticator(&[], Some(&reviews));
    assert!(authenticator.who(&mut with_token("good"), &[]).await.is_ok());
    // Its answer is too old now.
    tokio::time::advance(Duration::from_secs(11)).await;
    let flood = futures::future::join_all((0..2000).map(async |number| {
        let made_up = format!("made-up-{number}");
        authenticator.who(&mut with_token(&made_up), &[]).await.unwrap_err()
    }));
    let mut known = with_token("good");
    let (answers, good) = tokio::join!(flood, authenticator.who(&mut known, &[]));
    assert!(good.is_ok(), "what was good before is asked about at once");
    let busy = answers.iter().filter(|why| **why == NotAuthenticated::Busy).count();
    assert_eq!((reviews.asked().len(), busy), (10, 1992));
}
