//! Routes to Pod ranges: one route of the subnet's route table for each Node, its address as the next hop.
//!
//! ```text
//!   list:   the table -> table.rs (ours? whose?)
//!   apply:  operations of earlier calls -> the table -> all changes in one PUT, only if the table is unchanged since -> `pending`
//! ```

mod table;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use crate::Azure;
use crate::arm::{Begun, NETWORK, Only, Operation};
use crate::config::given;
use table::Table;

impl Routes for Azure {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let path = self.table_path()?;
        let Some(value) = self.arm.find(&path, NETWORK, &[])? else {
            return Ok(Vec::new());
        };
        let ranges = self.context.cluster().cidrs;
        let ranges = ranges
            .iter()
            .map(|text| cidr::parse(text))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Table::new(value).owned(&ranges, &self.context.nodes()?))
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route], tokens: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let path = self.table_path()?;
        let token = |tokens: &[Option<String>], at: usize| tokens.get(at).cloned().flatten();
        let mut changes: Vec<Change<'_>> = Vec::with_capacity(create.len() + delete.len());
        changes.extend(
            delete
                .iter()
                .enumerate()
                .map(|(at, route)| Change::new(What::Delete(route), token(&tokens.delete, at))),
        );
        changes.extend(
            create
                .iter()
                .enumerate()
                .map(|(at, route)| Change::new(What::Create(route), token(&tokens.create, at))),
        );
        match self.running(&mut changes)? {
            // Two changes of a table at a time hinder each other.
            Some(operation) => wait(&mut changes, &operation),
            None => self.change(&path, &mut changes)?,
        }
        let mut results = changes.into_iter().map(|change| change.result.unwrap_or(Ok(())));
        Ok(RouteOutcome {
            deleted: results.by_ref().take(delete.len()).collect(),
            created: results.collect(),
        })
    }
}

/// What is to be done.
enum What<'a> {
    Delete(&'a Route),
    Create(&'a NewRoute),
}

/// One change, and what became of it; nothing yet is none.
struct Change<'a> {
    what: What<'a>,
    token: Option<String>,
    result: Option<Result<(), Failure>>,
}

impl<'a> Change<'a> {
    fn new(what: What<'a>, token: Option<String>) -> Self {
        Self {
            what,
            token: token.filter(|token| !token.is_empty()),
            result: None,
        }
    }
}

/// All changes without a result wait for this operation.
fn wait(changes: &mut [Change<'_>], operation: &Operation) {
    for change in changes.iter_mut().filter(|change| change.result.is_none()) {
        let text = "the route table is being changed";
        change.result = Some(Err(Failure::pending(operation.after, &operation.link, text)));
    }
}

impl Azure {
    fn table_path(&self) -> Result<String, Failure> {
        let Some(name) = given(&self.config.route_table_name) else {
            return Err(Failure::implemented_elsewhere(
                "no routes are made without routeTableName; write it, or start with --configure-cloud-routes=false",
            ));
        };
        let group = self
            .config
            .network_group(given(&self.config.route_table_resource_group));
        Ok(format!("{group}/providers/Microsoft.Network/routeTables/{name}"))
    }

    /// Polls the operations of earlier calls: one that runs. Changes whose operation failed have that as their result.
    fn running(&self, changes: &mut [Change<'_>]) -> Result<Option<Operation>, Failure> {
        let mut outcomes: BTreeMap<String, Result<Begun, Failure>> = BTreeMap::new();
        let mut running = None;
        for change in changes.iter_mut() {
            let Some(token) = &change.token else { continue };
            let outcome = outcomes
                .entry(token.clone())
                .or_insert_with(|| Operation::look(&self.arm, token));
            match outcome {
                Ok(Begun::Done) => {}
                Ok(Begun::Running(operation)) => running = Some(operation.clone()),
                Err(failure) => change.result = Some(Err(failure.clone())),
            }
        }
        Ok(running)
    }

    /// All changes in one PUT. What the table has already is done.
    fn change(&self, path: &str, changes: &mut [Change<'_>]) -> Result<(), Failure> {
        if changes.iter().all(|change| change.result.is_some()) {
            return Ok(());
        }
        let cidrs = self.context.cluster().cidrs;
        let dual_stack = cidrs.iter().any(|cidr| cidr.contains(':')) && cidrs.iter().any(|cidr| !cidr.contains(':'));
        let found = self.arm.find(path, NETWORK, &[])?;
        let missing = found.is_none();
        let empty = || json!({ "location": self.config.location, "properties": { "routes": [] } });
        let mut table = Table::new(found.unwrap_or_else(empty));
        let etag = table.etag();
        let mut changed = false;
        for change in changes.iter_mut().filter(|change| change.result.is_none()) {
            let made = match change.what {
                What::Delete(route) => Ok(table.remove(route)),
                What::Create(route) => table.add(route, dual_stack),
            };
            match made {
                Ok(false) => change.result = Some(Ok(())),
                Ok(true) => changed = true,
                Err(failure) => change.result = Some(Err(failure)),
            }
        }
        if !changed {
            return Ok(());
        }
        if self.context.is_dry_run() {
            return Err(Failure::other(format!("dry run: would change the route table {path}")));
        }
        let body = self.tagged(table.into_value());
        let only = match &etag {
            _ if missing => Only::IfMissing,
            Some(etag) => Only::IfUnchanged(etag),
            None => {
                return Err(Failure::other(format!(
                    "the cloud told no ETag of the route table {path}"
                )));
            }
        };
        match self.arm.put(path, NETWORK, &body, only)? {
            Begun::Done => {}
            Begun::Running(operation) => wait(changes, &operation),
        }
        Ok(())
    }

    /// With the configured tags, beside those that are there.
    fn tagged(&self, mut resource: Value) -> Value {
        let tags = self.config.all_tags();
        if !tags.is_empty()
            && let Some(resource) = resource.as_object_mut()
        {
            let there = resource.entry("tags").or_insert_with(|| json!({}));
            if let Some(there) = there.as_object_mut() {
                there.extend(tags);
            }
        }
        resource
    }
}

#[cfg(test)]
mod tests;
