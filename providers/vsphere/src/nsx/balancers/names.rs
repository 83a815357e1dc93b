//! Objects that the cloud config names by display name: looked up once and cached for a while.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use serde_json::Value;

use crate::nsx::api::Nsx;
use crate::nsx::object::text;
use crate::nsx::settings::Reference;

/// How long the object of a name is cached. Names hardly ever change.
const KEPT: Keep = Keep::at_most(Duration::from_secs(60));

/// How long a call waits for another one with the same request.
const WAIT: Duration = Duration::from_secs(10);

/// The id of an IP pool.
///
/// # Errors
/// `failed-precondition` where there is none, or several; the error of NSX.
pub fn pool_id(nsx: &Nsx<'_>, pool: &Reference) -> Result<String, Failure> {
    match pool {
        Reference::Exact(id) => Ok(id.clone()),
        Reference::Name(name) => named(nsx, "/infra/ip-pools", "IP pool", name, "id", |_| true),
    }
}

/// The path of an application profile for this protocol.
///
/// # Errors
/// As [`pool_id`].
pub fn profile_path(nsx: &Nsx<'_>, protocol: Protocol, profile: &Reference) -> Result<String, Failure> {
    let (kind, what) = match protocol {
        Protocol::Udp => ("LBFastUdpProfile", "application profile for UDP"),
        _ => ("LBFastTcpProfile", "application profile for TCP"),
    };
    match profile {
        Reference::Exact(path) => Ok(path.clone()),
        Reference::Name(name) => named(nsx, "/infra/lb-app-profiles", what, name, "path", |profile| {
            text(profile, "resource_type") == kind
        }),
    }
}

/// The field of the one object with this name.
fn named(
    nsx: &Nsx<'_>,
    collection: &str,
    what: &str,
    name: &str,
    field: &str,
    of_kind: impl Fn(&Value) -> bool,
) -> Result<String, Failure> {
    let key = format!("nsx/{what}/{name}");
    nsx.context.state().get_or_make(&key, KEPT, WAIT, || {
        let found = nsx.list(collection, |object| text(object, "display_name") == name && of_kind(object))?;
        match found.as_slice() {
            [one] => Ok(text(one, field).to_owned()),
            [] => Err(Failure::failed_precondition(format!("NSX has no {what} named \"{name}\""))),
            _ => Err(Failure::failed_precondition(format!(
                "NSX has several objects that are an {what} named \"{name}\"; name it by its {field} in the cloud config"
            ))),
        }
    })
}
