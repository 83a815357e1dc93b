//! `/control`: what an administrator of the cloud does. Without a token, but from loopback only.
//!
//! | request | what it does |
//! | ------- | ------------ |
//! | `POST /control/machines` | adds: `{"prefix": "node", "count": 5000}` or `{"machines": [{"name": "a", "zone": "sim-2a"}]}` |
//! | `POST /control/machines/delete`, `/stop`, `/start` | `{"machines": ["vm-1", "node-7"]}`, ids or names |
//! | `GET /control/state` | machines, load balancers, routes, disks, snapshots |
//! | `POST /control/load-balancers/finish` | makes those active that are being built |
//! | `GET`, `PUT`, `DELETE /control/faults` | `[{"operation": "list-instances", "fault": {"kind": "status", "status": 500}, "rate": 0.5, "next": 3}]` |
//! | `PUT /control/disk-settings` | `{"buildMilliseconds": 0, "attachMilliseconds": 60000, "perMachine": 2, "zoneQuota": 1073741824}`, each optional |
//! | `POST /control/disks/delete` | `{"disks": ["disk-1"]}`, also attached ones |
//! | `PUT /control/latency` | `{"milliseconds": 50}` |
//! | `GET`, `DELETE /control/counters` | requests by operation, peak in flight |
//! | `POST /control/reset` | everything to how it began |

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Shared;
use crate::api::refusal;
use crate::cloud::Refusal;
use crate::counters::Counters;
use crate::disk_wire::{Disk, DiskSnapshot};
use crate::disks::Disks;
use crate::faults::Fault;
use crate::wire::*;

type Cloud = State<Arc<Shared>>;
type Sent<T> = Result<Json<T>, JsonRejection>;
type Answer<T> = Result<Json<T>, Refusal>;

pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    Router::new()
        .route("/control/machines", post(add_machines))
        .route("/control/machines/delete", post(delete_machines))
        .route("/control/machines/stop", post(stop_machines))
        .route("/control/machines/start", post(start_machines))
        .route("/control/state", get(state))
        .route("/control/load-balancers/finish", post(finish_load_balancers))
        .route("/control/faults", get(faults).put(set_faults).delete(clear_faults))
        .route("/control/disk-settings", put(set_disk_settings))
        .route("/control/disks/delete", post(delete_disks))
        .route("/control/latency", put(set_latency))
        .route("/control/counters", get(counters).delete(reset_counters))
        .route("/control/reset", post(reset))
        .layer(middleware::from_fn(loopback_only))
        .with_state(Arc::clone(shared))
}

async fn loopback_only(ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    if peer.ip().is_loopback() {
        next.run(request).await
    } else {
        refusal(403, "the control API can be used from loopback only")
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum NewMachines {
    Numbered { prefix: String, count: usize },
    Listed { machines: Vec<NewMachine> },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Which {
    machines: Vec<String>,
}

/// How many were meant.
#[derive(Debug, Serialize)]
struct Changed {
    changed: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    machines: Vec<Machine>,
    load_balancers: Vec<LoadBalancer>,
    routes: Vec<Route>,
    disks: Vec<Disk>,
    snapshots: Vec<DiskSnapshot>,
}

/// What changes of how disks behave.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewDiskSettings {
    build_milliseconds: Option<u64>,
    attach_milliseconds: Option<u64>,
    per_machine: Option<u32>,
    zone_quota: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WhichDisks {
    disks: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Latency {
    milliseconds: u64,
}

async fn add_machines(State(shared): Cloud, new: Sent<NewMachines>) -> Answer<Vec<Machine>> {
    Ok(Json(match new?.0 {
        NewMachines::Numbered { prefix, count } => shared
            .cloud
            .add_machines((0..count).map(|number| NewMachine::named(format!("{prefix}-{number}")))),
        NewMachines::Listed { machines } => shared.cloud.add_machines(machines),
    }))
}

async fn delete_machines(State(shared): Cloud, which: Sent<Which>) -> Answer<Changed> {
    Ok(Json(Changed {
        changed: shared.cloud.delete_machines(which?.0.machines),
    }))
}

async fn stop_machines(State(shared): Cloud, which: Sent<Which>) -> Answer<Changed> {
    Ok(Json(Changed {
        changed: shared.cloud.set_state(which?.0.machines, MachineState::Stopped),
    }))
}

async fn start_machines(State(shared): Cloud, which: Sent<Which>) -> Answer<Changed> {
    Ok(Json(Changed {
        changed: shared.cloud.set_state(which?.0.machines, MachineState::Running),
    }))
}

async fn state(State(shared): Cloud) -> Json<Snapshot> {
    let cloud = &shared.cloud;
    Json(Snapshot {
        machines: cloud.machines(),
        load_balancers: cloud.load_balancers(),
        routes: cloud.routes(),
        disks: cloud.with_disks(|disks, _| disks.all()),
        snapshots: cloud.with_disks(|disks, _| disks.snapshots()),
    })
}

async fn set_disk_settings(State(shared): Cloud, new: Sent<NewDiskSettings>) -> Answer<Value> {
    let new = new?.0;
    shared.cloud.with_disks(|disks, _| {
        let settings = &mut disks.settings;
        let time = |milliseconds: Option<u64>, before| milliseconds.map_or(before, Duration::from_millis);
        settings.build_time = time(new.build_milliseconds, settings.build_time);
        settings.attach_time = time(new.attach_milliseconds, settings.attach_time);
        settings.per_machine = new.per_machine.unwrap_or(settings.per_machine);
        settings.zone_quota = new.zone_quota.unwrap_or(settings.zone_quota);
    });
    Ok(Json(json!({})))
}

async fn delete_disks(State(shared): Cloud, which: Sent<WhichDisks>) -> Answer<Changed> {
    let ids = which?.0.disks;
    let deleted = |disks: &mut Disks| ids.iter().filter(|id| disks.remove(id)).count();
    Ok(Json(Changed {
        changed: shared.cloud.with_disks(|disks, _| deleted(disks)),
    }))
}

async fn finish_load_balancers(State(shared): Cloud) -> Json<Value> {
    shared.cloud.finish_load_balancers();
    Json(json!({}))
}

async fn faults(State(shared): Cloud) -> Json<Vec<Fault>> {
    Json(shared.traffic.faults())
}

async fn set_faults(State(shared): Cloud, faults: Sent<Vec<Fault>>) -> Answer<Vec<Fault>> {
    shared.traffic.set_faults(faults?.0);
    Ok(Json(shared.traffic.faults()))
}

async fn clear_faults(State(shared): Cloud) -> Json<Vec<Fault>> {
    shared.traffic.set_faults(Vec::new());
    Json(Vec::new())
}

async fn set_latency(State(shared): Cloud, latency: Sent<Latency>) -> Answer<Value> {
    shared
        .traffic
        .set_latency(Duration::from_millis(latency?.0.milliseconds));
    Ok(Json(json!({})))
}

async fn counters(State(shared): Cloud) -> Json<Counters> {
    Json(shared.traffic.counters())
}

async fn reset_counters(State(shared): Cloud) -> Json<Counters> {
    shared.traffic.reset_counters();
    Json(shared.traffic.counters())
}

async fn reset(State(shared): Cloud) -> Json<Value> {
    shared.reset();
    Json(json!({}))
}
