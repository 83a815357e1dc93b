//! What Baidu's error codes mean. All services answer a refusal with `code`, `message` and `requestId`.

use cloudwit_guest_sdk::classify::{Case, Codes, not_the_cloud};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Error codes of BCE, BCC, BLB, EIP and VPC (their API references, "Error codes"). Others are judged by the status.
const CODES: Codes = Codes::new(&[
    ("AccessDenied", Case::Denied),
    ("InvalidAccessKeyId", Case::Denied),
    ("InvalidHTTPAuthHeader", Case::Denied),
    ("SignatureDoesNotMatch", Case::Denied),
    ("RequestExpired", Case::Denied),
    ("OptInRequired", Case::Denied),
    ("QualifyNotPass", Case::Denied),
    ("NoSuchObject", Case::NotFound),
    ("BackendServerNotFound", Case::NotFound),
    ("ListenerAlreadyExist", Case::AlreadyExists),
    ("BackendServerAlreadyExist", Case::AlreadyExists),
    (UNFINISHED, Case::Conflict),
    ("InvalidInstanceStatus", Case::Conflict),
    ("InternalError", Case::Unavailable),
    ("RequestLimit*", Case::RateLimited),
    ("OperationTooFrequent*", Case::RateLimited),
    ("TooManyRequests", Case::RateLimited),
]);

/// A load balancer takes no change while it makes the last one.
pub const UNFINISHED: &str = "LastOperationNotFinished";

#[derive(Deserialize)]
struct Refusal {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default, rename = "requestId")]
    request: String,
}

/// The failure for an answer that is no success.
pub fn failure(call: &str, response: &Response) -> Failure {
    let Ok(refusal) = response.json::<Refusal>() else {
        return not_the_cloud(response, call, "Baidu's API");
    };
    debug!(call = call, code = refusal.code, request = refusal.request, "refused");
    let mut failure = CODES.failure(response, &refusal.code, &refusal.message);
    failure.message = format!("{call}: {}: {}", refusal.code, refusal.message);
    match refusal.code.as_str() {
        "RequestExpired" => failure.message.push_str("; check the clock of this machine"),
        "SignatureDoesNotMatch" | "InvalidAccessKeyId" => {
            let text = "; check AccessKeyID, the secret secret-access-key, and the clock of this machine";
            failure.message.push_str(text);
        }
        code if CODES.case(code).is_none() && code.to_ascii_lowercase().contains("quota") => {
            failure.kind = FailureKind::Exhausted;
        }
        _ => {}
    }
    failure
}
