//! What Compute Engine refuses, as failures: by `reason` of an answer, by `code` of an operation.

use cloudwit_guest_sdk::classify::{Case, Codes};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Reasons of answers, and codes of operations in capitals.
const CODES: Codes = Codes::new(&[
    ("notFound", Case::NotFound),
    ("alreadyExists", Case::AlreadyExists),
    ("resourceInUseByAnotherResource", Case::FailedPrecondition),
    ("resourceNotReady", Case::Conflict),
    ("conditionNotMet", Case::Conflict),
    ("fingerprintMismatch", Case::Conflict),
    ("rateLimitExceeded", Case::RateLimited),
    ("userRateLimitExceeded", Case::RateLimited),
    ("quotaExceeded", Case::Exhausted),
    ("limitExceeded", Case::Exhausted),
    ("backendError", Case::Unavailable),
    ("internalError", Case::Unavailable),
    ("RESOURCE_NOT_FOUND", Case::NotFound),
    ("RESOURCE_ALREADY_EXISTS", Case::AlreadyExists),
    ("IP_IN_USE_BY_ANOTHER_RESOURCE", Case::AlreadyExists),
    ("RESOURCE_IN_USE*", Case::FailedPrecondition),
    ("RESOURCE_NOT_READY", Case::Conflict),
    ("CONDITION_NOT_MET", Case::Conflict),
    ("RATE_LIMIT_EXCEEDED", Case::RateLimited),
    ("QUOTA_EXCEEDED", Case::Exhausted),
    ("LIMIT_EXCEEDED", Case::Exhausted),
    ("ZONE_RESOURCE_POOL_EXHAUSTED*", Case::Exhausted),
    ("PERMISSIONS_ERROR", Case::Denied),
    ("INVALID_*", Case::Invalid),
    ("INTERNAL_ERROR", Case::Unavailable),
]);

/// Google's errors.
#[derive(Deserialize)]
struct Body {
    error: Error,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Error {
    message: String,
    errors: Vec<Reason>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Reason {
    reason: String,
}

/// OAuth's errors.
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
    let reason = error.errors.first().map_or("", |first| first.reason.as_str());
    CODES.failure(answer, reason, &error.message)
}

/// The failure of an operation that ended so.
pub fn of_operation(what: &str, code: &str, message: &str) -> Failure {
    let text = format!("{what}: {code}: {message}");
    CODES.case_of_ended(code).failure(None, text).with_code(code)
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
            let text = format!(
                "{}: {}; check client-email, private-key-id and the secret private-key",
                said.error, said.error_description
            );
            Err(Failure::denied(text).with_code(&said.error))
        }
        _ => answer.success(),
    }
}

/// Whether this is Compute Engine's denial of exactly this machine. A missing project or zone is a mistake, not an absence.
pub fn denies_instance(failure: &Failure, name: &str) -> bool {
    denies(failure, "instances", name)
}

/// The same of anything of this collection.
pub fn denies(failure: &Failure, collection: &str, name: &str) -> bool {
    failure.is_not_found() && failure.message().contains(&format!("/{collection}/{name}'"))
}
