//! `/explain/node/NAME` and `/explain/service/NAMESPACE/NAME`, as text or JSON.
//!
//! Every answer carries a header by which `cloudwit explain` knows that it talks to a Cloudwit and to nobody else.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use cloudwit_controllers::{Explain, Explanation};

use crate::commands::explain_answer::Answer;
use crate::process::work_runtime::WorkRuntime;
use crate::serving::pages::stalled;

/// Name and value of the header.
pub const MARK: (&str, &str) = ("x-cloudwit", "explain");

/// The pages.
pub fn router(explain: Explain, work: WorkRuntime) -> Router {
    Router::new()
        .route("/explain/node/{name}", get(node))
        .route("/explain/service/{namespace}/{name}", get(service))
        .with_state((explain, work))
}

type Side = (Explain, WorkRuntime);

async fn node(State(side): State<Side>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let object = format!("Node {name}");
    answer(side, object, headers, move |explain| explain.node(&name)).await
}

async fn service(
    State(side): State<Side>,
    Path((namespace, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let object = format!("Service {namespace}/{name}");
    answer(side, object, headers, move |explain| explain.service(&namespace, &name)).await
}

/// Finds the explanation on the working thread.
async fn answer(
    (explain, work): Side,
    object: String,
    headers: HeaderMap,
    find: impl FnOnce(&Explain) -> Option<Explanation> + Send + 'static,
) -> Response {
    let found = work.query(move || {
        let found = find(&explain);
        explained(&explain, found, &object, &headers)
    });
    found.await.unwrap_or_else(|| ([MARK], stalled()).into_response())
}

fn explained(explain: &Explain, found: Option<Explanation>, object: &str, headers: &HeaderMap) -> Response {
    if !explain.is_ready() {
        let text = "This Cloudwit works on nothing yet: it has just started, or another replica leads.\n";
        return (StatusCode::SERVICE_UNAVAILABLE, [MARK], text).into_response();
    }
    let Some(found) = found else {
        return (StatusCode::NOT_FOUND, [MARK], format!("There is no {object}.\n")).into_response();
    };
    let answer = Answer::from(found);
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !accepted.is_some_and(|value| value.contains("application/json")) {
        return ([MARK], answer.text()).into_response();
    }
    match answer.json() {
        Ok(json) => ([MARK, ("content-type", "application/json")], json).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, [MARK]).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cloudwit_controllers::Reports;

    use super::*;

    #[test]
    fn a_replica_that_does_not_lead_says_so_instead_of_knowing_nothing() {
        let explain = Explain::new(Arc::default(), Arc::default(), Reports::default());
        let answer = explained(&explain, None, "Node a", &HeaderMap::new());
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()[MARK.0], MARK.1, "it is a Cloudwit all the same");
    }
}
