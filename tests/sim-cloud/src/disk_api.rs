//! `/v1/disks` and `/v1/snapshots`.
//!
//! | request | answer |
//! | ------- | ------ |
//! | `GET /v1/disks?ids=a,b`, `?cluster=`, `&name=`, `&limit=`, `&token=` | a page of disks |
//! | `POST /v1/disks`; `PUT`, `DELETE /v1/disks/ID` | one disk |
//! | `POST /v1/disks/batch` | one result for each that is detached and attached; 202 where it is not done |
//! | `GET /v1/disk-limits?zone=` | how much room there is |
//! | `GET /v1/snapshots?ids=a,b`, `?cluster=`, `&name=`, `&disk=` | a page of snapshots |
//! | `POST /v1/snapshots`; `DELETE /v1/snapshots/ID` | one snapshot |
//!
//! The header `x-disk-passphrase` has the passphrase of encrypted disks, in Base64: of the one that is created or deleted, of all that are attached.
//!
//! Statuses: 403 another passphrase, 404 does not exist, 409 exists otherwise, 412 in another state, 416 no such size, 507 no room.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router};

use crate::Shared;
use crate::api::{Answer, Cloud, ListQuery, fits, part, parts};
use crate::cloud::Refusal;
use crate::disk_wire::*;
use crate::faults::Operation;
use crate::wire::{Page, PartResult, RouteResults, ZONES};

/// The header with the passphrase of encrypted disks.
const PASSPHRASE: &str = "x-disk-passphrase";

pub(crate) fn routes(
    router: Router<Arc<Shared>>,
    on: impl Fn(Operation, MethodRouter<Arc<Shared>>) -> MethodRouter<Arc<Shared>>,
) -> Router<Arc<Shared>> {
    router
        .route(
            "/v1/disks",
            on(Operation::ListDisks, get(disks)).merge(on(Operation::CreateDisk, post(create))),
        )
        .route(
            "/v1/disks/{id}",
            on(Operation::ChangeDisk, put(change)).merge(on(Operation::DeleteDisk, delete(remove))),
        )
        .route("/v1/disks/batch", on(Operation::MoveDisks, post(batch)))
        .route("/v1/disk-limits", on(Operation::GetDiskLimits, get(limits)))
        .route(
            "/v1/snapshots",
            on(Operation::ListSnapshots, get(snapshots)).merge(on(Operation::CreateSnapshot, post(create_snapshot))),
        )
        .route(
            "/v1/snapshots/{id}",
            on(Operation::DeleteSnapshot, delete(remove_snapshot)),
        )
}

/// Keeps those with one of these ids, in the order of the list.
fn retain_ids<T>(items: &mut Vec<T>, ids: Option<&str>, id: impl Fn(&T) -> &str) -> Result<(), Refusal> {
    if let Some(ids) = ids {
        let ids = parts(ids, "ids")?;
        items.retain(|item| ids.contains(&id(item)));
    }
    Ok(())
}

/// What the header has; disks compare it as it is written.
fn passphrase(headers: &HeaderMap) -> Option<&str> {
    headers.get(PASSPHRASE)?.to_str().ok()
}

async fn disks(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<Disk>> {
    let mut disks = shared.cloud.with_disks(|disks, _| disks.all());
    retain_ids(&mut disks, query.ids.as_deref(), |disk| &disk.id)?;
    disks.retain(|disk| fits(&query.cluster, &disk.spec.cluster) && fits(&query.name, &disk.spec.name));
    query.page(disks)
}

async fn create(
    State(shared): Cloud,
    headers: HeaderMap,
    spec: Result<Json<DiskSpec>, JsonRejection>,
) -> Result<(StatusCode, Json<Disk>), Refusal> {
    let spec = spec?.0;
    if !ZONES.iter().any(|(zone, _)| *zone == spec.zone) {
        return Err(Refusal {
            status: 422,
            message: format!("there is no zone {}", spec.zone),
        });
    }
    let disk = shared
        .cloud
        .with_disks(|disks, _| disks.create(spec, passphrase(&headers)))?;
    Ok((StatusCode::CREATED, Json(disk)))
}

async fn change(
    State(shared): Cloud,
    Path(id): Path<String>,
    new: Result<Json<DiskChange>, JsonRejection>,
) -> Answer<Disk> {
    let new = new?.0;
    shared.cloud.with_disks(|disks, _| disks.change(&id, &new)).map(Json)
}

async fn remove(State(shared): Cloud, Path(id): Path<String>, headers: HeaderMap) -> Result<StatusCode, Refusal> {
    let removed = shared
        .cloud
        .with_disks(|disks, _| disks.delete(&id, passphrase(&headers)));
    removed.map(|()| StatusCode::NO_CONTENT)
}

async fn batch(
    State(shared): Cloud,
    headers: HeaderMap,
    moves: Result<Json<DiskMoves>, JsonRejection>,
) -> Answer<RouteResults> {
    let DiskMoves { attach, detach } = moves?.0;
    Ok(Json(shared.cloud.with_disks(|disks, zone_of| {
        let deleted = detach.iter().map(|one| part(disks.detach(one), Ok(()))).collect();
        let attached = |one: &DiskMove| match disks.attach(one, zone_of(&one.machine).as_deref(), passphrase(&headers))
        {
            Ok(status) => part(status, Ok(())),
            Err(refusal) => part(200, Err(refusal)),
        };
        let created: Vec<PartResult> = attach.iter().map(attached).collect();
        RouteResults { created, deleted }
    })))
}

async fn limits(State(shared): Cloud, Query(query): Query<ListQuery>) -> Json<DiskLimits> {
    Json(shared.cloud.with_disks(|disks, _| {
        let zones = ZONES.iter().filter(|(zone, _)| fits(&query.zone, zone));
        DiskLimits {
            available: zones.map(|(zone, _)| disks.room(zone)).sum(),
            per_machine: disks.settings.per_machine,
        }
    }))
}

async fn snapshots(State(shared): Cloud, Query(query): Query<ListQuery>) -> Answer<Page<DiskSnapshot>> {
    let mut snapshots = shared.cloud.with_disks(|disks, _| disks.snapshots());
    retain_ids(&mut snapshots, query.ids.as_deref(), |snapshot| &snapshot.id)?;
    snapshots.retain(|snapshot| {
        let spec = &snapshot.spec;
        fits(&query.cluster, &spec.cluster) && fits(&query.name, &spec.name) && fits(&query.disk, &spec.disk)
    });
    query.page(snapshots)
}

async fn create_snapshot(
    State(shared): Cloud,
    spec: Result<Json<SnapshotSpec>, JsonRejection>,
) -> Result<(StatusCode, Json<DiskSnapshot>), Refusal> {
    let spec = spec?.0;
    let snapshot = shared.cloud.with_disks(|disks, _| disks.create_snapshot(spec))?;
    Ok((StatusCode::CREATED, Json(snapshot)))
}

async fn remove_snapshot(State(shared): Cloud, Path(id): Path<String>) -> Result<StatusCode, Refusal> {
    let removed = shared.cloud.with_disks(|disks, _| disks.delete_snapshot(&id));
    removed.map(|()| StatusCode::NO_CONTENT)
}
