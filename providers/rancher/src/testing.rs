//! For tests: a host, and a Rancher that answers by method and path.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use crate::Rancher;

/// Where the API is.
const BASE: &str = "https://rancher.test/v2-beta/projects/1a5";

/// A page of a list, the last one.
pub fn collection(of: &str, data: &[Value]) -> FakeAnswer {
    let pages = json!({ "first": null, "previous": null, "next": null, "limit": 500, "total": null, "partial": false });
    let value = json!({ "type": "collection", "resourceType": of, "links": {}, "data": data, "pagination": pages });
    FakeAnswer::json(200, &value)
}

/// A refusal.
pub fn refused(status: u16, code: &str) -> FakeAnswer {
    let value = json!({ "id": "1", "type": "error", "status": status, "code": code, "message": "no", "detail": null });
    FakeAnswer::json(status, &value)
}

/// A host with this cloud, which answers by method and path below the API.
pub fn host(cloud: impl Fn(&str, &SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(format!("[Global]\ncattle-url = {BASE}/\n"));
    host.secret("access-key", "A").secret("secret-key", "S");
    host.serve(move |request| cloud(&name(request), request));
    host
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> Rancher {
    host.provider()
}

/// Method and path below the API, with the action.
pub fn name(request: &SentRequest) -> String {
    let path = request.url.strip_prefix(BASE).unwrap_or(&request.url);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    match query.strip_prefix("action=") {
        Some(action) => format!("{} {path}?{action}", request.method),
        None => format!("{} {path}", request.method),
    }
}

/// All so far.
pub fn names(host: &FakeHost) -> Vec<String> {
    host.requests().iter().map(name).collect()
}
