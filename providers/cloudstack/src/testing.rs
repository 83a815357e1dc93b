//! For tests: a host, and a cloud that answers by the command.

use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};
use serde_json::{Value, json};

use crate::CloudStack;

/// Where the API is.
pub const CONFIG: &str = "[Global]\napi-url = https://cloud.test/client/api\napi-key = K\nproject-id = p-1\n";

/// An answer to a command, in the object that CloudStack puts around it.
pub fn said(command: &str, value: Value) -> FakeAnswer {
    let key = format!("{}response", command.to_ascii_lowercase());
    FakeAnswer::json(200, &json!({ key: value }))
}

/// A refusal.
pub fn refused(command: &str, code: u16, text: &str) -> FakeAnswer {
    let key = format!("{}response", command.to_ascii_lowercase());
    let value = json!({ "uuidList": [], "errorcode": code, "cserrorcode": 9999, "errortext": text });
    FakeAnswer::json(code, &json!({ key: value }))
}

/// The text for an id that nothing has.
pub fn no_such(parameter: &str, id: &str) -> String {
    format!(
        "Unable to execute API command due to invalid value. Invalid parameter {parameter} value={id} due to incorrect long value format, or \
         entity does not exist or due to incorrect parameter annotation for the field in api cmd class."
    )
}

/// A host with this cloud, which answers by command.
pub fn host(cloud: impl Fn(&str, &SentRequest) -> FakeAnswer + 'static) -> FakeHost {
    let host = FakeHost::new();
    host.config(CONFIG).now(1_795_430_000).secret("secret-key", "S");
    host.serve(move |request| cloud(&command(request), request));
    host
}

/// The provider of one call.
pub fn provider(host: &FakeHost) -> CloudStack {
    host.provider()
}

/// Which command a request is.
pub fn command(request: &SentRequest) -> String {
    request.field("command").unwrap_or_default()
}

/// All commands so far.
pub fn commands(host: &FakeHost) -> Vec<String> {
    host.requests().iter().map(command).collect()
}
