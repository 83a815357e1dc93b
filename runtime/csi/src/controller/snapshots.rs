//! Snapshots.

use tonic::Status;

use super::Call;
use super::answers::{snapshot, unexpected};
use super::lists::{limit, page_error};
use super::volumes::needs;
use crate::check::{self, Mistakes};
use crate::codes;
use crate::engine::work::{Done, Request, Work};
use crate::proto::list_snapshots_response::Entry;
use crate::proto::{
    CreateSnapshotRequest, CreateSnapshotResponse, DeleteSnapshotRequest, DeleteSnapshotResponse, GetSnapshotRequest,
    GetSnapshotResponse, ListSnapshotsRequest, ListSnapshotsResponse,
};

pub(super) async fn create(call: Call<'_>, request: CreateSnapshotRequest) -> Result<CreateSnapshotResponse, Status> {
    offered(call)?;
    let (new, secrets) = check::new_snapshot(request)?;
    let work = Work::CreateSnapshot(new);
    match call.run(Request { work, secrets }).await? {
        Done::Snapshot(made) => Ok(CreateSnapshotResponse {
            snapshot: Some(snapshot(made)),
        }),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn delete(call: Call<'_>, request: DeleteSnapshotRequest) -> Result<DeleteSnapshotResponse, Status> {
    offered(call)?;
    let secrets = check::id_and_secrets("the snapshot id", &request.snapshot_id, request.secrets)?;
    let work = Work::DeleteSnapshot(request.snapshot_id);
    call.run(Request { work, secrets }).await?;
    Ok(DeleteSnapshotResponse {})
}

pub(super) async fn get(call: Call<'_>, request: GetSnapshotRequest) -> Result<GetSnapshotResponse, Status> {
    offered(call)?;
    let secrets = check::id_and_secrets("the snapshot id", &request.snapshot_id, request.secrets)?;
    let steps = call.driver.operations.steps();
    let found = steps.snapshot(&request.snapshot_id, &secrets).await;
    match found.map_err(codes::of_error)? {
        Some(found) => Ok(GetSnapshotResponse {
            snapshot: Some(snapshot(found)),
        }),
        None => Err(Status::not_found(format!(
            "snapshot {} does not exist",
            request.snapshot_id
        ))),
    }
}

/// Those of one id, of one volume, or all of the cluster. What does not exist makes the list empty.
pub(super) async fn list(call: Call<'_>, request: ListSnapshotsRequest) -> Result<ListSnapshotsResponse, Status> {
    offered(call)?;
    let limit = limit(request.max_entries)?;
    let mut mistakes = Mistakes::default();
    let secrets = check::secrets(request.secrets, &mut mistakes);
    mistakes.none_or(())?;
    if !request.snapshot_id.is_empty() {
        check::only_id("the snapshot id", &request.snapshot_id)?;
        let steps = call.driver.operations.steps();
        let found = steps.snapshot(&request.snapshot_id, &secrets).await;
        let found = found.map_err(codes::of_error)?;
        let of_volume = |found: &cloudwit_model::volume::Snapshot| {
            request.source_volume_id.is_empty() || found.volume == request.source_volume_id
        };
        let entries = found.filter(of_volume).into_iter().map(entry).collect();
        let next_token = String::new();
        return Ok(ListSnapshotsResponse { entries, next_token });
    }
    let volume = Some(request.source_volume_id.as_str()).filter(|id| !id.is_empty());
    let after = Some(request.starting_token.as_str()).filter(|token| !token.is_empty());
    let page = call.driver.cloud.list_snapshots(volume, after, limit, &secrets).await;
    let page = page.map_err(|error| page_error(error, after))?;
    Ok(ListSnapshotsResponse {
        entries: page.items.into_iter().map(entry).collect(),
        next_token: page.next.unwrap_or_default(),
    })
}

fn entry(found: cloudwit_model::volume::Snapshot) -> Entry {
    Entry {
        snapshot: Some(snapshot(found)),
    }
}

fn offered(call: Call<'_>) -> Result<(), Status> {
    needs(call.driver.abilities().snapshots, "make snapshots")
}
