//! Placeholders in requests: filled for the hosts their secrets are bound to, refused elsewhere.

use bytes::Bytes;

use super::{call, egress, get, request, send_in, with_body};
use crate::egress::hooks::EgressHooks;
use crate::egress::refusal::RefusalReason;
use crate::egress::request_body::BUFFER_LIMIT;
use crate::egress::*;
use crate::net::testing::{Echo, TestServer, secret_file};
use crate::secrets::encoding::Encoding;
use crate::secrets::keys::KeyError;
use crate::secrets::placeholders::{MOST_PER_REQUEST, StandsFor};

pub const CANARY: &str = "canary \"quill\"";

/// Grants one loopback host with secrets `user` and `password` that are bound to it, and a second host without.
pub fn granted(port: u16, dir: &tempfile::TempDir) -> String {
    let file = |name, secret| secret_file(dir, name, secret).display().to_string();
    format!(
        "http:\n- {{scheme: http, host: localhost, port: {port}, allowLoopback: true}}\n\
         - {{scheme: http, host: other.example, port: {port}, allowLoopback: true}}\n\
         secrets:\n- {{name: user, file: '{}', hosts: ['localhost:{port}'], uses: [placeholder]}}\n\
         - {{name: password, file: '{}', hosts: ['localhost:{port}'], uses: [placeholder, hmac]}}\n\
         - {{name: key, file: '{}', uses: [hmac]}}\n",
        file("user", "admin\n"),
        file("password", CANARY),
        file("key", CANARY),
    )
}

fn asked(call: &EgressHooks, name: &str, encoding: Encoding) -> Result<String, KeyError> {
    call.placeholder(StandsFor::Secret(name.into(), encoding))
}

fn placeholder(call: &EgressHooks, name: &str, encoding: Encoding) -> String {
    asked(call, name, encoding).unwrap()
}

/// User and password as Basic; the password as it is, and for a form.
pub fn three_of(call: &EgressHooks) -> (String, String, String) {
    (
        call.placeholder(StandsFor::Basic("user".into(), "password".into()))
            .unwrap(),
        placeholder(call, "password", Encoding::Plain),
        placeholder(call, "password", Encoding::Form),
    )
}

fn echoed(response: Result<Response<Bytes>, (Error, Option<Refusal>)>) -> Echo {
    let response = response.unwrap_or_else(|(error, refusal)| panic!("{error} {refusal:?}"));
    serde_json::from_slice(response.body()).unwrap()
}

fn with_token(url: &str, value: &str) -> Request<WasiBody> {
    with_body(request("GET", url).header("x-token", value), "")
}

#[tokio::test]
async fn placeholders_are_filled_where_the_secret_is_bound_to() {
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let mut call = call(&egress(&granted(server.port, &dir)));
    let (basic, _, form) = three_of(&call);
    let json = |name| placeholder(&call, name, Encoding::Json);
    let body = format!(
        "{{\"user\":\"{}\",\"password\":\"{}\"}}",
        json("user"),
        json("password")
    );
    let request = request("POST", &format!("http://localhost:{}/", server.port))
        .header("authorization", basic)
        .header("x-form", format!("p={form}"))
        .header("content-length", body.len());
    let echo = echoed(send_in(&mut call, with_body(request, body)).await);
    assert_eq!(echo.body, "{\"user\":\"admin\",\"password\":\"canary \\\"quill\\\"\"}");
    assert_eq!(echo.headers["authorization"], "Basic YWRtaW46Y2FuYXJ5ICJxdWlsbCI=");
    assert_eq!(echo.headers["x-form"], "p=canary%20%22quill%22");
    assert_eq!(echo.headers["content-length"], echo.body.len().to_string());
    assert_eq!(server.last().unwrap().headers, echo.headers, "told as it was sent");
}

