//! For tests: a host, and a cloud that answers by the action.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use crate::Alibaba;

/// An access key in `cn-test`.
pub const CONFIG: &str = r#"{"Global": {"accessKeyID": "LTAIk", "region": "cn-test", "vpcid": "vpc-1", "clusterID": "c1", "vswitchid": "cn-test-a:vsw-1,cn-test-b:vsw-2"}}"#;

/// An answer.
pub fn said(mut value: Value) -> FakeAnswer {
    value["RequestId"] = json!("1");
    FakeAnswer::json(200, &value)
}

/// A refusal.
pub fn refused(status: u16, code: &str) -> FakeAnswer {
    FakeAnswer::json(
        status,
        &json!({ "Code": code, "Message": "words", "RequestId": "1", "HostId": "h" }),
    )
}

/// A host with this cloud, which answers by action.
pub fn host(cloud: impl Fn(&str, &SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(CONFIG).now(1_795_430_000).secret("access-key-secret", "S");
    host.serve(move |request| cloud(&action(request), request));
    host
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> Alibaba {
    host.provider()
}

/// Which action a request is, by both signatures.
pub fn action(request: &SentRequest) -> String {
    let signed = request.header("x-acs-action").map(str::to_owned);
    signed.or(request.field("Action")).unwrap_or_default()
}

/// A parameter, wherever it is.
pub fn parameter(request: &SentRequest, name: &str) -> Option<String> {
    request.query(name).or(request.field(name))
}

/// All actions so far.
pub fn actions(host: &FakeHost) -> Vec<String> {
    host.requests().iter().map(action).collect()
}
