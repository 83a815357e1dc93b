//! What the Resource Manager refuses, as failures.

use cloudwit_guest_sdk::classify::{Case, Codes};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Throttling has the status, and codes that mean something else elsewhere.
const THROTTLED: Codes = Codes::new(&[("*", Case::RateLimited)]);

/// Quotas, each with a code of its own.
const USED_UP: Codes = Codes::new(&[("*", Case::Exhausted)]);

const CODES: Codes = Codes::new(&[
    ("ResourceNotFound", Case::NotFound),
    ("ResourceGroupNotFound", Case::NotFound),
    ("ParentResourceNotFound", Case::NotFound),
    ("NotFound", Case::NotFound),
    ("SubscriptionNotFound", Case::Invalid),
    ("InvalidSubscriptionId", Case::Invalid),
    ("InvalidResourceReference", Case::FailedPrecondition),
    ("AuthorizationFailed", Case::Denied),
    ("LinkedAuthorizationFailed", Case::Denied),
    ("PreconditionFailed*", Case::Conflict),
    ("AnotherOperationInProgress", Case::Conflict),
    ("Canceled*", Case::Conflict),
    ("RetryableError*", Case::Conflict),
    ("TooManyRequests", Case::RateLimited),
    ("SubscriptionRequestsThrottled", Case::RateLimited),
    ("ReferencedResourceNotProvisioned", Case::Conflict),
    // A zone or region has no room for a disk.
    ("*AllocationFailed", Case::Exhausted),
    ("Overconstrained*", Case::Exhausted),
    ("SkuNotAvailable", Case::Exhausted),
    // A disk that is to be attached belongs to another machine.
    ("ConflictingUserInput", Case::FailedPrecondition),
    // It is in use still, or not any more a moment later.
    ("PublicIPAddressCannotBeDeleted", Case::Conflict),
    ("InUse*", Case::Conflict),
]);

#[derive(Deserialize)]
struct Body {
    error: Error,
}

/// An error of an answer or of an operation.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Error {
    /// Code.
    pub code: String,
    /// Words.
    pub message: String,
}

/// Entra's errors, and the metadata service's.
#[derive(Deserialize)]
struct OAuth {
    error: String,
    #[serde(default)]
    error_description: String,
}

/// The failure of an answer that is no success.
pub fn failure(answer: &Response) -> Failure {
    let Ok(Body { error }) = answer.json() else {
        // A proxy's page: its 404 is no evidence about the requested resource.
        let own = answer.clone().success();
        let failure = own
            .err()
            .unwrap_or_else(|| Failure::unavailable("an answer without a body"));
        return match failure.kind {
            FailureKind::NotFound => Failure::unavailable(failure.message),
            _ => failure,
        };
    };
    let codes = match answer.status {
        429 => THROTTLED,
        _ if is_quota(&error.code) => USED_UP,
        _ => CODES,
    };
    codes.failure(answer, &error.code, &error.message)
}

fn is_quota(code: &str) -> bool {
    code.ends_with("QuotaExceeded") || code.ends_with("LimitReached") || code.ends_with("LimitExceeded")
}

/// The failure of an operation that ended so.
pub fn of_operation(error: &Error, status: &str) -> Failure {
    let code = if error.code.is_empty() { status } else { &error.code };
    let text = format!("the operation ended: {code}: {}", error.message);
    let case = match is_quota(code) {
        true => Case::Exhausted,
        false => CODES.case_of_ended(code),
    };
    case.failure(None, text).with_code(code)
}

/// Whether this is the cloud's denial of exactly this resource. A missing subscription is a mistake, not an absence.
pub fn denies_resource(failure: &Failure) -> bool {
    let known = [
        "ResourceNotFound",
        "ResourceGroupNotFound",
        "ParentResourceNotFound",
        "NotFound",
    ];
    failure.is_not_found() && failure.code.as_deref().is_some_and(|code| known.contains(&code))
}

/// The answer of a token endpoint if it is a success. Its 400s mean that the credentials are wrong, and not the request.
///
/// # Errors
/// `denied` for these.
pub fn success_of_token(answer: Response) -> Result<Response, Failure> {
    if (200..300).contains(&answer.status) {
        return Ok(answer);
    }
    match answer.json::<OAuth>() {
        Ok(said) if answer.status < 500 && answer.status != 429 => {
            // Its first line is the message; trace ids and times follow, which would make each failure a different one.
            let words = said.error_description.lines().next().unwrap_or_default();
            let words = words.split(" Trace ID:").next().unwrap_or_default();
            let text = format!(
                "{}: {words}; check tenantId, aadClientId and the identity's secret",
                said.error
            );
            Err(Failure::denied(text).with_code(&said.error))
        }
        _ => answer.success(),
    }
}
