//! What Alibaba Cloud's error codes mean. They are in the body; the status is 4xx or 5xx.

use cloudwit_guest_sdk::classify::{Case, Codes, not_the_cloud};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Codes of all products.
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
    ("*.NotFound", Case::NotFound),
    ("*.NotExist", Case::NotFound),
    ("*NotExists", Case::NotFound),
    ("*Quota*", Case::Exhausted),
    ("*ExceedLimit*", Case::Exhausted),
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
    let hint = match code.as_str() {
        "SignatureDoesNotMatch" => "; check accessKeyID and the secret access-key-secret",
        _ if code.starts_with("InvalidTimeStamp") => "; check the clock of this machine",
        _ if code.starts_with("InvalidAccessKeyId") => "; check accessKeyID",
        _ => "",
    };
    Failure {
        message: format!("{action}: {code}: {message}{hint}"),
        ..CODES.failure(response, &code, &message)
    }
}

/// The failure of one item of an action that was done for others.
pub fn of_item(action: &str, code: &str, message: &str) -> Failure {
    let case = CODES.case(code).unwrap_or(Case::Other);
    let text = format!("{action}: {code}: {message}");
    case.failure(None, text).with_code(code)
}

/// Whether other credentials may help.
pub fn is_ended(failure: &Failure) -> bool {
    failure.code.as_deref().is_some_and(|code| ENDED.contains(&code))
}
