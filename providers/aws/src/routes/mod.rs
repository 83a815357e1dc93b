//! Routes to Pods in the VPC's route table: the configured one, or the one with the cluster's tag.
//!
//! ```text
//!   list    one table; routes to instances; their Nodes, from the cluster's Nodes (grant `cluster: {nodes: true}`)
//!   apply   the table once, deletions, the instances in one call, then for each: source/destination check off, CreateRoute
//! ```
//!
//! What a route takes is decided in `plan.rs`.

pub mod plan;

use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Brake;

use crate::Aws;
use crate::api::Call;
use crate::api::error::AwsError;
use crate::instances::by_id::Found;
use crate::instances::machine_id;
use crate::routes::plan::{Hop, Step, Table, creation, deletion};

/// When what was left over is tried again.
const NEXT: Duration = Duration::from_millis(100);

impl Routes for Aws {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let table = self.route_table()?;
        let nodes = self.nodes_by_instance()?;
        let strangers: Vec<&str> = table
            .routes
            .iter()
            .filter_map(|route| match &route.hop {
                Hop::Instance(id) if !nodes.contains_key(id) && !route.is_dead() => Some(id.as_str()),
                _ => None,
            })
            .collect();
        let found = self.find_by_ids(&strangers)?;
        let mut routes = Vec::new();
        for route in &table.routes {
            let node = match &route.hop {
                _ if route.is_dead() => None,
                Hop::Instance(id) => match (nodes.get(id), found.get(id)) {
                    (Some(node), _) => Some(node.clone()),
                    // A machine of the cluster whose Node is gone: the route may be deleted. A foreign one stays.
                    (None, Some(Found::Machine(machine))) if self.cluster.marks(&machine.tags) => None,
                    _ => continue,
                },
                Hop::Interface | Hop::Other => continue,
            };
            routes.push(Route {
                id: format!("{}-{}", self.cluster.id, route.destination),
                destination: route.destination.clone(),
                node,
                next_hops: Vec::new(),
                blackhole: route.is_dead(),
            });
        }
        Ok(routes)
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        if create.is_empty() && delete.is_empty() {
            return Ok(RouteOutcome {
                created: Vec::new(),
                deleted: Vec::new(),
            });
        }
        let mut table = self.route_table()?;
        let mut brake = Brake::new(self.context, later);
        let deleted = delete
            .iter()
            .map(|route| brake.run(|| self.delete_route(&mut table, route)))
            .collect();
        let targets: Vec<Result<&str, AwsError>> = create.iter().map(target).collect();
        let ids: Vec<&str> = targets.iter().flatten().copied().collect();
        let machines = self.find_by_ids(&ids)?;
        let created = create
            .iter()
            .zip(targets)
            .map(|(route, target)| {
                let target = target?;
                brake.run(|| self.create_route(&table, route, target, machines.get(target)))
            })
            .collect();
        Ok(RouteOutcome { created, deleted })
    }
}

impl Aws {
    /// The table for Pod routes.
    ///
    /// # Errors
    /// `not-found` when the configured one does not exist; `invalid` when not exactly one carries the cluster's tag.
    fn route_table(&self) -> Result<Table, AwsError> {
        let configured = &self.config.global.route_table_id;
        let key = self.cluster.key();
        let call = self.api.ec2("DescribeRouteTables");
        let call = match configured.as_str() {
            "" => call.filter("tag-key", &self.cluster.keys()[..]),
            id => call.filter("route-table-id", &[id][..]),
        };
        let mut tables = call.pages(&["routeTableSet"], |table| Ok(Table::read(table)))?;
        if configured.is_empty() {
            tables.retain(|table| self.cluster.marks(&table.tags));
        }
        if tables.len() > 1 {
            let ids: Vec<&str> = tables.iter().map(|table| table.id.as_str()).collect();
            let text = format!("several route tables carry the tag {key}: {}", ids.join(", "));
            return Err(AwsError::invalid(
                text + "; write RouteTableID = rtb-... below [Global]",
            ));
        }
        tables.pop().ok_or_else(|| match configured.as_str() {
            "" => {
                let advice = "; tag one, or write RouteTableID = rtb-... below [Global]";
                AwsError::invalid(format!("no route table carries the tag {key}{advice}"))
            }
            id => AwsError::not_found(format!("the route table {id} (RouteTableID) does not exist")),
        })
    }

    /// Names of Nodes by the id of their instance.
    fn nodes_by_instance(&self) -> Result<BTreeMap<String, String>, AwsError> {
        let nodes = self.context.nodes()?.into_iter().map(|node| node.ref_);
        let instances = nodes.filter_map(|node| {
            let id = machine_id(node.provider_id.as_deref()?)?.to_owned();
            Some((id, node.name))
        });
        Ok(instances.collect())
    }

    fn delete_route(&self, table: &mut Table, route: &Route) -> Result<(), AwsError> {
        let network = cidr::parse(&route.destination)?;
        if let Some(destination) = deletion(table, network)? {
            self.delete_destination(table, &destination)?;
            table.routes.retain(|route| route.network != network);
        }
        Ok(())
    }

    fn delete_destination(&self, table: &Table, destination: &str) -> Result<(), AwsError> {
        let call = self.api.ec2("DeleteRoute").field("RouteTableId", &table.id);
        to(call, destination).send_unless(&["InvalidRoute.NotFound"])?;
        Ok(())
    }

    fn create_route(
        &self,
        table: &Table,
        route: &NewRoute,
        target: &str,
        found: Option<&Found>,
    ) -> Result<(), AwsError> {
        let machine = match found {
            Some(Found::Machine(machine)) => machine,
            Some(Found::Failed(failure)) => return Err(failure.clone().into()),
            Some(Found::Gone) | None => {
                let text = format!("the instance {target} of Node {} does not exist", route.node.name);
                return Err(AwsError::not_found(text));
            }
        };
        if machine.source_dest_check {
            // It would drop the traffic of its Pods, whose addresses are not its own.
            let call = self.api.ec2("ModifyInstanceAttribute").field("InstanceId", target);
            call.field("SourceDestCheck.Value", "false").send()?;
        }
        match creation(table, cidr::parse(&route.destination)?, target) {
            Step::Nothing => return Ok(()),
            Step::Replace(dead) => self.delete_destination(table, &dead)?,
            Step::Create => {}
        }
        let call = self.api.ec2("CreateRoute").field("RouteTableId", &table.id);
        to(call, &route.destination).field("InstanceId", target).send()?;
        Ok(())
    }
}

/// The id of the instance a new route leads to.
fn target(route: &NewRoute) -> Result<&str, AwsError> {
    let id = route
        .node
        .provider_id
        .as_deref()
        .and_then(machine_id)
        .filter(|id| id.starts_with("i-"));
    id.ok_or_else(|| {
        let id = route.node.provider_id.as_deref().unwrap_or("none");
        let text = [
            "Node ",
            &route.node.name,
            " has the provider id ",
            id,
            ", which is no instance's: no route can lead to it",
        ];
        AwsError::invalid(text.concat())
    })
}

/// Adds the destination, in the field of its family.
fn to<'a>(call: Call<'a>, destination: &str) -> Call<'a> {
    let field = if destination.contains(':') {
        "DestinationIpv6CidrBlock"
    } else {
        "DestinationCidrBlock"
    };
    call.field(field, destination)
}

/// The result of a change for which no time is left.
fn later() -> Failure {
    let text = "there were more routes than could be changed in one call; the next one goes on";
    Failure::rate_limited(Some(NEXT), text)
}

#[cfg(test)]
mod tests;
