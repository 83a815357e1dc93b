//! What CloudStack's error codes mean. The same codes come as HTTP status, in the body, and as the result of a job.

use cloudwit_guest_sdk::classify::{Case, Codes, not_the_cloud};
use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

/// `ApiErrorCode` of CloudStack's API.
const CODES: Codes = Codes::new(&[
    ("401", Case::Denied),
    ("429", Case::RateLimited),
    ("430", Case::Invalid),
    ("431", Case::Invalid),
    // A command that there is not, or that the user's role does not have.
    ("432", Case::Denied),
    ("530", Case::Unavailable),
    ("531", Case::Denied),
    ("532", Case::Exhausted),
    ("533", Case::Exhausted),
    ("534", Case::Unavailable),
    ("535", Case::Exhausted),
    ("536", Case::FailedPrecondition),
    ("537", Case::AlreadyExists),
]);

/// Wrong parameters of all kinds have one code; that something does not exist is only in the message.
const MISSING: [&str; 3] = ["entity does not exist", "Unable to find", "Can't find"];

/// The failure for an answer to a command; none of these words when it is not CloudStack that answers.
pub fn failure(command: &str, response: &Response) -> Failure {
    let body: Value = response.json().unwrap_or_default();
    let said = body.as_object().and_then(|body| body.values().next());
    let Some((code, text)) = said.and_then(read) else {
        return not_the_cloud(response, command, "CloudStack's API");
    };
    let mut failure = CODES.failure(response, &code, &text);
    failure.message = format!("{command}: {code}: {text}");
    if failure.kind == FailureKind::RateLimited && failure.retry_after.is_none() {
        failure.retry_after = pause(&text);
    }
    if code == "401" {
        failure
            .message
            .push_str("; check api-key, the secret secret-key, and the clock of this machine");
    }
    by_words(failure, &text)
}

/// The failure that a job ended with.
pub fn of_job(doing: &str, result: &Value) -> Failure {
    let (code, text) = read(result).unwrap_or_else(|| ("530".into(), "the job failed and says no more".into()));
    let case = CODES.case(&code).unwrap_or(Case::Unavailable);
    let failure = case.failure(None, format!("{doing}: {code}: {text}")).with_code(&code);
    by_words(failure, &text)
}

fn by_words(failure: Failure, text: &str) -> Failure {
    let kind = match failure.code.as_deref() {
        Some("431") if MISSING.iter().any(|words| text.contains(words)) => FailureKind::NotFound,
        // It was done meanwhile.
        Some("431" | "530") if text.contains("already") => FailureKind::Conflict,
        _ => return failure,
    };
    Failure { kind, ..failure }
}

/// Code and text.
fn read(error: &Value) -> Option<(String, String)> {
    let text = error.get("errortext")?.as_str()?;
    Some((error.get("errorcode")?.to_string(), text.to_owned()))
}

/// Milliseconds of `... please retry after 1500 ms.`, where the number may be in brackets.
fn pause(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("retry after ")?;
    let number = rest
        .trim_start_matches('[')
        .split(|c: char| !c.is_ascii_digit())
        .next()?;
    number.parse().ok()
}
