use std::cell::Cell as Counter;

use cloudwit_guest_sdk::testing::FakeAnswer;
use serde_json::json;

use super::*;
use crate::testing::{CONFIG, action, host, parameter, provider, refused, said};

fn any() -> Call {
    Call::new(ECS, "DescribeInstances").field("InstanceIds", "[\"i-1\"]")
}

#[test]
fn a_request_is_signed_and_names_its_region() {
    let host = host(|_, _| said(json!({})));
    provider(&host).api.send::<Value>(&any()).unwrap();
    let request = &host.requests()[0];
    assert_eq!(
        request.url,
        "https://ecs.cn-test.aliyuncs.com/?InstanceIds=%5B%22i-1%22%5D&RegionId=cn-test"
    );
    let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
    assert_eq!(
        (header("x-acs-version"), header("x-acs-date")),
        ("2014-05-26".into(), "2026-11-23T10:33:20Z".into())
    );
    let authorization = header("authorization");
    let names = "SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version,Signature=";
    assert!(
        authorization.starts_with("ACS3-HMAC-SHA256 Credential=LTAIk,") && authorization.contains(names),
        "{authorization}"
    );
    let call = Call::new(NLB, "ListListeners").list("LoadBalancerIds", ["nlb-1"]);
    provider(&host).api.send::<Value>(&call).unwrap();
    let request = &host.requests()[1];
    assert_eq!(
        (request.url.as_str(), request.text().as_str()),
        (
            "https://nlb.cn-test.aliyuncs.com/?",
            "LoadBalancerIds.1=nlb-1&RegionId=cn-test"
        )
    );
    assert!(
        request
            .header("authorization")
            .unwrap()
            .contains("SignedHeaders=content-type;host;")
    );
}

#[test]
fn a_private_cloud_gets_rpc_signatures() {
    let host = host(|_, _| said(json!({})));
    host.config(CONFIG.replace("\"region\"", "\"signature\": \"HMAC-SHA1\", \"region\""));
    provider(&host).api.send::<Value>(&any()).unwrap();
    let request = &host.requests()[0];
    assert_eq!(action(request), "DescribeInstances");
    for (name, value) in [
        ("SignatureMethod", "HMAC-SHA1"),
        ("AccessKeyId", "LTAIk"),
        ("Timestamp", "2026-11-23T10:33:20Z"),
        ("Version", "2014-05-26"),
    ] {
        assert_eq!(parameter(request, name).as_deref(), Some(value), "{name}");
    }
    assert!(parameter(request, "Signature").is_some_and(|signature| signature.ends_with('=')));
}

#[test]
fn lists_are_read_to_their_end_and_never_half() {
    let pages = Counter::new(0);
    let host = host(move |_, request| {
        pages.set(pages.get() + 1);
        let token = parameter(request, "NextToken");
        assert_eq!(token.as_deref(), (pages.get() > 1).then_some("2"));
        match token {
            None => said(json!({ "L": { "I": [1, 2] }, "NextToken": "2", "TotalCount": 3 })),
            Some(_) => said(json!({ "L": { "I": [3] }, "NextToken": "", "TotalCount": 3 })),
        }
    });
    let list = |call: &Call| provider(&host).api.list::<u8>(call, Paging::Token("MaxResults"), "L.I");
    assert_eq!(list(&any()), Ok(vec![1, 2, 3]));
}

#[test]
fn an_answer_without_its_list_is_no_empty_list() {
    for (answer, expected) in [
        (json!({ "TotalCount": 0 }), Some(Vec::new())),
        (json!({ "TotalCount": 0, "L": null }), Some(Vec::new())),
        (json!({ "L": [7], "TotalCount": 1 }), Some(vec![7])),
        (json!({ "TotalCount": 4 }), None),
        (json!({}), None),
        (json!({ "L": {} }), None),
        (json!({ "L": [7, "x"] }), None),
    ] {
        let shown = answer.clone();
        let host = host(move |_, _| said(shown.clone()));
        let seen = provider(&host).api.list::<u8>(&any(), Paging::Whole, "L");
        assert_eq!(seen.ok(), expected, "{answer}");
    }
}

#[test]
fn codes_decide_what_a_refusal_is() {
    for (status, code, kind) in [
        (400, "Throttling.User", FailureKind::RateLimited),
        (503, "ServiceUnavailable", FailureKind::Unavailable),
        (400, "SignatureDoesNotMatch", FailureKind::Denied),
        (404, "InvalidAccessKeyId.NotFound", FailureKind::Denied),
        (403, "Forbidden.RAM", FailureKind::Denied),
        (400, "InvalidTimeStamp.Expired", FailureKind::Denied),
        (404, "InvalidLoadBalancerId.NotFound", FailureKind::NotFound),
        (404, "ResourceNotFound.listener", FailureKind::NotFound),
        (400, "OperationDenied.ServiceIsConfiguring", FailureKind::Conflict),
        (409, "Conflict.Lock", FailureKind::Conflict),
        (400, "QuotaLimitExceeds.LoadBalancer", FailureKind::Exhausted),
        (400, "QuotaExceeded.LoadBalancersNum", FailureKind::Exhausted),
        (400, "InvalidParameter.Scheduler", FailureKind::Invalid),
    ] {
        let host = host(move |_, _| refused(status, code));
        let failure = provider(&host).api.send::<Value>(&any()).unwrap_err();
        assert_eq!(
            (failure.kind.clone(), failure.code.as_deref()),
            (kind, Some(code)),
            "{failure:?}"
        );
        assert!(
            failure
                .message
                .starts_with(&format!("DescribeInstances: {code}: words")),
            "{failure:?}"
        );
    }
    assert_eq!(
        errors::of_item("A", "InvalidRouteEntry.NotFound", "").kind,
        FailureKind::NotFound
    );
}

#[test]
fn what_is_no_answer_of_the_api_denies_nothing() {
    for (status, body) in [(404, "<html>"), (200, "<html>"), (200, "{}"), (502, ""), (200, "[]")] {
        let host = host(move |_, _| FakeAnswer::new(status, &[], body));
        let failure = provider(&host).api.send::<Value>(&any()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unavailable, "{status} {body}");
    }
    let host = host(|_, _| FakeAnswer::new(429, &[], ""));
    let failure = provider(&host).api.send::<Value>(&any()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::RateLimited);
}
