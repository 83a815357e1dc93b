//! Volumes: create, get, expand, modify, delete.

use tonic::Status;

use super::Call;
use super::answers::{bytes, unexpected, volume};
use crate::check::{self, Mistakes};
use crate::codes;
use crate::engine::work::{Done, Request, Work};
use crate::proto;
use crate::proto::controller_get_volume_response::VolumeStatus;
use crate::proto::validate_volume_capabilities_response::Confirmed;
use crate::proto::{
    ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, ControllerGetVolumeRequest,
    ControllerGetVolumeResponse, ControllerModifyVolumeRequest, ControllerModifyVolumeResponse, CreateVolumeRequest,
    CreateVolumeResponse, DeleteVolumeRequest, DeleteVolumeResponse, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse,
};
use cloudwit_model::volume::VolumeFeature;

pub(super) async fn create(call: Call<'_>, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
    let description = call.driver.description().await.map_err(codes::of_error)?;
    let source = request.volume_content_source.clone();
    let (new, secrets) = check::new_volume(request, &description, call.driver.abilities())?;
    let work = Work::Create(new);
    match call.run(Request { work, secrets }).await? {
        // The caller expects its own request there, and not every cloud returns it.
        Done::Created(created) => Ok(CreateVolumeResponse {
            volume: Some(proto::Volume {
                content_source: source,
                ..volume(created)
            }),
        }),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn delete(call: Call<'_>, request: DeleteVolumeRequest) -> Result<DeleteVolumeResponse, Status> {
    let secrets = check::id_and_secrets("the volume id", &request.volume_id, request.secrets)?;
    let work = Work::Delete(request.volume_id);
    call.run(Request { work, secrets }).await?;
    Ok(DeleteVolumeResponse {})
}

pub(super) async fn get(
    call: Call<'_>,
    request: ControllerGetVolumeRequest,
) -> Result<ControllerGetVolumeResponse, Status> {
    check::only_id("the volume id", &request.volume_id)?;
    let existing = call.driver.operations.steps().existing(&request.volume_id).await;
    let existing = existing.map_err(codes::of_error)?;
    let published_node_ids = existing.attachments.iter().map(|attachment| attachment.node_id.clone());
    Ok(ControllerGetVolumeResponse {
        status: Some(VolumeStatus {
            published_node_ids: published_node_ids.collect(),
        }),
        volume: Some(volume(existing)),
    })
}

pub(super) async fn validate(
    call: Call<'_>,
    request: ValidateVolumeCapabilitiesRequest,
) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    let uses = check::uses(&request.volume_capabilities, &mut mistakes);
    mistakes.none_or(())?;
    let existing = call.driver.operations.steps().existing(&request.volume_id).await;
    existing.map_err(codes::of_error)?;
    let description = call.driver.description().await.map_err(codes::of_error)?;
    let refused = uses
        .iter()
        .find_map(|volume_use| check::creatable(&description, volume_use).err());
    Ok(match refused {
        Some(message) => ValidateVolumeCapabilitiesResponse {
            message,
            ..Default::default()
        },
        // Parameters are not confirmed: what a volume was made with is only in the cloud.
        None => ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                ..Default::default()
            }),
            ..Default::default()
        },
    })
}

pub(super) async fn expand(
    call: Call<'_>,
    request: ControllerExpandVolumeRequest,
) -> Result<ControllerExpandVolumeResponse, Status> {
    needs(call.driver.abilities().expansion, "expand volumes")?;
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    if request.capacity_range.is_none() {
        mistakes.add("the capacity range is missing");
    }
    let (least, most) = check::bounds(request.capacity_range, &mut mistakes);
    let secrets = check::secrets(request.secrets, &mut mistakes);
    mistakes.none_or(())?;
    let description = call.driver.description().await.map_err(codes::of_error)?;
    let work = Work::Expand {
        volume: request.volume_id,
        size: check::size(&description, least, most)?,
        online: description.has(VolumeFeature::ExpandOnline),
    };
    match call.run(Request { work, secrets }).await? {
        Done::Expanded(expanded) => Ok(ControllerExpandVolumeResponse {
            capacity_bytes: bytes(expanded.size),
            node_expansion_required: expanded.on_node,
        }),
        other => Err(unexpected(&other)),
    }
}

pub(super) async fn modify(
    call: Call<'_>,
    request: ControllerModifyVolumeRequest,
) -> Result<ControllerModifyVolumeResponse, Status> {
    needs(call.driver.abilities().modification, "modify volumes")?;
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    let parameters = check::map("mutable parameters", request.mutable_parameters, &mut mistakes);
    let secrets = check::secrets(request.secrets, &mut mistakes);
    mistakes.none_or(())?;
    let volume = request.volume_id;
    let work = Work::Modify { volume, parameters };
    call.run(Request { work, secrets }).await?;
    Ok(ControllerModifyVolumeResponse {})
}

/// What the provider does not export is not implemented.
pub(super) fn needs(ability: bool, what: &str) -> Result<(), Status> {
    let missing = || Status::unimplemented(format!("the provider cannot {what}"));
    ability.then_some(()).ok_or_else(missing)
}
