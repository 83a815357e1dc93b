//! Credentials of the instance that Cloudwit runs on, from its metadata service (IMDSv2).
//!
//! A session token first, then the name of the instance's role, then that role's credentials.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use serde::Deserialize;

use crate::credentials::Temporary;
use crate::sender::Sender;
use crate::signature::HeldSecret;

/// How long to wait: the service is on the machine itself. It does not answer at all when the answer may travel one hop only and
/// Cloudwit runs in a Pod with a network of its own.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds for which a session with the metadata service lasts; the longest there is, as AWS's SDKs take it.
const SESSION: &str = "21600";

const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
#[derive(Default)]
struct Answer {
    code: String,
    message: String,
    access_key_id: String,
    secret_access_key: String,
    token: String,
    expiration: String,
}

/// The credentials of the instance's role, and when they end.
///
/// # Errors
/// `not-found` when the instance has no role, `denied` when the metadata service gives nothing, `unavailable` when it does not answer.
pub fn from_instance_profile(sender: &Sender, metadata: &str) -> Result<(Temporary, u64), Failure> {
    let http = sender.context.http().base(metadata).timeout(PATIENCE);
    let session = http
        .put("/latest/api/token")
        .header("x-amz-ec2-metadata-token-ttl-seconds", SESSION)
        .send()
        .map_err(|failure| match failure {
            Failure::Unavailable(_) => failure.context(
                "the metadata service does not answer (in a Pod without hostNetwork it needs a hop limit of 2)",
            ),
            other => other.context("the metadata service"),
        })?;
    let http = http.header("x-aws-ec2-metadata-token", session.text().trim());
    let roles = http.get(ROLES).send_optional()?;
    let roles = roles.as_ref().map(|roles| roles.text()).unwrap_or_default();
    let Some(role) = roles.lines().map(str::trim).find(|role| !role.is_empty()) else {
        return Err(Failure::not_found(
            "this instance has no role; attach an instance profile, or choose another source of credentials",
        ));
    };
    let response = http.get(&[ROLES, role].concat()).send()?;
    let answer: Answer = response.json()?;
    if !matches!(answer.code.as_str(), "" | "Success") {
        let text = [
            "the metadata service gives no credentials for the role ",
            role,
            ": ",
            &answer.code,
            " ",
            &answer.message,
        ];
        return Err(Failure::denied(text.concat().trim_end()));
    }
    let whole = [&answer.access_key_id, &answer.secret_access_key, &answer.token];
    let expires = parse_rfc3339(&answer.expiration).filter(|_| whole.iter().all(|part| !part.is_empty()));
    let Some(expires) = expires else {
        return Err(Failure::other(
            [
                "the metadata service's credentials for the role ",
                role,
                " are not whole",
            ]
            .concat(),
        ));
    };
    let temporary = Temporary {
        access_key_id: answer.access_key_id,
        secret_access_key: HeldSecret(answer.secret_access_key),
        session_token: HeldSecret(answer.token),
    };
    Ok((temporary, expires))
}
