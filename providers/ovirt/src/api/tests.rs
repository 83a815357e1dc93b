use std::cell::Cell;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use serde_json::json;

use crate::testing::{CONFIG, host, host_with, provider, token};
use cloudwit_guest_sdk::prelude::*;

#[test]
fn token_is_requested_once_and_again_when_it_is_refused() {
    let host = FakeHost::new();
    host.config(CONFIG).secret("password", "S").now(1_795_430_000);
    let tokens = Cell::new(0);
    host.serve(move |request| {
        if request.url == "https://engine.test/ovirt-engine/sso/oauth/token" {
            tokens.set(tokens.get() + 1);
            return token(&format!("t{}", tokens.get()));
        }
        match request.header("authorization") {
            Some("Bearer t1") => FakeAnswer::new(401, &[], "<html>Unauthorized</html>"),
            _ => FakeAnswer::json(200, &json!({ "vm": [{ "id": "1" }] })),
        }
    });
    for _ in 0..2 {
        assert_eq!(provider(&host).api.any_machine(), Ok(true));
    }
    let sent = host.requests();
    let logins: Vec<_> = sent.iter().filter(|request| request.url.ends_with("/token")).collect();
    assert_eq!(logins.len(), 2);
    let field = |name: &str| logins[0].field(name);
    assert_eq!(field("grant_type").as_deref(), Some("password"));
    assert_eq!(field("scope").as_deref(), Some("ovirt-app-api"));
    assert_eq!(field("username").as_deref(), Some("admin@internal"));
    let placeholder = cloudwit_guest_sdk::testing::placeholder("password", Encoding::Form);
    assert_eq!(field("password"), Some(placeholder));
    assert_eq!(sent[1].header("version"), Some("4"));
    assert_eq!(sent[1].header("accept"), Some("application/json"));
}

#[test]
fn a_refused_login_is_denied_whatever_its_status() {
    for status in [200, 400, 401] {
        let host = FakeHost::new();
        host.config(CONFIG).secret("password", "S");
        let refusal = json!({ "error_code": "access_denied", "error": "Cannot authenticate user 'admin@internal'" });
        host.serve(move |_| FakeAnswer::json(status, &refusal));
        let failure = provider(&host).api.any_machine().unwrap_err();
        assert_eq!(failure.kind, FailureKind::Denied, "{status}");
        let words = "access_denied Cannot authenticate user 'admin@internal'";
        assert!(failure.message.ends_with(words), "{failure:?}");
    }
}

#[test]
fn single_sign_on_that_fails_denies_none() {
    for (status, answer, kind) in [
        (
            400,
            json!({ "error_code": "server_error", "error": "null" }),
            FailureKind::Unavailable,
        ),
        (400, json!({ "error": "server_error" }), FailureKind::Unavailable),
        (400, json!({ "error": "invalid_grant" }), FailureKind::Denied),
        (503, json!({ "error": "no backend" }), FailureKind::Unavailable),
        (500, json!({ "error": "access_denied" }), FailureKind::Unavailable),
        (429, json!({ "error": "slow down" }), FailureKind::RateLimited),
    ] {
        let host = FakeHost::new();
        host.config(CONFIG).secret("password", "S");
        host.serve(move |_| FakeAnswer::json(status, &answer));
        let failure = provider(&host).api.any_machine().unwrap_err();
        assert_eq!(failure.kind, kind, "{status} {failure:?}");
    }
    for (status, kind) in [(503, FailureKind::Unavailable), (200, FailureKind::Other)] {
        let host = FakeHost::new();
        host.config(CONFIG).secret("password", "S");
        host.serve(move |_| FakeAnswer::new(status, &[], "<html>starting</html>"));
        let failure = provider(&host).api.any_machine().unwrap_err();
        assert_eq!(failure.kind, kind, "{failure:?}");
    }
}

#[test]
fn basic_authentication_needs_no_token() {
    let answer = |_: &_| FakeAnswer::json(200, &json!({}));
    let secret = host_with(&format!("{CONFIG}auth = basic\n"), answer);
    assert_eq!(provider(&secret).api.any_machine(), Ok(false));
    let header = cloudwit_guest_sdk::testing::basic("username", "password");
    assert_eq!(secret.requests()[0].header("authorization"), Some(header.as_str()));
    // RFC 7617, section 2.
    let text = host_with(
        &format!("{CONFIG}auth = basic\nusername = Aladdin\npassword = open sesame\n"),
        answer,
    );
    assert_eq!(provider(&text).api.any_machine(), Ok(false));
    let sent = text.requests();
    assert_eq!(
        (sent.len(), sent[0].header("authorization")),
        (1, Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
    );
}

#[test]
fn pages_are_read_until_one_is_not_full() {
    let host = host(|request| {
        let search = request.query("search").unwrap();
        let count = if search.ends_with("page 1") { 100 } else { 3 };
        let page: Vec<_> = (0..count)
            .map(|number| json!({ "id": format!("{search} {number}") }))
            .collect();
        FakeAnswer::json(200, &json!({ "vm": page }))
    });
    let mut found = 0;
    let read = provider(&host)
        .api
        .each(("/vms", "vm"), "tag=k8s", "nics", |_| found += 1);
    assert_eq!((read, found), (Ok(()), 103));
    let searches: Vec<_> = host.requests()[1..]
        .iter()
        .map(|request| request.query("search").unwrap())
        .collect();
    assert_eq!(searches, ["tag=k8s sortby name page 1", "tag=k8s sortby name page 2"]);
}

#[test]
fn an_answer_that_is_no_list_is_a_failure() {
    for (status, body, kind) in [
        (200, "<html>login</html>", FailureKind::Other),
        (200, "[]", FailureKind::Other),
        (200, r#"{"vm": {}}"#, FailureKind::Other),
        (404, "<html>no such page</html>", FailureKind::Unavailable),
        (403, "", FailureKind::Denied),
        (500, "", FailureKind::Unavailable),
        (429, "", FailureKind::RateLimited),
    ] {
        let host = host(move |_| FakeAnswer::new(status, &[], body));
        let failure = provider(&host).api.each(("/vms", "vm"), "", "", |_| ()).unwrap_err();
        assert_eq!(failure.kind, kind, "{status} {body}");
    }
}
