//! Routes to Pod ranges: static routes of a tier-1 gateway, with an address of the Node as next hop. Ids, names and tags are upstream's.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::targets;
use serde_json::{Value, json};

use super::api::Nsx;
use super::object::{has_tags, items, tag, tags, text};
use super::realized::Realized;
use crate::Vsphere;

/// Scopes of tags (upstream's `route/config/consts_and_errors.go`).
const CLUSTER: &str = "vsphere.k8s.io/cluster-name";
const NODE: &str = "vsphere.k8s.io/node-name";

/// Longest display name, in characters (`StaticRoutes` of NSX's API).
const NAME: usize = 255;

/// Poll interval of a route that NSX is realizing.
const SOON: Duration = Duration::from_secs(1);

/// Where the ids of realized routes are kept, and for how long they are valid after the last one came.
const REALIZED: &str = "nsx/realized-routes";
const BELIEVED: Keep = Keep::at_most(Duration::from_secs(3600));

/// Most routes whose state is read in one list: each is a call.
const LOOKS: usize = 50;

/// With less time left of the call no further change is begun: one request may take as long.
const RESERVE: Duration = Duration::from_secs(10);

impl Routes for Vsphere {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let (nsx, gateway) = self.gateway()?;
        let cluster = self.context.cluster().name;
        let own = |route: &Value| has_tags(route, &[(CLUSTER, &cluster)]);
        let found = nsx.list(&format!("{gateway}/static-routes"), own)?;
        let mut routes: Vec<Route> = found.iter().map(shown).collect();
        self.mark_failed(&nsx, gateway, &mut routes)?;
        Ok(routes)
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let (nsx, gateway) = self.gateway()?;
        let cluster = self.context.cluster().name;
        let deleted = delete.iter().map(|route| {
            self.has_time()?;
            nsx.delete(&format!("{gateway}/static-routes/{}", route.id))
        });
        let deleted = deleted.collect();
        let created = create.iter().enumerate().map(|(at, route)| {
            self.has_time()?;
            let token = tokens.create.get(at).and_then(Option::as_deref);
            match token.filter(|token| !token.is_empty()) {
                Some(path) => look(&nsx, path, &route.destination),
                None => begin(&nsx, gateway, &cluster, route),
            }
        });
        Ok(RouteOutcome {
            deleted,
            created: created.collect(),
        })
    }
}

impl Vsphere {
    fn gateway(&self) -> Result<(Nsx<'_>, &str), Failure> {
        self.nsx(|settings| settings.gateway.as_deref(), "route")
    }

    /// Marks routes that NSX cannot realize, so that they are recreated. Those that it has realized are not read again for a while.
    fn mark_failed(&self, nsx: &Nsx<'_>, gateway: &str, routes: &mut [Route]) -> Result<(), Failure> {
        let state = self.context.state();
        let kept: Vec<String> = state.get(REALIZED).map(|stored| stored.value).unwrap_or_default();
        let is_known = |route: &Route| kept.contains(&route.id);
        let mut known: Vec<String> = routes
            .iter()
            .filter(|route| is_known(route))
            .map(|route| route.id.clone())
            .collect();
        let new: Vec<&mut Route> = routes.iter_mut().filter(|route| !is_known(route)).collect();
        let is_changed = !new.is_empty();
        for route in new.into_iter().take(LOOKS) {
            match Realized::look(nsx, &format!("{gateway}/static-routes/{}", route.id))? {
                Realized::Done => known.push(route.id.clone()),
                Realized::Failed(why) => {
                    warn!(route = route.id, "NSX cannot realize the route: {why}");
                    route.blackhole = true;
                }
                Realized::Waiting => {}
            }
        }
        if is_changed {
            state.put(REALIZED, &known, BELIEVED);
        }
        Ok(())
    }

    fn has_time(&self) -> Result<(), Failure> {
        match self.context.time_left() > RESERVE {
            true => Ok(()),
            false => Err(Failure::pending(
                Duration::from_millis(100),
                "",
                "queued behind other routes",
            )),
        }
    }
}

/// Requests a route. What is there already is brought in line.
fn begin(nsx: &Nsx<'_>, gateway: &str, cluster: &str, route: &NewRoute) -> Result<(), Failure> {
    let family = match route.destination.contains(':') {
        true => IpFamily::Ipv6,
        false => IpFamily::Ipv4,
    };
    let hop = targets::address(&route.node, Some(family)).ok_or_else(|| {
        Failure::failed_precondition(format!(
            "Node {} has no address of the family of {}",
            route.node.name, route.destination
        ))
    })?;
    let name = format!("{cluster}_{}_{}", route.node.name, route.destination);
    let body = json!({
        "display_name": name.chars().take(NAME).collect::<String>(), "network": route.destination, "next_hops": [{ "ip_address": hop }],
        "tags": tags([(CLUSTER, cluster), (NODE, route.node.name.as_str())]),
    });
    let id = format!("{}_{}", route.name_hint, route.destination).replace('/', "_");
    let path = format!("{gateway}/static-routes/{id}");
    nsx.patch(&path, &body)?;
    Err(pending(path, &route.destination))
}

/// Whether a route that was requested is there.
fn look(nsx: &Nsx<'_>, path: &str, destination: &str) -> Result<(), Failure> {
    match Realized::look(nsx, path)? {
        Realized::Done => Ok(()),
        Realized::Waiting => Err(pending(path.into(), destination)),
        Realized::Failed(why) => Err(Failure::other(format!(
            "NSX cannot realize the route {destination}: {why}"
        ))),
    }
}

fn pending(path: String, destination: &str) -> Failure {
    Failure::pending(SOON, path, format!("NSX is realizing the route {destination}"))
}

fn shown(route: &Value) -> Route {
    let hops = items(route, "next_hops").map(|hop| text(hop, "ip_address"));
    let hops: Vec<Address> = hops
        .filter(|hop| !hop.is_empty())
        .map(|hop| Address::new(AddressKind::InternalIp, hop))
        .collect();
    Route {
        id: text(route, "id").into(),
        destination: text(route, "network").into(),
        node: tag(route, NODE).map(str::to_owned),
        blackhole: hops.is_empty(),
        next_hops: hops,
    }
}

#[cfg(test)]
mod tests;
