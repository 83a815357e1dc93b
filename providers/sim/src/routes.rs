//! Routes to Pod ranges: one request lists them, one changes them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

use crate::api::{PartResult, RouteSpec};
use crate::{PROVIDER_ID_PREFIX, Sim};

impl Routes for Sim {
    fn list(&self) -> Result<Vec<Route>, Failure> {
        let routes = self.api.routes(&self.cluster)?;
        Ok(routes
            .into_iter()
            .map(|route| Route {
                id: route.id,
                destination: route.spec.destination,
                node: Some(route.spec.node),
                next_hops: Vec::new(),
                blackhole: route.blackhole,
            })
            .collect())
    }

    fn apply(&self, create: &[NewRoute], delete: &[Route]) -> Result<RouteOutcome, Failure> {
        let wanted: Vec<Result<RouteSpec, Failure>> = create.iter().map(|route| self.route(route)).collect();
        let possible: Vec<RouteSpec> = wanted.iter().filter_map(|route| route.as_ref().ok()).cloned().collect();
        let gone: Vec<&str> = delete.iter().map(|route| route.id.as_str()).collect();
        let results = self.api.change_routes(&possible, &gone)?;

        // The cloud answers for what it was asked; what was impossible from the start keeps its own failure and its place.
        let mut answers = results.created.into_iter();
        let created = wanted
            .into_iter()
            .map(|route| route.and_then(|_| created(answers.next())))
            .collect();
        let mut answers = results.deleted.into_iter();
        let deleted = delete.iter().map(|_| deleted(answers.next())).collect();
        Ok(RouteOutcome { created, deleted })
    }
}

impl Sim {
    /// The cloud's own words for a wanted route.
    fn route(&self, route: &NewRoute) -> Result<RouteSpec, Failure> {
        let node = &route.node;
        let machine = node
            .provider_id
            .as_deref()
            .and_then(|id| id_after(PROVIDER_ID_PREFIX, id));
        let Some(machine) = machine else {
            return Err(Failure::invalid(format!(
                "Node {} has no provider id that begins with {PROVIDER_ID_PREFIX}",
                node.name
            )));
        };
        Ok(RouteSpec {
            cluster: self.cluster.clone(),
            destination: route.destination.clone(),
            machine: machine.into(),
            node: node.name.clone(),
        })
    }
}

fn created(answer: Option<PartResult>) -> Result<(), Failure> {
    let answer = answer.ok_or_else(unanswered)?;
    match answer.status {
        200..=299 => Ok(()),
        status => Err(Failure::from_status(status, answer.message)),
    }
}

fn deleted(answer: Option<PartResult>) -> Result<(), Failure> {
    // What is not there any more is deleted.
    created(answer).or_else(|failure| if failure.is_not_found() { Ok(()) } else { Err(failure) })
}

fn unanswered() -> Failure {
    Failure::other("the cloud did not answer for this route")
}