#[tokio::test]
async fn a_misplaced_placeholder_is_refused_before_a_packet_leaves() {
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let egress = egress(&granted(server.port, &dir));
    let call = call(&egress);
    let (basic, plain, form) = three_of(&call);
    let (here, there) = (
        format!("http://localhost:{}/", server.port),
        format!("http://other.example:{}/", server.port),
    );
    let body = |url: &str, body: String| with_body(request("PUT", url), body);
    let padding = "x".repeat(BUFFER_LIMIT);
    let elsewhere = "is not granted as a placeholder in requests to http://other.example:";
    for (request, says) in [
        (with_token(&there, &plain), elsewhere),
        (with_token(&there, &basic), elsewhere),
        (body(&there, form.clone()), elsewhere),
        (get(&format!("{here}?a={form}")), "its URL contains a placeholder"),
        (get(&format!("{here}{plain}")), "its URL contains a placeholder"),
        (body(&here, padding.clone() + &plain), "has more than 1048576 bytes"),
        (body(&here, plain.clone() + &padding), "has more than 1048576 bytes"),
        (
            body(&here, plain.clone() + &padding[plain.len()..]),
            "secrets filled it has more than 1048576 bytes",
        ),
        (
            body(&here, plain.repeat(MOST_PER_REQUEST + 1)),
            "contains more than 16 placeholders",
        ),
    ] {
        let (error, refusal) = send_in(&mut call.clone(), request).await.expect_err("it passed");
        let refusal = refusal.expect("refused");
        assert!(matches!(error, Error::HttpRequestDenied), "{error}");
        assert_eq!(refusal.reason, RefusalReason::Placeholder);
        assert!(refusal.message.contains(says), "{refusal}");
        assert!(
            !refusal.message.contains("canary") && !refusal.message.contains(&plain),
            "{refusal}"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn what_another_call_was_issued_is_sent_as_it_is() {
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let egress = egress(&granted(server.port, &dir));
    let earlier = placeholder(&call(&egress), "password", Encoding::Plain);
    let mut call = call(&egress);
    let own = placeholder(&call, "user", Encoding::Plain);
    let body = format!("{earlier} {{{{secret:password}}}} {own}");
    let url = format!("http://localhost:{}/{earlier}", server.port);
    let echo = echoed(send_in(&mut call, with_body(request("PUT", &url), body)).await);
    assert_eq!(echo.body, format!("{earlier} {{{{secret:password}}}} admin"));
    assert_eq!(echo.uri, format!("/{earlier}"));
}

#[tokio::test]
async fn secret_invalid_as_header_is_refused_unshown() {
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let yaml = granted(server.port, &dir);
    secret_file(&dir, "password", "canary\r\nx-injected: yes\n\n");
    let mut call = call(&egress(&yaml));
    let plain = placeholder(&call, "password", Encoding::Plain);
    let url = format!("http://localhost:{}/", server.port);
    let (_, refusal) = send_in(&mut call, with_token(&url, &plain))
        .await
        .expect_err("it passed");
    let refusal = refusal.expect("refused");
    assert!(
        refusal.message.contains("the header x-token contains a line break"),
        "{refusal}"
    );
    assert!(!refusal.message.contains("canary"), "{refusal}");
}

#[tokio::test]
async fn the_yaml_of_a_refused_placeholder_lets_it_pass() {
    let (server, dir) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let yaml = granted(server.port, &dir);
    let replaced = |name: &str, entry: &str| {
        let kept = yaml.lines().filter(|line| !line.contains(&format!("name: {name},")));
        kept.map(|line| format!("{line}\n")).collect::<String>() + entry
    };
    // Refused when it is requested: the hosts to propose are those that are granted.
    let first = call(&egress(&yaml));
    let KeyError::Unusable(text) = asked(&first, "key", Encoding::Plain).unwrap_err() else {
        panic!("not this use")
    };
    let there = format!("http://other.example:{}/", server.port);
    let mut second = call(&egress(&replaced("key", &text[text.find("- {").unwrap()..])));
    let plain = placeholder(&second, "key", Encoding::Plain);
    let echo = echoed(send_in(&mut second, with_token(&there, &plain)).await);
    assert_eq!(echo.headers["x-token"], CANARY);
    // Refused on the way out.
    let mut third = call(&egress(&yaml));
    let plain = placeholder(&third, "password", Encoding::Plain);
    let (_, refusal) = send_in(&mut third, with_token(&there, &plain))
        .await
        .expect_err("it passed");
    let entry = refusal.expect("refused").yaml.expect("an entry");
    let mut fourth = call(&egress(&replaced("password", &entry)));
    let plain = placeholder(&fourth, "password", Encoding::Plain);
    let echo = echoed(send_in(&mut fourth, with_token(&there, &plain)).await);
    assert_eq!(echo.headers["x-token"], CANARY);
}
