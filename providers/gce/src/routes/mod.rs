//! Routes to Pod ranges: one route of the VPC for each Node, its machine as the next hop.
//!
//! Names, description and priority are upstream's, so that routes which upstream's controller left are this cluster's too.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::Gce;
use crate::api::Paged;
use crate::instances::{self, instance_name};
use crate::links;
use crate::operation::Operation;
use crate::place::Place;

/// By this description routes of Kubernetes are known.
const DESCRIPTION: &str = "k8s-node-route";

const PRIORITY: u32 = 1000;

/// Of the cluster's name so much is in names of routes.
const PREFIX: usize = 26;

/// Poll interval of an operation.
const SOON: std::time::Duration = std::time::Duration::from_secs(1);

/// A route as Compute Engine returns it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Seen {
    name: String,
    network: String,
    dest_range: String,
    next_hop_instance: String,
    warnings: Vec<Warning>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Warning {
    code: String,
}

impl Routes for Gce {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let cluster = self.context.cluster();
        let prefix = prefix(&cluster.name);
        let nodes = self.context.nodes()?;
        let filter = format!("(name eq \"{prefix}-.*\") (description eq \"{DESCRIPTION}\")");
        let mut routes = Vec::new();
        let path = format!("/projects/{}/global/routes", place.network_project);
        self.api.pages(&path, &[("filter", &filter)], |page: SeenPage| {
            let ours = page
                .items
                .into_iter()
                .filter(|route| links::name(&route.network) == links::name(&place.network));
            routes.extend(ours.map(|route| shown(route, &nodes)));
            Ok(())
        })?;
        Ok(routes)
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let of = |tokens: &[Option<String>], at: usize| tokens.get(at).cloned().flatten();
        let deleted = delete.iter().enumerate().map(|(at, route)| {
            self.finish(
                of(&tokens.delete, at),
                &route.id,
                || {
                    let path = place.of_network("routes", &route.id);
                    self.api.change("DELETE", &path, None)
                },
                FailureKind::NotFound,
            )
        });
        let deleted = deleted.collect();
        let created = create.iter().enumerate().map(|(at, route)| {
            self.finish(
                of(&tokens.create, at),
                &route.destination,
                || self.create(&place, route),
                FailureKind::AlreadyExists,
            )
        });
        Ok(RouteOutcome {
            deleted,
            created: created.collect(),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SeenPage {
    items: Vec<Seen>,
    next_page_token: Option<String>,
}

impl Paged for SeenPage {
    fn next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

impl Gce {
    /// Begins a change, or polls the operation that it has become. A failure of kind `done` means that there was nothing to do.
    fn finish(
        &self,
        token: Option<String>,
        what: &str,
        begin: impl FnOnce() -> Result<Operation, Failure>,
        done: FailureKind,
    ) -> Result<(), Failure> {
        let running = match token {
            Some(operation) => Operation::look(&self.api, &operation),
            None => begin().and_then(|operation| operation.running()),
        };
        match running {
            Ok(None) => Ok(()),
            Ok(Some(operation)) => Err(Failure::pending(
                SOON,
                operation,
                format!("the route {what} is being changed"),
            )),
            Err(failure) if failure.kind == done => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    fn create(&self, place: &Place, route: &NewRoute) -> Result<Operation, Failure> {
        let name = name(&self.context.cluster().name, route);
        let id = route
            .node
            .provider_id
            .as_deref()
            .and_then(|id| id.strip_prefix(crate::PROVIDER_ID_PREFIX));
        let Some((project, zone, instance)) = id.and_then(instances::parts) else {
            return Err(Failure::failed_precondition(format!(
                "Node {} has no provider id yet",
                route.node.name
            )));
        };
        let hop = format!("projects/{project}/zones/{zone}/instances/{}", instance_name(instance));
        let body = json!({
            "name": name, "destRange": route.destination, "network": self.api.link(&place.network), "priority": PRIORITY,
            "description": DESCRIPTION, "nextHopInstance": self.api.link(&hop),
        });
        self.api.change(
            "POST",
            &format!("projects/{}/global/routes", place.network_project),
            Some(&body),
        )
    }
}

/// As upstream's; a Node's second route, of IPv6, needs another one.
fn name(cluster: &str, route: &NewRoute) -> String {
    let prefix = prefix(cluster);
    if route.destination.contains(':') {
        return format!("{prefix}-{}-v6", route.name_hint.replace('-', ""));
    }
    format!("{prefix}-{}", route.name_hint)
}

/// What the names of this cluster's routes begin with.
fn prefix(cluster: &str) -> &str {
    match cluster.char_indices().nth(PREFIX) {
        Some((end, _)) => cluster.get(..end).unwrap_or(cluster),
        None => cluster,
    }
}

/// A route of a machine that is no Node's is reported without a Node, and so deleted.
fn shown(route: Seen, nodes: &[ClusterNode]) -> Route {
    let hop = links::tail(&route.next_hop_instance);
    let is_hop = |node: &&ClusterNode| {
        let id = node
            .ref_
            .provider_id
            .as_deref()
            .and_then(|id| id.strip_prefix(crate::PROVIDER_ID_PREFIX));
        match id.and_then(instances::parts) {
            Some((_, zone, name)) => links::part(hop, "zones") == Some(zone) && links::name(hop) == instance_name(name),
            None => false,
        }
    };
    Route {
        id: route.name,
        destination: route.dest_range,
        node: nodes.iter().find(is_hop).map(|node| node.ref_.name.clone()),
        next_hops: Vec::new(),
        blackhole: route
            .warnings
            .iter()
            .any(|warning| warning.code == "NEXT_HOP_INSTANCE_NOT_FOUND"),
    }
}

#[cfg(test)]
mod tests;
