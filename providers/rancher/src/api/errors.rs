//! What Cattle's refusals mean. Each is an object of the type `error` with a code (`ValidationErrorCodes`, or the name of the HTTP status).

use cloudwit_guest_sdk::classify::{Case, Codes};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

/// Codes whose case does not follow from the status.
const CODES: Codes = Codes::new(&[
    ("NotUnique", Case::AlreadyExists),
    ("InvalidReference", Case::Conflict),
    ("InvalidState", Case::FailedPrecondition),
    ("ActionNotAvailable", Case::Conflict),
    ("MaxLimitExceeded", Case::OutOfRange),
    ("MinLimitExceeded", Case::OutOfRange),
]);

/// Codes for: the object of the change is in another state by now, and the change has to be planned again. `MethodNotAllowed` is what a removal gets in a state in
/// which there is none.
pub const BUSY: &[&str] = &["Conflict", "InvalidReference", "ActionNotAvailable", "MethodNotAllowed"];

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Refusal {
    r#type: String,
    code: Option<String>,
    message: Option<String>,
    detail: Option<String>,
    field_name: Option<String>,
}

/// The answer, where it is a success.
///
/// # Errors
/// The cloud's error. A 404 of something else, such as a proxy, is `unavailable`: it is no evidence about what was requested.
pub fn checked(response: Response) -> Result<Response, Failure> {
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    match response.json::<Refusal>() {
        Ok(refusal) if refusal.r#type == "error" => {
            let code = refusal.code.unwrap_or_default();
            let words = [refusal.message, refusal.detail, refusal.field_name];
            let words: Vec<String> = words.into_iter().flatten().filter(|word| *word != code).collect();
            Err(CODES.failure(&response, &code, &words.join(": ")))
        }
        _ if response.status == 404 => Err(Failure::unavailable(
            "this 404 is not Rancher's; is cattle-url right, and is Rancher up behind its proxy?",
        )),
        _ => response.success(),
    }
}
