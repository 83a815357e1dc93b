//! Applies route changes in as few calls as possible; failed ones are kept.

use std::time::Duration;

use cloudwit_model::{CloudError, EventKind, Failure, NewRoute, Route, RouteTokens};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::report::cause::Cause;
use crate::route::NodeRoute;
use crate::route::plan::{RouteChange, batches};
use crate::route::retries::{ChangeTokens, LONGEST_PENDING, RouteRetries};

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
    /// Makes the changes, in as few calls as possible, and keeps those that failed.
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
        let tokens = self.tokens(batch);
        let call = self.context.cloud.apply_routes(&create, &delete, &tokens);
        let (mut created, mut deleted) = match call.await {
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
            let mut left = Left::of(change, &self.retries);
            if let (Some(route), Err(error)) = (&change.create, creation) {
                left.rest.create = Some(route.clone());
                if let Some(error) = left.keep(error, None) {
                    self.report_failed_creation(route, took, &error);
                }
            }
            for (route, result) in change.delete.iter().zip(deletions) {
                if let Err(error) = result {
                    left.rest.delete.push(route.clone());
                    if let Some(error) = left.keep(error, Some(&route.id)) {
                        self.report_failed_deletion(route, change, &error);
                    }
                }
            }
            applied.failed |= left.failure.is_some();
            applied.changed |= left.pending.is_some();
            match left.failure.or(left.pending) {
                Some(error) => {
                    let (retry, cause) = (error.retry(), Cause::from(&error));
                    debug!(range = %change.network, reason = &*cause.reason, "route change waits");
                    self.retries.wait(left.rest, retry, &cause, left.tokens, Instant::now());
                }
                None => self.retries.succeeded(&change.network),
            }
        }
    }

    /// Of the operations of these changes, in the order in which they are passed to the provider.
    fn tokens(&self, batch: &[RouteChange]) -> RouteTokens {
        let mut all = RouteTokens::default();
        for change in batch {
            let mut tokens = self.retries.tokens(change);
            all.created.extend(change.create.as_ref().map(|_| tokens.create.take()));
            let of_deletion = |route: &Route| tokens.delete.remove(&route.id);
            all.deleted.extend(change.delete.iter().map(of_deletion));
        }
        all
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

/// What is left of a change after a call.
struct Left {
    rest: RouteChange,
    /// The first failure.
    failure: Option<CloudError>,
    /// The first pending answer.
    pending: Option<CloudError>,
    /// To continue with.
    tokens: ChangeTokens,
    /// Those that the call had.
    former: ChangeTokens,
    overdue: bool,
}

impl Left {
    fn of(change: &RouteChange, retries: &RouteRetries) -> Self {
        Self {
            rest: RouteChange {
                network: change.network,
                delete: Vec::new(),
                create: None,
            },
            failure: None,
            pending: None,
            tokens: ChangeTokens::default(),
            former: retries.tokens(change),
            overdue: retries.is_overdue(change, Instant::now()),
        }
    }

    /// Notes that the creation, or the deletion of the route with this id, is not done; gives what has failed.
    fn keep(&mut self, error: CloudError, deleted: Option<&str>) -> Option<CloudError> {
        let former = match deleted {
            Some(id) => self.former.delete.remove(id),
            None => self.former.create.take(),
        };
        let token = match &error {
            CloudError::Failure(Failure::Pending { token, .. }) if !self.overdue => Some(token.clone()),
            error if error.keeps_token() && !self.overdue => former,
            _ => None,
        };
        if let Some(token) = token {
            match deleted {
                Some(id) => drop(self.tokens.delete.insert(id.to_owned(), token)),
                None => self.tokens.create = Some(token),
            }
        }
        let failed = match error {
            CloudError::Failure(Failure::Pending { message, .. }) if self.overdue => {
                let limit = LONGEST_PENDING.as_secs() / 60;
                Failure::Other(format!("given up, since it is not done after {limit} minutes: {message}").into()).into()
            }
            CloudError::Failure(Failure::Pending { .. }) => {
                self.pending.get_or_insert(error);
                return None;
            }
            failed => failed,
        };
        self.failure.get_or_insert_with(|| failed.clone());
        Some(failed)
    }
}

/// One result for each change that was requested; a provider that answers fewer has failed at the rest.
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
