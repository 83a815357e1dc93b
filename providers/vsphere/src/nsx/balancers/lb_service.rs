//! The load balancer service of a gateway, which all virtual servers of the cluster share.

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::bodies::{CLUSTER, OWNER, Owner};
use super::seen::{SERVERS, SERVICES, is_there};
use super::work::{Work, path};
use crate::nsx::object::{has_tags, text};
use crate::nsx::settings::LbService;

/// Its path; it is made where the provider manages it.
///
/// # Errors
/// `failed-precondition` where it is not there, or another one than was configured; the error of NSX.
pub fn ensured(work: &mut Work<'_>, owner: &Owner<'_>) -> Result<String, Failure> {
    match &owner.settings.service {
        LbService::Given { id, gateway } => given(work, id, gateway.as_deref()),
        LbService::Managed { gateway, size } => {
            let all = work.nsx.list(SERVICES, is_there)?;
            // A gateway has one at most, of any owner.
            let here = all.iter().find(|one| text(one, "connectivity_path") == gateway);
            if let Some(found) = here.or_else(|| all.iter().find(|one| is_own(one, owner))) {
                return Ok(path(found).into());
            }
            let made = work.put(&own_path(owner), &owner.lb_service(gateway, size), None)?;
            Ok(path(&made).into())
        }
    }
}

fn given(work: &Work<'_>, id: &str, gateway: Option<&str>) -> Result<String, Failure> {
    let missing = || Failure::failed_precondition(format!("NSX has no load balancer service with the id \"{id}\""));
    let found = work.nsx.find(&format!("{SERVICES}/{id}"))?.ok_or_else(missing)?;
    let here = text(&found, "connectivity_path");
    match gateway.filter(|gateway| *gateway != here) {
        Some(gateway) => Err(Failure::failed_precondition(format!(
            "the load balancer service {id} is on the gateway \"{here}\" and not on {gateway}"
        ))),
        None => Ok(path(&found).into()),
    }
}

/// Deletes it when nothing needs it any more, and this cluster has made it.
///
/// # Errors
/// The error of NSX.
pub fn removed_if_unused(work: &mut Work<'_>, owner: &Owner<'_>) -> Result<(), Failure> {
    let LbService::Managed { .. } = &owner.settings.service else {
        return Ok(());
    };
    let own = work.nsx.list(SERVICES, |one| is_there(one) && is_own(one, owner))?;
    for service in &own {
        let used = work
            .nsx
            .list(SERVERS, |server| text(server, "lb_service_path") == path(service))?;
        if used.is_empty() {
            work.delete_unused(path(service))?;
        }
    }
    Ok(())
}

fn is_own(service: &Value, owner: &Owner<'_>) -> bool {
    has_tags(service, &[(OWNER, &owner.settings.owner), (CLUSTER, owner.cluster)])
}

/// Where this cluster's is made: two Services that need it at the same time make one.
fn own_path(owner: &Owner<'_>) -> String {
    format!("{SERVICES}/cloudwit-{}", label_value(owner.cluster))
}
