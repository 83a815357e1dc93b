//! Applies route changes in as few calls as possible; failed ones are remembered.

use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Failure, NewRoute, Route};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::route::NodeRoute;
use crate::route::plan::{RouteChange, batches};

/// Changes in one call to the provider. A change that is several operations is not cut.
const BATCH: usize = 500;

/// What became of the changes that were tried.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Something was changed.
    pub(crate) changed: bool,
    /// Something could not be.
    pub(crate) failed: bool,
}

impl NodeRoute {
    /// Makes the changes, in as few calls as possible, and remembers those that failed.
    pub(crate) async fn apply(&mut self, changes: &[RouteChange]) -> Applied {
        let mut applied = Applied::default();
        for batch in batches(changes, BATCH) {
            if !self.context.apply.is_leading() {
                break;
            }
            self.apply_batch(batch, &mut applied).await;
        }
        applied
    }

    async fn apply_batch(&mut self, batch: &[RouteChange], applied: &mut Applied) {
        let create: Vec<NewRoute> = batch.iter().filter_map(|change| change.create.clone()).collect();
        let delete: Vec<Route> = batch.iter().flat_map(|change| change.delete.clone()).collect();
        debug!(create = create.len(), delete = delete.len(), "changing routes");
        let began = Instant::now();
        let (mut created, mut deleted) = match self.context.cloud.apply_routes(&create, &delete).await {
            Ok(outcome) => (
                results(outcome.created, create.len()),
                results(outcome.deleted, delete.len()),
            ),
            Err(CloudError::DryRun) => return,
            Err(error) => (vec![Err(error.clone()); create.len()], vec![Err(error); delete.len()]),
        };
        let took = began.elapsed();
        // From the end, so that each change takes its own results off.
        for change in batch.iter().rev() {
            let creation = change.create.as_ref().and_then(|_| created.pop()).unwrap_or(Ok(()));
            let deletions = deleted.split_off(deleted.len().saturating_sub(change.delete.len()));
            let done = deletions.iter().filter(|result| result.is_ok()).count();
            applied.changed |= done > 0 || (change.create.is_some() && creation.is_ok());
            if let (Some(route), Err(error)) = (&change.create, &creation) {
                self.report_failed_creation(route, took, error);
            }
            let mut rest = RouteChange {
                network: change.network,
                delete: Vec::new(),
                create: None,
            };
            let mut failure = creation.err().inspect(|_| rest.create.clone_from(&change.create));
            for (route, result) in change.delete.iter().zip(deletions) {
                if let Err(error) = result {
                    self.report_failed_deletion(route, change, &error);
                    rest.delete.push(route.clone());
                    failure.get_or_insert(error);
                }
            }
            applied.failed |= failure.is_some();
            match failure {
                Some(error) => self
                    .retries
                    .failed(rest, error.retry(), &error.to_string(), Instant::now()),
                None => self.retries.succeeded(&change.network),
            }
        }
    }

    fn report_failed_creation(&self, route: &NewRoute, took: Duration, error: &CloudError) {
        let (hint, range, name) = (&route.name_hint, &route.destination, &route.node.name);
        warn!(node = name, range, %error, "failed to create route");
        if let Some(node) = self.context.nodes.get(name) {
            let message = format!("Could not create route {hint} {range} for node {name} after {took:.3?}: {error}");
            self.notices
                .events
                .node(&node, EventKind::Warning, "FailedToCreateRoute", message);
        }
    }

    /// On the Node that the route leads to, though it may be gone, else on the one that waits for its place. Upstream only logs it.
    fn report_failed_deletion(&self, route: &Route, change: &RouteChange, error: &CloudError) {
        let Route { id, destination, .. } = route;
        warn!(destination, id, %error, "failed to delete route");
        let waits_for_it = change.create.as_ref().map(|route| &route.node.name);
        if let Some(name) = route.node.as_ref().or(waits_for_it) {
            let message = format!("Could not delete route {id} {destination} for node {name}: {error}");
            self.notices
                .events
                .node_named(name, EventKind::Warning, "FailedToDeleteRoute", message);
        }
    }
}

/// One result for each change that was asked for; a provider that answers fewer has failed at the rest.
fn results(answers: Vec<Result<(), Failure>>, expected: usize) -> Vec<Result<(), CloudError>> {
    let missing = || Err(Failure::Other("the provider gave no answer for this route".into()).into());
    let answers = answers.into_iter().map(|answer| answer.map_err(CloudError::from));
    answers.chain(std::iter::repeat_with(missing)).take(expected).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_answer_is_a_failure_and_a_surplus_one_is_dropped() {
        assert_eq!(results(vec![Ok(()), Ok(())], 1), [Ok(())]);
        let results = results(vec![Ok(())], 2);
        assert!(results[0].is_ok() && results[1].is_err());
    }
}
