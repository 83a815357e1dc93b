//! What Alibaba Cloud's error codes mean. They are in the body; the status is 4xx or 5xx.

use cloudwit_guest_sdk::classify::{Case, Codes, not_the_cloud};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Codes of all products. What ends with `.NotFound` is judged apart, after these.
const CODES: Codes = Codes::new(&[
    ("Throttling*", Case::RateLimited),
    ("ServiceUnavailable*", Case::Unavailable),
    ("InternalError*", Case::Unavailable),
    ("SignatureNonceUsed", Case::Aborted),
    ("SignatureDoesNotMatch", Case::Denied),
    ("IncompleteSignature", Case::Denied),
    ("InvalidAccessKeyId*", Case::Denied),
    ("InvalidSecurityToken*", Case::Denied),
    ("InvalidTimeStamp*", Case::Denied),
    ("MissingSecurityToken*", Case::Denied),
    ("Forbidden*", Case::Denied),
    ("NoPermission*", Case::Denied),
    ("OperationFailed.TokenIsProcessing", Case::Conflict),
    ("OperationFailed.ListenerStatusNotSupport", Case::Conflict),
    ("OperationDenied.ServiceIsConfiguring", Case::Conflict),
    ("ServiceIsConfiguring", Case::Conflict),
    ("ServiceIsStopping", Case::Conflict),
    ("BackendServer.configuring", Case::Conflict),
    ("IncorrectRouteEntryStatus", Case::Conflict),
    ("IncorrectStatus*", Case::Conflict),
    ("IncorrectVpcStatus", Case::Conflict),
    ("ResourceInConfiguring*", Case::Conflict),
    ("ResourceInUse*", Case::Conflict),
    ("Conflict*", Case::Conflict),
    ("TaskConflict*", Case::Conflict),
    ("SystemBusy", Case::Conflict),
    ("RspoolVipExist", Case::Conflict),
    ("ResourceNotFound*", Case::NotFound),
    ("ResourceAlreadyExist*", Case::AlreadyExists),
    ("ListenerAlreadyExists", Case::AlreadyExists),
    ("InvalidCIDRBlock.Duplicate", Case::AlreadyExists),
    ("RouteConflict", Case::AlreadyExists),
    ("QuotaExceeded*", Case::Exhausted),
    ("QUOTA_EXCEEDED*", Case::Exhausted),
    ("VSwitchAvailableIpNotExist", Case::Exhausted),
    ("InsufficientBalance", Case::Exhausted),
    ("MissingParameter*", Case::Invalid),
]);

/// Codes with which temporary credentials end.
const ENDED: [&str; 4] = [
    "InvalidSecurityToken.Expired",
    "InvalidSecurityToken.MismatchWithAccessKey",
    "InvalidSecurityToken.Malformed",
    "InvalidAccessKeyId.NotFound",
];

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refusal {
    code: String,
    #[serde(default)]
    message: String,
}

/// The failure of an action that was refused; that it is not the cloud that answers, where it is not.
pub fn failure(action: &str, response: &Response) -> Failure {
    let Ok(Refusal { code, message }) = serde_json::from_slice(&response.body) else {
        return not_the_cloud(response, action, "Alibaba Cloud's API");
    };
    let mut failure = CODES.failure(response, &code, &message);
    failure.kind = of_code(&code, failure.kind);
    failure.message = format!("{action}: {code}: {message}");
    match code.as_str() {
        "SignatureDoesNotMatch" => failure
            .message
            .push_str("; check accessKeyID and the secret access-key-secret"),
        _ if code.starts_with("InvalidTimeStamp") => failure.message.push_str("; check the clock of this machine"),
        _ if code.starts_with("InvalidAccessKeyId") => failure.message.push_str("; check accessKeyID"),
        _ => {}
    }
    failure
}

/// The failure of one item of an action that was done for others.
pub fn of_item(action: &str, code: &str, message: &str) -> Failure {
    let case = CODES.case(code).unwrap_or(Case::Other);
    let failure = case
        .failure(None, format!("{action}: {code}: {message}"))
        .with_code(code);
    Failure {
        kind: of_code(code, failure.kind.clone()),
        ..failure
    }
}

/// What parts of a code say that no table has whole.
fn of_code(code: &str, kind: FailureKind) -> FailureKind {
    match CODES.case(code) {
        Some(_) => kind,
        None if code.ends_with(".NotFound") || code.ends_with(".NotExist") || code.ends_with("NotExists") => {
            FailureKind::NotFound
        }
        None if code.contains("Quota") || code.contains("ExceedLimit") => FailureKind::Exhausted,
        None => kind,
    }
}

/// Whether other credentials may help.
pub fn is_ended(failure: &Failure) -> bool {
    failure.code.as_deref().is_some_and(|code| ENDED.contains(&code))
}
