//! Routes to Pod ranges: extra routes of one router, and the ports behind them.
//!
//! ```text
//!   list:   router -> plan.rs (ours? whose?) -> ports (does the Pods' traffic get through?)
//!   apply:  routers.rs, all changes in one request -> address_pairs.rs, port by port -> what failed is undone
//! ```

pub mod address_pairs;
pub mod plan;
pub mod routers;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;

use crate::OpenStack;
use crate::config::given;
use crate::routes::address_pairs::GuardedPort;
use crate::routes::plan::{Owned, hop, owned, route, wanted};
use crate::routes::routers::{Hop, RouterCalls};

impl Routes for OpenStack {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let router = self.router()?;
        let ranges = self
            .context
            .cluster()
            .cidrs
            .iter()
            .map(|text| cidr::parse(text))
            .collect::<Result<Vec<_>, _>>()?;
        let nodes = self.context.nodes()?;
        let hops = router.get()?.routes;
        let mut routes = owned(&hops, &ranges, &nodes);
        if router.extensions.address_pairs {
            let ports = self.ports(&router, &with_node(&routes))?;
            // A route whose port lets nothing through is reported as missing: it is then created again, and with it the pair.
            let works = |(hop, node): &Owned<'_>| {
                let port = ports.iter().find(|port| port.has_address(&hop.nexthop));
                node.is_none() || port.is_none_or(|port| port.lets_through(&hop.destination))
            };
            routes.retain(works);
        }
        Ok(routes.iter().map(route).collect())
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let router = self.router()?;
        let before = router.get()?.routes;
        let deleted = delete
            .iter()
            .map(|route| Change::new(hop(route), !route.blackhole, false, &before))
            .collect();
        let created = create
            .iter()
            .map(|route| Change::new(wanted(route), true, true, &before))
            .collect();
        let deleted = self.change(&router, deleted, false)?;
        let created = self.change(&router, created, true)?;
        Ok(RouteOutcome { created, deleted })
    }
}

/// One change, and what became of it.
struct Change {
    hop: Hop,
    /// Whether the router has to be changed.
    needed: bool,
    /// Whether a port is behind it.
    port: bool,
    result: Result<(), Failure>,
}

impl Change {
    fn new(hop: Result<Hop, Failure>, port: bool, add: bool, before: &[Hop]) -> Self {
        let (hop, result) = match hop {
            Ok(hop) => (hop, Ok(())),
            Err(failure) => (Hop::default(), Err(failure)),
        };
        let there = before.iter().any(|known| known.is(&hop));
        Self {
            needed: result.is_ok() && there != add,
            hop,
            port,
            result,
        }
    }
}

fn with_node<'a>(routes: &[Owned<'a>]) -> Vec<&'a str> {
    routes
        .iter()
        .filter(|(_, node)| node.is_some())
        .map(|(hop, _)| hop.nexthop.as_str())
        .collect()
}

impl OpenStack {
    fn router(&self) -> Result<RouterCalls<'_>, Failure> {
        match given(&self.config.route.router_id) {
            Some(id) => RouterCalls::new(&self.api, self.context, id),
            None => Err(Failure::implemented_elsewhere(
                "no routes are made without router-id in [Route]; write it, or start with --configure-cloud-routes=false",
            )),
        }
    }

    fn ports(&self, router: &RouterCalls<'_>, ips: &[&str]) -> Result<Vec<GuardedPort>, Failure> {
        if ips.is_empty() {
            return Ok(Vec::new());
        }
        address_pairs::ports(&self.api, &router.networks()?, ips)
    }

    /// Adds or removes all routes, then sets the ports behind them right.
    fn change(
        &self,
        router: &RouterCalls<'_>,
        mut changes: Vec<Change>,
        add: bool,
    ) -> Result<Vec<Result<(), Failure>>, Failure> {
        change_router(router, &mut changes, add);
        if router.extensions.address_pairs {
            let behind: Vec<&str> = changes
                .iter()
                .filter(|change| change.port && change.result.is_ok())
                .map(|change| change.hop.nexthop.as_str())
                .collect();
            let mut ports = self.ports(router, &behind);
            for change in changes.iter_mut().filter(|change| change.port && change.result.is_ok()) {
                let outcome = match &mut ports {
                    Ok(ports) => self.change_port(router, ports, &change.hop, add),
                    Err(failure) => Err(failure.clone()),
                };
                if let Err(failure) = outcome {
                    undo(router, change, add);
                    change.result = Err(failure);
                }
            }
        }
        Ok(changes.into_iter().map(|change| change.result).collect())
    }

    fn change_port(
        &self,
        router: &RouterCalls<'_>,
        ports: &mut [GuardedPort],
        hop: &Hop,
        add: bool,
    ) -> Result<(), Failure> {
        match ports.iter_mut().find(|port| port.has_address(&hop.nexthop)) {
            Some(port) => address_pairs::set(&self.api, &router.extensions, port, &hop.destination, add),
            // The port of a deleted server is gone, and its pairs with it.
            None if !add => Ok(()),
            None => Err(Failure::not_found(format!(
                "no port with the address {} is in a network of the router",
                hop.nexthop
            ))),
        }
    }
}

/// All changes in one request; where Neutron refuses them together, one by one, to find the one that is refused.
fn change_router(router: &RouterCalls<'_>, changes: &mut [Change], add: bool) {
    let send = |hops: &[Hop]| router.change(hops, add);
    let mut needed: Vec<&mut Change> = changes.iter_mut().filter(|change| change.needed).collect();
    if needed.is_empty() {
        return;
    }
    let hops: Vec<Hop> = needed.iter().map(|change| change.hop.clone()).collect();
    let Err(failure) = send(&hops) else { return };
    let alone = hops.len() > 1
        && matches!(
            failure.kind,
            FailureKind::Invalid | FailureKind::NotFound | FailureKind::Other
        );
    for change in &mut needed {
        change.result = if alone {
            send(std::slice::from_ref(&change.hop))
        } else {
            Err(failure.clone())
        };
    }
}

/// Takes a change of the router back whose port could not be changed, so that it is seen and tried again as a whole.
fn undo(router: &RouterCalls<'_>, change: &Change, added: bool) {
    if !change.needed {
        return;
    }
    let hops = std::slice::from_ref(&change.hop);
    let undone = router.change(hops, !added);
    if let Err(failure) = undone {
        warn!(
            destination = change.hop.destination,
            "the route could not be set back: {}",
            failure.message()
        );
    }
}

#[cfg(test)]
mod tests;
