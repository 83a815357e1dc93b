use std::cell::Cell;

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, basic};
use serde_json::json;

use super::*;
use crate::Mesos;

fn host(config: &str) -> FakeHost {
    let host = FakeHost::new();
    host.config(format!("[mesos-cloud]\n{config}")).now(1_795_430_000);
    host.secret("principal", "p")
        .secret("secret", "s")
        .secret("password", "w")
        .secret("private-key", "pem");
    host.grants("http://leader.test:5050", &["GET"]);
    host
}

fn agents(host: &FakeHost) -> Result<Agents, Failure> {
    host.provider::<Mesos>().api.agents()
}

fn urls(host: &FakeHost) -> Vec<String> {
    host.requests().into_iter().map(|request| request.url).collect()
}

fn list() -> FakeAnswer {
    FakeAnswer::json(200, &json!({ "slaves": [{ "id": "a-S0" }], "recovered_slaves": [] }))
}

#[test]
fn redirect_leads_to_leading_master_dead_one_to_next() {
    let host = host("mesos-master = dead.test:5050,other.test:5050\n");
    host.serve(|request| match request.url.split('/').nth(2).unwrap() {
        "dead.test:5050" => FakeAnswer::breaks(),
        "other.test:5050" => FakeAnswer::new(307, &[("Location", "//leader.test:5050/master/slaves")], ""),
        _ => list(),
    });
    let found = agents(&host).unwrap();
    assert_eq!(
        (found.leader.as_str(), found.registered.len()),
        ("http://leader.test:5050", 1)
    );
    let expected = [
        "http://dead.test:5050",
        "http://other.test:5050",
        "http://leader.test:5050",
    ];
    assert_eq!(urls(&host), expected.map(|master| format!("{master}/master/slaves")));
}

#[test]
fn redirects_end_and_lead_only_to_masters() {
    for (target, times) in [("//m.test:5050/master/slaves", 4), ("/login", 4), ("login", 1), ("", 1)] {
        let host = host("mesos-master = m.test:5050\n");
        host.serve(move |_| FakeAnswer::new(307, &[("Location", target)], ""));
        let failure = agents(&host).unwrap_err();
        assert_eq!(
            (failure.kind, urls(&host).len()),
            (FailureKind::Unavailable, times),
            "{target}"
        );
    }
    assert_eq!(resolved("https://a:1/b/c", "//d:2/e").as_deref(), Some("https://d:2/e"));
    assert_eq!(resolved("https://a:1/b/c", "http://d/e").as_deref(), Some("http://d/e"));
    assert_eq!(resolved("https://a:1/b/c", "/e").as_deref(), Some("https://a:1/e"));
}

#[test]
fn what_is_no_list_of_agents_is_a_failure() {
    for (status, body, kind) in [
        (200, "{}", FailureKind::Other),
        (200, "<html>login</html>", FailureKind::Other),
        (404, "", FailureKind::Unavailable),
        (503, "No leader elected", FailureKind::Unavailable),
        (403, "", FailureKind::Denied),
        (401, "", FailureKind::Denied),
    ] {
        let host = host("mesos-master = m.test:5050\n");
        host.serve(move |_| FakeAnswer::new(status, &[], body));
        assert_eq!(agents(&host).unwrap_err().kind, kind, "{status} {body}");
    }
}

#[test]
fn a_refusal_counts_more_than_a_master_that_is_down() {
    for masters in [
        "leads.test:5050,dead.test:5050",
        "dead.test:5050,leads.test:5050",
        "dead.test:5050,leads.test:5050,dead.test:5050",
    ] {
        let host = host(&format!("mesos-master = {masters}\n"));
        host.serve(|request| match request.url.contains("dead") {
            true => FakeAnswer::breaks(),
            false => FakeAnswer::new(403, &[], ""),
        });
        assert_eq!(agents(&host).unwrap_err().kind, FailureKind::Denied, "{masters}");
    }
}

#[test]
fn a_principal_is_in_every_request() {
    let host = host("mesos-master = m.test:5050\nauth = basic\n");
    host.serve(|_| list());
    agents(&host).unwrap();
    let header = basic("principal", "secret");
    assert_eq!(host.requests()[0].header("authorization"), Some(header.as_str()));
}

#[test]
fn service_account_signs_for_token_and_again_on_refusal() {
    let host = host("mesos-master = https://dcos.test/mesos\nauth = dcos\nuid = me\n");
    let tokens = Cell::new(0);
    host.serve(move |request| {
        if request.url == "https://dcos.test/acs/api/v1/auth/login" {
            tokens.set(tokens.get() + 1);
            return FakeAnswer::json(200, &json!({ "token": format!("t{}", tokens.get()) }));
        }
        match request.header("authorization") {
            Some("token=t2") => list(),
            _ => FakeAnswer::new(401, &[], ""),
        }
    });
    assert_eq!(agents(&host).unwrap().leader, "https://dcos.test/mesos");
    let sent = host.requests();
    assert_eq!(sent.len(), 4);
    let body = sent[0].json();
    assert_eq!(body["uid"], "me");
    let token = body["token"].as_str().unwrap();
    // The claims as they are signed, in base64.
    let unsigned = cloudwit_guest_sdk::jwt::unsigned(
        &json!({ "alg": "RS256", "typ": "JWT" }),
        &json!({ "uid": "me", "exp": 1_795_430_300 }),
    );
    assert!(token.starts_with(&format!("{unsigned}.")), "{token}");
}

#[test]
fn a_wrong_password_is_denied() {
    let host = host("mesos-master = https://dcos.test/mesos\nauth = dcos-password\nuid = me\n");
    host.serve(|_| FakeAnswer::json(401, &json!({ "code": "ERR_INVALID_CREDENTIALS" })));
    let failure = agents(&host).unwrap_err();
    assert!(
        failure.kind == FailureKind::Denied && failure.message.contains("ERR_INVALID"),
        "{failure:?}"
    );
    let body = host.requests()[0].json();
    let placeholder = cloudwit_guest_sdk::testing::placeholder("password", Encoding::Json);
    assert_eq!(body, json!({ "uid": "me", "password": placeholder }));
}
