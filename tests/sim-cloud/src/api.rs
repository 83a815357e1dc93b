//! `/v1`, the API that a provider speaks.
//!
//! | request | answer |
//! | ------- | ------ |
//! | `GET /v1/zones` | all zones |
//! | `GET /v1/instances?ids=a,b` or `?names=a,b`, `&region=`, `&limit=`, `&token=` | a page of machines |
//! | `GET /v1/instances/ID` | one machine |
//! | `POST /v1/instances/tags` | sets or removes tags of machines; one result for each |
//! | `GET /v1/load-balancers?cluster=&owner=&name=` | a page of load balancers |
//! | `GET`, `PUT`, `DELETE /v1/load-balancers/ID`; `PUT .../ID/targets`; `POST /v1/load-balancers` | one load balancer |
//! | `GET /v1/routes?cluster=` | a page of routes |
//! | `POST /v1/routes/batch` | one result for each deletion and creation |
//! | `/v1/disks`, `/v1/snapshots` | see `disk_api` |
//! | `/v1/metadata`, `/v1/ssh-keys`, `/v1/clusters` | see `small_api` |
//!
//! A page is `{"items": [...], "next": "token"}` with at most 1,000 items; an error is `{"error": {"status": 404, "message": "..."}}`.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router, middleware};
use serde::{Deserialize, Serialize};

use crate::Shared;
use crate::cloud::Refusal;
use crate::disk_api;
use crate::faults::Operation;
use crate::small_api;
use crate::traffic;
use crate::wire::*;

/// Most items of a page, and most ids or names in one request.
const MAX_PAGE: usize = 1_000;

pub(crate) type Cloud = State<Arc<Shared>>;
pub(crate) type Answer<T> = Result<Json<T>, Refusal>;

pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let on = |operation: Operation, route: MethodRouter<Arc<Shared>>| {
        route.layer(middleware::from_fn_with_state(
            (Arc::clone(shared), operation),
            traffic::pass,
        ))
    };
    let router = Router::new()
        .route("/v1/zones", on(Operation::ListZones, get(zones)))
        .route("/v1/instances", on(Operation::ListInstances, get(machines)))
        .route("/v1/instances/{id}", on(Operation::GetInstance, get(machine)))
        .route("/v1/instances/tags", on(Operation::ChangeTags, post(change_tags)))
        .route(
            "/v1/load-balancers",
            on(Operation::ListLoadBalancers, get(balancers))
                .merge(on(Operation::CreateLoadBalancer, post(create_balancer))),
        )
        .route(
            "/v1/load-balancers/{id}",
            on(Operation::GetLoadBalancer, get(balancer))
                .merge(on(Operation::UpdateLoadBalancer, put(update_balancer)))
                .merge(on(Operation::DeleteLoadBalancer, delete(delete_balancer))),
        )
        .route(
            "/v1/load-balancers/{id}/targets",
            on(Operation::UpdateTargets, put(update_targets)),
        )
        .route("/v1/routes", on(Operation::ListRoutes, get(routes)))
        .route("/v1/routes/batch", on(Operation::ChangeRoutes, post(change_routes)));
    let router = disk_api::routes(router, on);
    small_api::routes(router, on).with_state(Arc::clone(shared))
}

/// An error in the API's shape.
pub(crate) fn refusal(status: u16, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = serde_json::json!({"error": {"status": status.as_u16(), "message": message}});
    (status, Json(body)).into_response()
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refusal(self.status, &self.message)
    }
}

impl From<JsonRejection> for Refusal {
    fn from(rejection: JsonRejection) -> Self {
        Self {
            status: 400,
            message: rejection.body_text(),
        }
    }
}

/// Which part of a list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ListQuery {
    limit: Option<usize>,
    token: Option<String>,
    // What follows are filters; an operation that does not know one ignores it.
    pub(crate) ids: Option<String>,
    names: Option<String>,
    region: Option<String>,
    pub(crate) cluster: Option<String>,
    owner: Option<String>,
    owners: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) zone: Option<String>,
    pub(crate) disk: Option<String>,
}

impl ListQuery {
    /// One page. The token is the place of its first item, so what is added or deleted meanwhile shifts the rest, as in many a cloud.
    pub(crate) fn page<T: Serialize>(&self, items: Vec<T>) -> Answer<Page<T>> {
        let limit = self.limit.unwrap_or(MAX_PAGE).clamp(1, MAX_PAGE);
        let start = match &self.token {
            None => 0,
            Some(token) => match token.strip_prefix("at-").and_then(|place| place.parse::<usize>().ok()) {
                Some(place) => place,
                None => {
                    return Err(Refusal {
                        status: 400,
                        message: format!("{token:?} is no page token"),
                    });
                }
            },
        };
        let next = (start + limit < items.len()).then(|| format!("at-{}", start + limit));
        Ok(Json(Page {
            items: items.into_iter().skip(start).take(limit).collect(),
            next,
        }))
    }
}

