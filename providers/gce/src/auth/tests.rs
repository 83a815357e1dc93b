use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost};
use data_encoding::BASE64URL_NOPAD;

use super::*;

fn global(json: Value) -> Global {
    serde_json::from_value(json).unwrap()
}

fn host(config: &Value) -> FakeHost {
    let host = FakeHost::new();
    host.config(json!({ "global": config }).to_string())
        .secret("private-key", "pem")
        .now(1_700_000_000);
    // The grant requests of `describe` are granted when the provider is made.
    let _: crate::Gce = host.provider();
    host
}

/// RFC 7515, appendix A.2: its signing input and the beginning of its signature.
#[test]
fn a_token_is_put_together_as_in_the_published_example() {
    let input = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7";
    let bytes = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
    assert_eq!(jwt::signed(input, &bytes), format!("{input}.{signature}"));
}

#[test]
fn key_requests_a_token_once_and_again_when_it_is_refused() {
    let config = json!({
        "project-id": "p", "local-zone": "us-central1-a", "network-name": "n", "client-email": "a@p.test", "private-key-id": "k1",
        "token-uri": "https://oauth.test/token", "api-endpoint": "https://gce.test",
    });
    let host = host(&config);
    let tokens = std::cell::Cell::new(0);
    host.serve(move |request| {
        if request.url == "https://oauth.test/token" {
            tokens.set(tokens.get() + 1);
            return FakeAnswer::json(
                200,
                &json!({ "access_token": format!("t{}", tokens.get()), "expires_in": 3599 }),
            );
        }
        match request.header("authorization") {
            Some("Bearer t1") => FakeAnswer::json(
                401,
                &json!({ "error": { "code": 401, "message": "no", "errors": [{ "reason": "authError" }] } }),
            ),
            _ => FakeAnswer::json(200, &json!({})),
        }
    });
    let gce: crate::Gce = host.provider();
    for _ in 0..2 {
        gce.api.get::<Value>("/x", &[]).unwrap();
    }
    let sent = host.requests();
    assert_eq!(sent.iter().filter(|request| request.url.ends_with("/token")).count(), 2);
    let assertion = sent[0].field("assertion").unwrap();
    let parts: Vec<Vec<u8>> = assertion
        .split('.')
        .map(|part| BASE64URL_NOPAD.decode(part.as_bytes()).unwrap())
        .collect();
    let header: Value = serde_json::from_slice(&parts[0]).unwrap();
    assert_eq!(header, json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let claims: Value = serde_json::from_slice(&parts[1]).unwrap();
    let expected = json!({
        "iss": "a@p.test", "scope": SCOPE, "aud": "https://oauth.test/token", "iat": 1_700_000_000, "exp": 1_700_003_600,
    });
    assert_eq!(claims, expected);
}

#[test]
fn wrong_credentials_are_denied_and_not_a_bad_request() {
    let config = json!({
        "project-id": "p", "local-zone": "us-central1-a", "network-name": "n", "client-email": "a@p.test", "token-uri": "https://oauth.test/token",
    });
    let host = host(&config);
    host.expect("POST", "https://oauth.test/token").answers(
        400,
        json!({ "error": "invalid_grant", "error_description": "Invalid JWT Signature." }),
    );
    let gce: crate::Gce = host.provider();
    let failure = gce.api.get::<Value>("/x", &[]).unwrap_err();
    assert_eq!(
        (failure.kind, failure.code.as_deref()),
        (FailureKind::Denied, Some("invalid_grant"))
    );
}

#[test]
fn the_metadata_server_and_the_other_source_give_tokens() {
    let url = "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token";
    let config = json!({ "project-id": "p", "local-zone": "us-central1-a", "network-name": "n", "token-url": "https://t.test/", "token-body": "{}" });
    let host = host(&config);
    host.expect("GET", url)
        .with_header("metadata-flavor", "Google")
        .answers(200, json!({ "access_token": "m", "expires_in": 60 }));
    host.expect("POST", "https://t.test/")
        .with_header("authorization", "Bearer m")
        .answers(200, json!({ "accessToken": "o", "expireTime": "2033-05-18T03:33:20Z" }));
    let (token, ends) = obtain(
        &global(config.clone()),
        host.context(),
        Source::of(&global(config)),
        SCOPE,
    )
    .unwrap();
    assert_eq!((&*token, ends), ("o", 2_000_000_000));
}

#[test]
fn no_token_is_none() {
    let nobody = global(json!({ "token-url": "nil" }));
    assert!(!needs_metadata(&nobody) && wishes(&nobody).is_none() && secrets(&nobody).is_none());
    assert!(needs_metadata(&Global::default()));
}
