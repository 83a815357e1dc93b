use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, placeholder};

use super::*;
use crate::Rackspace;
use crate::testing::{GLOBAL, answer, calls, file, host, provider};

#[test]
fn api_key_stays_in_host_and_one_token_serves_many_calls() {
    let host = host(|_| answer(file!("server")));
    for _ in 0..3 {
        provider(&host).any_server().unwrap();
    }
    let requests = host.requests();
    assert_eq!(requests.len(), 4, "one for the token");
    let key = placeholder("api-key", Encoding::Json);
    assert_eq!(
        requests[0].json(),
        json!({ "auth": { "RAX-KSKEY:apiKeyCredentials": { "username": "recorded", "apiKey": key } } })
    );
    assert!(requests[1].header("x-auth-token").unwrap().starts_with("token_"));
    assert!(requests[1].url.contains("/DFW/"), "{}", requests[1].url);
}

#[test]
fn a_password_and_the_account_are_sent_where_they_are_given() {
    let host = host(|_| answer(file!("server")));
    host.config(format!("{GLOBAL}password = p\ntenant-id = 7\ntenant-name = t\n"));
    provider(&host).any_server().unwrap();
    let auth = json!({ "passwordCredentials": { "username": "recorded", "password": "p" }, "tenantId": "7", "tenantName": "t" });
    assert_eq!(host.requests()[0].json(), json!({ "auth": auth }));
}

#[test]
fn a_refused_token_is_renewed_once() {
    let refusal = || {
        FakeAnswer::json(
            401,
            &json!({ "unauthorized": { "code": 401, "message": "No valid token" } }),
        )
    };
    let host = host(move |_| refusal());
    let failure = provider(&host).any_server().unwrap_err();
    assert_eq!((&failure.kind, failure.code.as_deref()), (&FailureKind::Denied, None));
    assert_eq!(calls(&host).len(), 2);
    assert_eq!(host.requests().len(), 4, "each with a token of its own");
}

#[test]
fn a_region_that_the_account_has_not_is_named_with_those_it_has() {
    let host = host(|_| panic!("nothing is asked"));
    host.config(GLOBAL.replace("dfw", "SYD"));
    let failure = provider(&host).any_server().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Invalid);
    assert!(
        failure.message.contains("region SYD; regions: ") && failure.message.contains("DFW"),
        "{}",
        failure.message
    );
}

#[test]
fn failures_have_their_kind_and_the_clouds_code() {
    let fails = |status: u16, headers: &'static [(&str, &str)], body: &'static str| {
        let host = host(move |_| FakeAnswer::new(status, headers, body));
        provider(&host).any_server().unwrap_err()
    };
    let limited = fails(
        413,
        &[("retry-after", "7")],
        r#"{"overLimit": {"code": 413, "message": "too fast"}}"#,
    );
    assert_eq!(limited.kind, FailureKind::RateLimited);
    assert_eq!(
        (limited.retry_after, limited.code.as_deref()),
        (Some(7000), Some("overLimit"))
    );
    let down = fails(503, &[], "<html>maintenance</html>");
    assert_eq!(down.kind, FailureKind::Unavailable);
    let forbidden = fails(403, &[], r#"{"forbidden": {"code": 403, "message": "no"}}"#);
    assert_eq!(
        (&forbidden.kind, forbidden.code.as_deref()),
        (&FailureKind::Denied, Some("forbidden"))
    );
    assert!(forbidden.message.contains("no"), "{}", forbidden.message);
}

#[test]
fn wrong_key_is_named_as_such() {
    let host = FakeHost::new();
    host.config(GLOBAL).secret("api-key", "s");
    host.serve(|_| {
        FakeAnswer::json(
            401,
            &json!({ "unauthorized": { "code": 401, "message": "Unable to authenticate" } }),
        )
    });
    let failure = host.provider::<Rackspace>().any_server().unwrap_err();
    assert_eq!(failure.kind, FailureKind::Denied);
    assert!(failure.message.contains("authenticating"), "{}", failure.message);
}
