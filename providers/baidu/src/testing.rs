//! For tests: a host, and a cloud that answers by method and path.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use crate::Baidu;

/// All that is needed.
pub const CONFIG: &str = r#"{"AccessKeyID": "K", "Region": "bj", "ClusterId": "cce-1", "VpcId": "vpc-1"}"#;

/// An answer.
pub fn said(value: Value) -> FakeAnswer {
    FakeAnswer::json(200, &value)
}

/// A refusal.
pub fn refused(status: u16, code: &str) -> FakeAnswer {
    let value = json!({ "requestId": "r-1", "code": code, "message": "words" });
    FakeAnswer::json(status, &value)
}

/// A list on one page.
pub fn listed(items: &str, list: impl Into<Value>) -> FakeAnswer {
    said(json!({ items: list.into(), "isTruncated": false, "nextMarker": "", "maxKeys": 1000 }))
}

/// A host with this cloud, which answers by method and path.
pub fn host(cloud: impl Fn(&str, &SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(CONFIG).now(1_795_430_000).secret("secret-access-key", "S");
    host.serve(move |request| cloud(&call(request), request));
    host
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> Baidu {
    host.provider()
}

/// Product, method and path of a request: `GET bcc/v2/instance`.
pub fn call(request: &SentRequest) -> String {
    let url = request.url.strip_prefix("https://").unwrap_or_default();
    let (host, path) = url.split_once('/').unwrap_or((url, ""));
    let product = host.split('.').next().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    format!("{} {product}/{path}", request.method)
}

/// All of them so far.
pub fn calls(host: &FakeHost) -> Vec<String> {
    host.requests().iter().map(call).collect()
}
