//! The probe: one cheap call to each service that is used, so that every endpoint that is not granted is reported at once.
//!
//! A cloud without Octavia passes: Services that request a load balancer get an error then.

use cloudwit_guest_sdk::prelude::*;

use crate::OpenStack;
use crate::api::Endpoint;

/// Calls every service.
///
/// # Errors
/// The first failure's case with the texts of all.
pub fn probe(provider: &OpenStack) -> Result<(), Failure> {
    let session = provider.api.session()?;
    let balancers =
        provider.config.loadbalancer.enabled != Some(false) && session.catalog.url(Endpoint::LoadBalancer).is_ok();
    let mut first: Option<Failure> = None;
    for (endpoint, path) in [
        (Endpoint::Compute, "/servers"),
        (Endpoint::Network, "/v2.0/networks"),
        (Endpoint::LoadBalancer, "/v2.0/lbaas/loadbalancers"),
    ] {
        if endpoint == Endpoint::LoadBalancer && !balancers {
            continue;
        }
        if let Err(failure) = provider.api.get(endpoint, path).query("limit", "1").send() {
            first = Some(match first {
                None => failure,
                Some(before) => before.context(failure.message()),
            });
        }
    }
    first.map_or(Ok(()), Err)
}
