//! The metadata service of the instance that the process runs on (IMDSv2).

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;

/// How long to wait: the service is on the machine itself. It does not answer at all when the answer may travel one hop only and
/// Cloudwit runs in a Pod with a network of its own.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds for which a session with the metadata service lasts; the longest there is, as AWS's SDKs take it.
const SESSION: &str = "21600";

/// A client with a session.
///
/// # Errors
/// `unavailable` when the service does not answer, `denied` when it is not granted.
pub fn session(context: Context, metadata: &str) -> Result<Http, Failure> {
    let http = context.http().base(metadata).timeout(PATIENCE);
    let session = http
        .put("/latest/api/token")
        .header("x-amz-ec2-metadata-token-ttl-seconds", SESSION)
        .send()
        .map_err(|failure| match failure {
            Failure {
                kind: FailureKind::Unavailable,
                ..
            } => failure.context(
                "the metadata service does not answer (in a Pod without hostNetwork it needs a hop limit of 2)",
            ),
            other => other.context("the metadata service"),
        })?;
    Ok(http.header("x-aws-ec2-metadata-token", session.text().trim()))
}
