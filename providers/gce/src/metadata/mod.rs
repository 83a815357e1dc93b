//! The metadata server of the machine that Cloudwit runs on.

mod dns;
mod location;

use cloudwit_guest_sdk::prelude::*;

use crate::auth;
use crate::config::{Global, given};

/// Where it is on every machine of Compute Engine.
const METADATA: &str = "http://metadata.google.internal";

/// It is near: a machine without one does not answer at all.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// The grant request for it, where something is needed of it.
pub fn wish(global: &Global) -> Option<HttpWish> {
    if !global.needs_place() && !auth::needs_metadata(global) {
        return None;
    }
    HttpWish::for_url(url(global), &["GET"], "the metadata server (allowLinkLocal: true)")
}

fn url(global: &Global) -> &str {
    given(&global.metadata_endpoint).unwrap_or(METADATA)
}

/// The value under this path of `/computeMetadata/v1`.
///
/// # Errors
/// `unavailable` when there is none.
pub fn get(global: &Global, context: Context, path: &str) -> Result<Response, Failure> {
    let http = context.http().base(url(global)).timeout(TIMEOUT);
    let target = format!("/computeMetadata/v1{path}");
    let answer = http.get(&target).header("metadata-flavor", "Google").send();
    answer.map_err(|failure| failure.context("asking the metadata server"))
}
