//! Credentials of the instance that Cloudwit runs on, from its metadata service (IMDSv2).
//!
//! A session token first, then the name of the instance's role, then that role's credentials.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use serde_json::Value;

use crate::api::sender::Sender;
use crate::auth::Given;
use crate::metadata_service;

const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// The credentials of the instance's role, and when they end.
///
/// # Errors
/// `not-found` when the instance has no role, `denied` when the metadata service gives nothing, `unavailable` when it does not answer.
pub fn from_instance_profile(sender: &Sender, metadata: &str) -> Result<(Given, u64), Failure> {
    let http = metadata_service::session(sender.context, metadata)?;
    let roles = http.get(ROLES).send_optional()?;
    let roles = roles.as_ref().map(|roles| roles.text()).unwrap_or_default();
    let Some(role) = roles.lines().map(str::trim).find(|role| !role.is_empty()) else {
        return Err(Failure::not_found(
            "this instance has no role; attach an instance profile, or choose another source of credentials",
        ));
    };
    let response = http.get(&format!("{ROLES}{role}")).send()?;
    let text = response.text();
    // Without the mistake: it may quote a key.
    let answer: Value = serde_json::from_str(&text).map_err(|_| not_whole(role))?;
    let field = |name| answer.get(name).and_then(Value::as_str).unwrap_or_default();
    if !matches!(field("Code"), "" | "Success") {
        let (code, message) = (field("Code"), field("Message"));
        let text = format!("the metadata service gives no credentials for the role {role}: {code} {message}");
        return Err(Failure::denied(text.trim_end()));
    }
    let given = [field("AccessKeyId"), field("SecretAccessKey"), field("Token")];
    match parse_rfc3339(field("Expiration")) {
        Some(expires) if given.iter().all(|part| !part.is_empty()) => Ok((given.map(String::from).into(), expires)),
        _ => Err(not_whole(role)),
    }
}

fn not_whole(role: &str) -> Failure {
    Failure::other(format!(
        "the metadata service's credentials for the role {role} are not whole"
    ))
}
