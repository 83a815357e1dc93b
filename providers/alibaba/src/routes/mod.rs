//! Routes to Pod ranges: entries of the VPC's route tables, an instance as the next hop.
//!
//! Entries have no mark, as with upstream: those of the cluster are custom ones to an instance, inside the cluster's Pod ranges.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use crate::Alibaba;
use crate::api::{Call, Paging, VPC, errors, inner};

/// Entries in a request: the most that the cloud takes.
const BATCH: usize = 50;

/// Between the parts of a route's id.
const SEPARATOR: char = ' ';

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Entry {
    destination_cidr_block: String,
    route_table_id: String,
    #[serde(deserialize_with = "inner")]
    next_hops: Vec<NextHop>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct NextHop {
    next_hop_id: String,
    next_hop_type: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Table {
    route_table_id: String,
    route_table_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Changed {
    failed_route_entries: Vec<Failed>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Failed {
    dst_cidr_block: String,
    next_hop: String,
    failed_code: String,
    failed_message: String,
}

/// One entry that is to be made or deleted, and of which change of the call.
struct Piece<'a> {
    change: usize,
    table: &'a str,
    destination: &'a str,
    hop: &'a str,
}

impl Routes for Alibaba {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let tables = self.tables()?;
        let mut seen: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
        for table in &tables {
            for entry in self.entries(table)? {
                let mut hops = entry.next_hops.into_iter();
                if let Some(hop) = hops.find(|hop| hop.next_hop_type == "Instance") {
                    let route = (entry.destination_cidr_block, hop.next_hop_id);
                    seen.entry(route).or_default().push(table.clone());
                }
            }
        }
        let nodes = self.context.nodes()?;
        let ranges = self.context.cluster().cidrs;
        let is_inside = |range: &str| ranges.is_empty() || cidr::is_within(range, &ranges);
        let mut routes = Vec::new();
        for ((destination, hop), there) in seen.into_iter().filter(|((destination, _), _)| is_inside(destination)) {
            let node = nodes
                .iter()
                .find(|node| self.instance_of(&node.ref_) == Some(hop.as_str()));
            let wanted = node.is_some_and(|node| node.pod_cidrs.iter().any(|range| cidr::same(range, &destination)));
            // In some tables only: it is reported as missing and so made in the others, if it is desired; else it is deleted where it is.
            if there.len() < tables.len() && wanted {
                continue;
            }
            routes.push(Route {
                id: format!("{hop}{SEPARATOR}{}", there.join(",")),
                destination,
                node: node.map(|node| node.ref_.name.clone()),
                next_hops: Vec::new(),
                blackhole: false,
            });
        }
        Ok(routes)
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let tables = if create.is_empty() { Vec::new() } else { self.tables()? };
        let mut deleted: Vec<Result<(), Failure>> = vec![Ok(()); delete.len()];
        let mut pieces = Vec::new();
        for (change, route) in delete.iter().enumerate() {
            let (hop, there) = route.id.split_once(SEPARATOR).unwrap_or_default();
            pieces.extend(there.split(',').map(|table| Piece {
                change,
                table,
                destination: &route.destination,
                hop,
            }));
        }
        self.change("DeleteRouteEntries", &pieces, &mut deleted, &FailureKind::NotFound);

        let mut created: Vec<Result<(), Failure>> = vec![Ok(()); create.len()];
        let mut pieces = Vec::new();
        for (change, route) in create.iter().enumerate() {
            match self.instance_of(&route.node) {
                Some(hop) => pieces.extend(tables.iter().map(|table| Piece {
                    change,
                    table,
                    destination: &route.destination,
                    hop,
                })),
                None => set(&mut created, change, || {
                    Failure::failed_precondition(format!("Node {} has no provider id yet", route.node.name))
                }),
            }
        }
        self.change("CreateRouteEntries", &pieces, &mut created, &FailureKind::AlreadyExists);
        Ok(RouteOutcome { created, deleted })
    }
}

impl Alibaba {
    /// The configured ones, else all of the VPC that its instances can use: the system's, unless there are others.
    fn tables(&self) -> Result<Vec<String>, Failure> {
        let configured = self.global().route_tables();
        if !configured.is_empty() {
            return Ok(configured.into_iter().map(str::to_owned).collect());
        }
        let vpc = self.global().vpc()?;
        let call = Call::new(VPC, "DescribeRouteTableList").field("VpcId", vpc);
        let found: Vec<Table> = self
            .api
            .list(&call, Paging::Number, "RouterTableList.RouterTableListType")?;
        let system = found.into_iter().filter(|table| table.route_table_type == "System");
        let system: Vec<String> = system.map(|table| table.route_table_id).collect();
        match system.is_empty() {
            true => Err(Failure::not_found(format!(
                "the VPC {vpc} has no system route table; is this the right vpcid and region?"
            ))),
            false => Ok(system),
        }
    }

    fn entries(&self, table: &str) -> Result<Vec<Entry>, Failure> {
        let call = Call::new(VPC, "DescribeRouteEntryList")
            .field("RouteTableId", table)
            .field("RouteEntryType", "Custom");
        self.api
            .list(&call, Paging::Token("MaxResult"), "RouteEntrys.RouteEntry")
    }

    /// Makes or deletes entries, and notes what failed of which change. A failure of kind `done` means that there was nothing to do.
    fn change(
        &self,
        action: &'static str,
        pieces: &[Piece<'_>],
        results: &mut [Result<(), Failure>],
        done: &FailureKind,
    ) {
        for some in pieces.chunks(BATCH) {
            let failed = match self.api.send::<Changed>(&change_of(action, some)) {
                Ok(changed) => changed.failed_route_entries,
                // Whatever is wrong with one of them costs the others nothing.
                Err(failure) if some.len() > 1 && !failure.is_shared() => {
                    some.iter()
                        .for_each(|piece| self.change(action, std::slice::from_ref(piece), results, done));
                    continue;
                }
                Err(failure) => {
                    some.iter().for_each(|piece| self.note(piece, &failure, results, done));
                    continue;
                }
            };
            for failed in failed {
                let failure = errors::of_item(action, &failed.failed_code, &failed.failed_message);
                let of = some
                    .iter()
                    .filter(|piece| piece.destination == failed.dst_cidr_block && piece.hop == failed.next_hop);
                of.for_each(|piece| self.note(piece, &failure, results, done));
            }
        }
    }

    /// What exists already has to lead to the same instance.
    fn note(&self, piece: &Piece<'_>, failure: &Failure, results: &mut [Result<(), Failure>], done: &FailureKind) {
        let failure = match failure.kind {
            FailureKind::NotFound if *done == FailureKind::NotFound => return,
            FailureKind::AlreadyExists if *done == FailureKind::AlreadyExists => match self.entries(piece.table) {
                Ok(entries) if entries.iter().any(|entry| entry.leads(piece)) => return,
                Ok(_) => failure.clone(),
                Err(failure) => failure,
            },
            _ => failure.clone(),
        };
        set(results, piece.change, || failure);
    }
}

impl Entry {
    fn leads(&self, piece: &Piece<'_>) -> bool {
        self.destination_cidr_block == piece.destination
            && self.next_hops.iter().any(|hop| hop.next_hop_id == piece.hop)
    }
}

fn change_of(action: &'static str, pieces: &[Piece<'_>]) -> Call {
    pieces
        .iter()
        .enumerate()
        .fold(Call::new(VPC, action), |call, (at, piece)| {
            let name = |field: &str| format!("RouteEntries.{}.{field}", at + 1);
            let call = call
                .field(name("RouteTableId"), piece.table)
                .field(name("DstCidrBlock"), piece.destination)
                .field(name("NextHop"), piece.hop);
            match action {
                "CreateRouteEntries" => call.field(name("NextHopType"), "Instance"),
                _ => call,
            }
        })
}

/// Notes the first failure of a change.
fn set(results: &mut [Result<(), Failure>], change: usize, failure: impl FnOnce() -> Failure) {
    if let Some(result) = results.get_mut(change).filter(|result| result.is_ok()) {
        *result = Err(failure());
    }
}

#[cfg(test)]
mod tests;
