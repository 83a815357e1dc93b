use cloudwit_guest_sdk::testing::FakeAnswer;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::testing::{host, listed, provider, refused, said};

#[derive(Debug, Deserialize, PartialEq)]
struct Item {
    id: u64,
}

fn machines() -> Call {
    Call::get(Product::Bcc, "/v2/instance")
}

#[test]
fn every_request_is_signed_at_its_products_host() {
    let host = host(|_, _| said(json!({})));
    let call = Call::new(Product::Eip, "PUT", "/v1/eip/192.0.2.1").query("bind", "");
    let call = call.json(json!({ "instanceType": "BLB" }));
    assert_eq!(call.text(), r#"PUT /v1/eip/192.0.2.1?bind {"instanceType":"BLB"}"#);
    assert_eq!(provider(&host).api.change(&call), Ok(()));
    let request = &host.requests()[0];
    assert_eq!(request.url, "https://eip.bj.baidubce.com/v1/eip/192.0.2.1?bind=");
    assert_eq!(request.header("x-bce-date"), Some("2026-11-23T10:33:20Z"));
    // Computed by bce-python-sdk 0.9.79.
    let signature = "d954a26fd67952241e881834dddf4c0ba888c0158cb35a32e444acc2d6c812a6";
    let prefix = "bce-auth-v1/K/2026-11-23T10:33:20Z/1800/host;x-bce-date";
    assert_eq!(
        request.header("authorization"),
        Some(format!("{prefix}/{signature}").as_str())
    );
}

#[test]
fn path_of_a_gateway_is_signed_too() {
    let host = host(|_, _| said(json!({})));
    host.value("BccEndpoint", "https://gate.test:8443/bce/");
    assert_eq!(provider(&host).api.change(&machines()), Ok(()));
    let request = &host.requests()[0];
    assert_eq!(request.url, "https://gate.test:8443/bce/v2/instance");
    // Computed by bce-python-sdk 0.9.79.
    let signature = "d814c26eeee5324418b6f29f10b32aa922d61348ec6f3a0eb64739554087255e";
    let authorization = request.header("authorization").unwrap();
    assert!(authorization.ends_with(signature), "{authorization}");
}

#[test]
fn pages_are_read_until_one_is_the_last() {
    let host = host(|_, request| {
        assert_eq!(request.query("maxKeys").as_deref(), Some("1000"));
        let (item, next) = match request.query("marker").as_deref() {
            None => (0, Some("m/1")),
            Some("m/1") => (1, Some("m/2")),
            Some("m/2") => (2, None),
            odd => panic!("{odd:?}"),
        };
        said(json!({ "item": [{ "id": item }], "isTruncated": next.is_some(), "nextMarker": next }))
    });
    let items: Vec<Item> = provider(&host).api.list(&machines(), "item").unwrap();
    assert_eq!(items, [Item { id: 0 }, Item { id: 1 }, Item { id: 2 }]);
}

#[test]
fn answers_without_a_list_are_no_empty_lists() {
    let cut = json!({ "item": [], "isTruncated": true, "nextMarker": "" });
    for odd in [
        json!([]),
        json!({}),
        json!({ "item": null }),
        json!({ "item": {} }),
        cut,
    ] {
        let answer = odd.clone();
        let host = host(move |_, _| said(answer.clone()));
        let listed = provider(&host).api.list::<Item>(&machines(), "item");
        assert!(listed.is_err(), "{odd}: {listed:?}");
    }
}

#[test]
fn odd_items_fail_lists_and_are_left_out_of_listings() {
    let odd = host(|_, _| listed("item", vec![json!({ "id": "x" }), json!({ "id": 7 })]));
    let api = provider(&odd).api;
    let refused = api.list::<Item>(&machines(), "item").unwrap_err();
    assert!(refused.message().contains("cannot be read"), "{refused:?}");
    let mut seen = Vec::new();
    api.each(&machines(), "item", |item: Item| seen.push(item)).unwrap();
    assert_eq!(seen, [Item { id: 7 }]);
}

#[test]
fn codes_decide_what_a_refusal_is() {
    for (status, code, kind) in [
        (404, "NoSuchObject", FailureKind::NotFound),
        (404, "BackendServerNotFound", FailureKind::NotFound),
        (403, "AccessDenied", FailureKind::Denied),
        (403, "SignatureDoesNotMatch", FailureKind::Denied),
        (403, "RequestExpired", FailureKind::Denied),
        (400, "ListenerAlreadyExist", FailureKind::AlreadyExists),
        (409, "LastOperationNotFinished", FailureKind::Conflict),
        (409, "SomethingNew", FailureKind::Conflict),
        (429, "RequestLimitExceeded", FailureKind::RateLimited),
        (400, "OperationTooFrequently", FailureKind::RateLimited),
        (429, "SomethingNew", FailureKind::RateLimited),
        (403, "EipQuotaExceeded", FailureKind::Exhausted),
        (400, "InappropriateJSON", FailureKind::Invalid),
        (500, "InternalError", FailureKind::Unavailable),
    ] {
        let cloud = host(move |_, _| refused(status, code));
        let failure = provider(&cloud).api.change(&machines()).unwrap_err();
        assert_eq!(failure.kind, kind, "{code}");
        assert_eq!(failure.code.as_deref(), Some(code));
        let text = format!("GET /v2/instance: {code}: words");
        assert!(failure.message.starts_with(&text), "{failure:?}");
    }
}

#[test]
fn what_is_no_answer_of_baidu_denies_nothing() {
    for (status, body) in [
        (404, "<html>not found</html>"),
        (404, "{}"),
        (502, ""),
        (404, r#"{"code": 7}"#),
    ] {
        let cloud = host(move |_, _| FakeAnswer::new(status, &[], body));
        let failure = provider(&cloud).api.change(&machines()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable, "{status} {body}");
    }
}

#[test]
fn dry_run_sends_no_change() {
    let cloud = host(|_, _| said(json!({ "id": 1 })));
    cloud.dry_run();
    let api = provider(&cloud).api;
    assert_eq!(api.send(&machines()), Ok(Item { id: 1 }));
    let told = api
        .change(&Call::new(Product::Blb, "DELETE", "/v1/blb/lb-1"))
        .unwrap_err();
    assert_eq!(told.message(), "dry run: would send DELETE /v1/blb/lb-1");
    assert_eq!(cloud.requests().len(), 1);
}

#[test]
fn ids_need_no_encoding() {
    assert!(is_id("i-rtYbC2kd") && is_id("lb_7"));
    for odd in ["", "a/b", "a b", "../x", "\u{e9}", &"x".repeat(129)] {
        assert!(!is_id(odd), "{odd}");
    }
}
