//! What NSX refuses, as failures. The status decides: the numbers of its errors are many and nowhere listed, so they are only for messages.

use cloudwit_guest_sdk::classify::Codes;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

/// An error of NSX's API (`ApiError`).
#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    error_code: Value,
    error_message: String,
    #[serde(default)]
    related_errors: Vec<Self>,
}

/// The failure of an answer that is no success.
pub fn failure(answer: &Response) -> Failure {
    let Ok(error) = answer.json::<ApiError>() else {
        let own = answer.clone().success().err();
        let own = own.unwrap_or_else(|| Failure::other("an answer that is none of NSX"));
        return match own.kind {
            // A proxy's 404 is no evidence about the requested object.
            FailureKind::NotFound => Failure::unavailable(own.message),
            _ => own,
        };
    };
    let mut text = error.error_message;
    for related in error.related_errors.iter().take(3) {
        text.push_str("; ");
        text.push_str(&related.error_message);
    }
    let code = match error.error_code {
        Value::Null => String::new(),
        code => code.to_string(),
    };
    Codes::new(&[]).failure(answer, &code, &text)
}
