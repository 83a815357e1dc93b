//! Routes to Pod ranges: one request lists them, one changes them.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

use crate::Sim;
use crate::api::{PartResult, RouteResults, RouteSpec};

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

    fn apply(&self, create: &[NewRoute], delete: &[Route], _: &RouteTokens) -> Result<RouteOutcome, Failure> {
        let wanted: Vec<Result<RouteSpec, Failure>> = create.iter().map(|route| self.route(route)).collect();
        let possible: Vec<RouteSpec> = wanted.iter().filter_map(|route| route.as_ref().ok()).cloned().collect();
        let gone: Vec<&str> = delete.iter().map(|route| route.id.as_str()).collect();
        let results = if possible.is_empty() && gone.is_empty() {
            RouteResults::default()
        } else {
            self.api.change_routes(&possible, &gone)?
        };

        // The cloud answers what was sent; what was impossible from the start keeps its own failure and its place.
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
    /// The cloud's form of a desired route.
    fn route(&self, route: &NewRoute) -> Result<RouteSpec, Failure> {
        let node = &route.node;
        let machine = node.provider_id.as_deref().and_then(|id| id_after(&self.prefix, id));
        let Some(machine) = machine else {
            return Err(Failure::invalid(format!(
                "Node {} has no provider id that begins with {}",
                node.name, self.prefix
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

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::prelude::*;
    use cloudwit_guest_sdk::testing::FakeHost;
    use serde_json::json;

    use crate::Sim;

    const BATCH: &str = "https://sim.test/v1/routes/batch";

    fn host() -> FakeHost {
        let host = FakeHost::new();
        host.config(r#"{"endpoint": "https://sim.test"}"#)
            .secret("token", "t0ken");
        host
    }

    fn wanted(node: NodeRef, destination: &str) -> NewRoute {
        NewRoute {
            name_hint: "uid".into(),
            destination: destination.into(),
            node,
        }
    }

    fn existing(id: &str) -> Route {
        Route {
            id: id.into(),
            destination: "10.9.0.0/24".into(),
            node: None,
            next_hops: vec![],
            blackhole: false,
        }
    }

    #[test]
    fn only_this_clusters_routes_are_listed() {
        let host = host();
        host.cluster("blue", &[]);
        host.expect("GET", "https://sim.test/v1/routes?cluster=blue&limit=1000").answers(
            200,
            json!({"items": [{"id": "rt-1", "blackhole": true,
                "spec": {"cluster": "blue", "destination": "10.8.0.0/24", "machine": "vm-1", "node": "a"}}], "next": null}),
        );
        let routes = host.provider::<Sim>().list().unwrap();
        assert_eq!(
            routes,
            [Route {
                id: "rt-1".into(),
                destination: "10.8.0.0/24".into(),
                node: Some("a".into()),
                next_hops: vec![],
                blackhole: true,
            }]
        );
    }

    #[test]
    fn all_changes_go_in_one_request_and_each_has_its_result() {
        let host = host();
        let node = |name: &str| NodeRef::named(name).with_provider_id(format!("sim://vm-{name}"));
        host.expect("POST", BATCH)
            .with_json(json!({
                "create": [
                    {"cluster": "test", "destination": "10.8.0.0/24", "machine": "vm-a", "node": "a"},
                    {"cluster": "test", "destination": "10.8.2.0/24", "machine": "vm-c", "node": "c"}],
                "delete": ["rt-1", "rt-2", "rt-3"]}))
            .answers(
                200,
                json!({"created": [{"status": 201, "message": ""}, {"status": 409, "message": "taken"}],
                    "deleted": [{"status": 200}, {"status": 404, "message": "gone"}, {"status": 500, "message": "oops"}]}),
            );
        let create = [
            wanted(node("a"), "10.8.0.0/24"),
            wanted(NodeRef::named("b"), "10.8.1.0/24"),
            wanted(node("c"), "10.8.2.0/24"),
        ];
        let delete = ["rt-1", "rt-2", "rt-3"].map(existing);
        let outcome = host
            .provider::<Sim>()
            .apply(&create, &delete, &RouteTokens::none())
            .unwrap();
        assert_eq!(outcome.created[0], Ok(()));
        assert!(
            matches!(&outcome.created[1], Err(Failure { kind: FailureKind::Invalid, message: text, .. }) if text.contains("Node b"))
        );
        assert_eq!(outcome.created[2], Err(Failure::conflict("taken")));
        assert_eq!(outcome.deleted, [Ok(()), Ok(()), Err(Failure::unavailable("oops"))]);
    }

    #[test]
    fn cloud_that_answers_for_too_few_is_not_accepted() {
        let host = host();
        host.expect("POST", BATCH)
            .answers(200, json!({"created": [], "deleted": []}));
        let outcome = host
            .provider::<Sim>()
            .apply(&[], &[existing("rt-1")], &RouteTokens::none())
            .unwrap();
        assert!(matches!(
            outcome.deleted[0],
            Err(Failure {
                kind: FailureKind::Other,
                ..
            })
        ));
    }

    #[test]
    fn nothing_to_do_is_no_request() {
        let host = host();
        let outcome = host.provider::<Sim>().apply(&[], &[], &RouteTokens::none()).unwrap();
        assert!(outcome.created.is_empty() && outcome.deleted.is_empty());
    }
}
