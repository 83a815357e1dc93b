//! Volumes attached to machines and detached from them.

use cloudwit_model::volume::{Detachment, NewAttachment};
use tonic::Status;

use super::Call;
use super::answers::{publish_context, unexpected};
use crate::check::{self, Mistakes};
use crate::codes;
use crate::engine::work::{Done, Request, Work};
use crate::proto::{
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse,
};

pub(super) async fn publish(
    call: Call<'_>,
    request: ControllerPublishVolumeRequest,
) -> Result<ControllerPublishVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    check::id("the node id", &request.node_id, &mut mistakes);
    let mut uses = check::uses(request.volume_capability.as_slice(), &mut mistakes);
    let secrets = check::secrets(request.secrets, &mut mistakes);
    let description = call.driver.description().await.map_err(codes::of_error)?;
    for volume_use in &uses {
        check::attachable(&description, volume_use, request.readonly).unwrap_or_else(|mistake| mistakes.add(mistake));
    }
    mistakes.none_or(())?;
    let missing = || Status::invalid_argument("the volume capability is missing");
    let work = Work::Attach(NewAttachment {
        volume: request.volume_id,
        node_id: request.node_id,
        read_only: request.readonly,
        volume_use: uses.pop().ok_or_else(missing)?,
        token: None,
    });
    match call.run(Request { work, secrets }).await? {
        Done::Attached(attached) => Ok(ControllerPublishVolumeResponse {
            publish_context: publish_context(attached),
        }),
        other => Err(unexpected(&other)),
    }
}

/// Without a node id, from all machines.
pub(super) async fn unpublish(
    call: Call<'_>,
    request: ControllerUnpublishVolumeRequest,
) -> Result<ControllerUnpublishVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    if !request.node_id.is_empty() {
        check::id("the node id", &request.node_id, &mut mistakes);
    }
    let secrets = check::secrets(request.secrets, &mut mistakes);
    mistakes.none_or(())?;
    let nodes = if request.node_id.is_empty() {
        let volume = call.driver.operations.steps().volume(&request.volume_id).await;
        let attachments = volume.map_err(codes::of_error)?.map(|volume| volume.attachments);
        attachments
            .unwrap_or_default()
            .into_iter()
            .map(|attachment| attachment.node_id)
            .collect()
    } else {
        vec![request.node_id]
    };
    for node_id in nodes {
        let work = Work::Detach(Detachment {
            volume: request.volume_id.clone(),
            node_id,
            token: None,
        });
        let secrets = secrets.clone();
        call.run(Request { work, secrets }).await?;
    }
    Ok(ControllerUnpublishVolumeResponse {})
}