/// The parts of a list with commas.
pub(crate) fn parts<'a>(list: &'a str, of: &str) -> Result<Vec<&'a str>, Refusal> {
    let parts: Vec<&str> = list.split(',').filter(|part| !part.is_empty()).collect();
    if parts.len() > MAX_PAGE {
        return Err(Refusal {
            status: 400,
            message: format!("{} {of} in one request; at most {MAX_PAGE}", parts.len()),
        });
    }
    Ok(parts)
}

pub(crate) fn fits(filter: &Option<String>, value: &str) -> bool {
    filter.as_deref().is_none_or(|wanted| wanted == value)
}

async fn zones(Query(query): Query<ListQuery>) -> Answer<Page<Zone>> {
    query.page(
        ZONES
            .iter()
            .map(|(name, region)| Zone {
                name: (*name).into(),
                region: (*region).into(),
            })
            .collect(),
    )
}

async fn machines(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<Machine>> {
    let mut machines = match &query.ids {
        Some(ids) => shared.cloud.machines_by_id(&parts(ids, "ids")?),
        None => shared.cloud.machines(),
    };
    if let Some(names) = &query.names {
        let names: std::collections::BTreeSet<&str> = parts(names, "names")?.into_iter().collect();
        machines.retain(|machine| names.contains(machine.name.as_str()));
    }
    machines.retain(|machine| fits(&query.region, &machine.region));
    query.page(machines)
}

async fn machine(State(shared): Cloud, Path(id): Path<String>) -> Answer<Machine> {
    let machine = shared.cloud.machines_by_id(&[&id]).pop();
    machine.map(Json).ok_or_else(|| Refusal {
        status: 404,
        message: format!("there is no machine {id}"),
    })
}

async fn change_tags(State(shared): Cloud, changes: Result<Json<TagChanges>, JsonRejection>) -> Answer<TagResults> {
    let changes = changes?.0;
    if changes.instances.len() > MAX_PAGE {
        return Err(Refusal {
            status: 400,
            message: format!("more than {MAX_PAGE} machines in one request"),
        });
    }
    let change = |id: &String| part(200, shared.cloud.change_tags(id, &changes));
    let results = changes.instances.iter().map(change).collect();
    Ok(Json(TagResults { results }))
}

async fn balancers(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<LoadBalancer>> {
    let owners = query.owners.as_deref().map(|owners| parts(owners, "owners"));
    let owners = owners.transpose()?;
    let is_owned = |owner: Option<&str>| match &owners {
        Some(owners) => owner.is_some_and(|owner| owners.contains(&owner)),
        None => true,
    };
    let balancers = shared.cloud.load_balancers_like(|spec| {
        fits(&query.cluster, &spec.cluster)
            && fits(&query.name, &spec.name)
            && (query.owner.is_none() || query.owner == spec.owner)
            && is_owned(spec.owner.as_deref())
    });
    query.page(balancers)
}

async fn balancer(State(shared): Cloud, Path(id): Path<String>) -> Answer<LoadBalancer> {
    shared.cloud.load_balancer(&id).map(Json)
}

async fn create_balancer(
    State(shared): Cloud,
    spec: Result<Json<BalancerSpec>, JsonRejection>,
) -> Result<(StatusCode, Json<LoadBalancer>), Refusal> {
    Ok((StatusCode::CREATED, Json(shared.cloud.create_load_balancer(spec?.0)?)))
}

async fn update_balancer(
    State(shared): Cloud,
    Path(id): Path<String>,
    spec: Result<Json<BalancerSpec>, JsonRejection>,
) -> Answer<LoadBalancer> {
    shared.cloud.update_load_balancer(&id, spec?.0).map(Json)
}

async fn update_targets(
    State(shared): Cloud,
    Path(id): Path<String>,
    new: Result<Json<NewTargets>, JsonRejection>,
) -> Answer<LoadBalancer> {
    shared.cloud.update_targets(&id, new?.0.targets).map(Json)
}

async fn delete_balancer(State(shared): Cloud, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    shared.cloud.delete_load_balancer(&id).map(|()| StatusCode::NO_CONTENT)
}

async fn routes(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<Route>> {
    let mut routes = shared.cloud.routes();
    routes.retain(|route| fits(&query.cluster, &route.spec.cluster));
    query.page(routes)
}

async fn change_routes(
    State(shared): Cloud,
    changes: Result<Json<RouteChanges>, JsonRejection>,
) -> Answer<RouteResults> {
    let RouteChanges { create, delete } = changes?.0;
    let deleted = delete
        .iter()
        .map(|id| part(200, shared.cloud.delete_route(id)))
        .collect();
    let created = create
        .into_iter()
        .map(|spec| part(201, shared.cloud.create_route(spec)))
        .collect();
    Ok(Json(RouteResults { created, deleted }))
}

pub(crate) fn part(success: u16, result: Result<(), Refusal>) -> PartResult {
    match result {
        Ok(()) => PartResult {
            status: success,
            message: String::new(),
        },
        Err(refusal) => PartResult {
            status: refusal.status,
            message: refusal.message,
        },
    }
}
