//! `routes`: created once, listed, gone.

use cloudwit_model::{Cloud as _, CloudError, Failure, NewRoute, Route, RouteTokens};

use crate::commands::conformance::report::{Promise, Report};
use crate::commands::conformance::trial::Trial;

const PART: &str = "routes";

/// Tries them with this destination. What is created is deleted in the end.
pub async fn run(trial: &Trial, destination: &str, report: &mut Report) {
    let Some(node) = trial.nodes.first() else { return };
    let new = NewRoute {
        name_hint: node.name.clone(),
        destination: destination.to_owned(),
        node: node.clone(),
    };
    let mut promise = Promise::of(PART, "a route is created, and listed with its Node");
    create(trial, &new, &mut promise).await;
    let made = listed(trial, destination, &mut promise).await;
    let to = made.as_ref().and_then(|route| route.node.as_deref());
    promise.holds(to == Some(node.name.as_str()), || format!("listed is {made:?}"));
    report.add(promise);

    let mut promise = Promise::of(PART, "creating it again is success and makes no other one");
    create(trial, &new, &mut promise).await;
    listed(trial, destination, &mut promise).await;
    report.add(promise);

    let mut promise = Promise::of(PART, "it is deleted, and deleting it again is success");
    for _ in 0..2 {
        delete(trial, made.as_slice(), &mut promise).await;
    }
    let left = listed(trial, destination, &mut promise).await;
    promise.holds(left.is_none(), || format!("left is {left:?}"));
    report.add(promise);
}

async fn create(trial: &Trial, new: &NewRoute, promise: &mut Promise) {
    let created = trial.until_done(|token| async move {
        let tokens = RouteTokens {
            created: vec![token],
            ..RouteTokens::default()
        };
        let outcome = trial
            .provider
            .apply_routes(std::slice::from_ref(new), &[], &tokens)
            .await?;
        all(outcome.created)
    });
    promise.answered(created.await);
}

async fn delete(trial: &Trial, routes: &[Route], promise: &mut Promise) {
    for route in routes {
        let deleted = trial.until_done(|token| async move {
            let tokens = RouteTokens {
                deleted: vec![token],
                ..RouteTokens::default()
            };
            let outcome = trial
                .provider
                .apply_routes(&[], std::slice::from_ref(route), &tokens)
                .await?;
            all(outcome.deleted)
        });
        promise.answered(deleted.await);
    }
}

fn all(results: Vec<Result<(), Failure>>) -> Result<(), CloudError> {
    Ok(results.into_iter().collect::<Result<(), Failure>>()?)
}

/// The one route to this destination.
async fn listed(trial: &Trial, destination: &str, promise: &mut Promise) -> Option<Route> {
    let routes = promise.answered(trial.provider.list_routes().await)?;
    let mut routes = routes.into_iter().filter(|route| route.destination == destination);
    let first = routes.next();
    let others = routes.count();
    promise.holds(others == 0, || {
        format!("{} routes to {destination} are listed", others + 1)
    });
    first
}
