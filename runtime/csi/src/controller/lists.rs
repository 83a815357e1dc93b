//! Lists, capacity, and what the service can.

use cloudwit_model::volume::{CapacityQuery, MAX_VOLUME_PAGE, VolumeFeature};
use cloudwit_model::{CloudError, Failure};
use tonic::Status;

use super::Call;
use super::answers::{bytes, volume};
use super::volumes::needs;
use crate::check::{self, Mistakes, topology};
use crate::codes;
use crate::proto::controller_service_capability::rpc::Type as Rpc;
use crate::proto::controller_service_capability::{self, Type};
use crate::proto::list_volumes_response::{Entry, VolumeStatus};
use crate::proto::{
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse, ControllerGetVolumeHealthRequest,
    ControllerGetVolumeHealthResponse, ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse,
    ControllerServiceCapability, GetCapacityRequest, GetCapacityResponse, ListVolumesRequest, ListVolumesResponse,
};

pub(super) async fn volumes(call: Call<'_>, request: ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
    needs(call.driver.abilities().listing, "list volumes")?;
    let limit = limit(request.max_entries)?;
    let after = Some(request.starting_token.as_str()).filter(|token| !token.is_empty());
    let page = call.driver.cloud.list_volumes(after, limit).await;
    let page = page.map_err(|error| page_error(error, after))?;
    let entry = |listed: cloudwit_model::volume::Volume| Entry {
        status: Some(VolumeStatus {
            published_node_ids: listed
                .attachments
                .iter()
                .map(|attachment| attachment.node_id.clone())
                .collect(),
        }),
        volume: Some(volume(listed)),
    };
    Ok(ListVolumesResponse {
        entries: page.items.into_iter().map(entry).collect(),
        next_token: page.next.unwrap_or_default(),
    })
}

pub(super) async fn capacity(call: Call<'_>, request: GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
    needs(call.driver.abilities().capacity, "say how much room there is")?;
    let mut mistakes = Mistakes::default();
    let parameters = check::map("parameters", request.parameters, &mut mistakes);
    let uses = match request.volume_capabilities.as_slice() {
        [] => Vec::new(),
        some => check::uses(some, &mut mistakes),
    };
    mistakes.none_or(())?;
    let description = call.driver.description().await.map_err(codes::of_error)?;
    if uses
        .iter()
        .any(|volume_use| check::creatable(&description, volume_use).is_err())
    {
        // No volume of this kind can be made.
        return Ok(GetCapacityResponse::default());
    }
    let query = CapacityQuery {
        uses,
        parameters,
        at: request.accessible_topology.map(topology),
    };
    let capacity = call
        .driver
        .cloud
        .volume_capacity(&query)
        .await
        .map_err(codes::of_error)?;
    let largest = capacity.largest.unwrap_or(description.largest).min(description.largest);
    Ok(GetCapacityResponse {
        available_capacity: bytes(capacity.available),
        maximum_volume_size: Some(bytes(largest)),
        minimum_volume_size: Some(bytes(description.smallest)),
    })
}

pub(super) async fn capabilities(
    call: Call<'_>,
    _: ControllerGetCapabilitiesRequest,
) -> Result<ControllerGetCapabilitiesResponse, Status> {
    let abilities = call.driver.abilities();
    let description = call.driver.description().await.map_err(codes::of_error)?;
    let offered = [
        (true, Rpc::CreateDeleteVolume),
        (true, Rpc::PublishUnpublishVolume),
        (true, Rpc::GetVolume),
        // Kubernetes requests ReadWriteOncePod through it; on the cloud's side it is the same as one machine.
        (true, Rpc::SingleNodeMultiWriter),
        (abilities.listing, Rpc::ListVolumes),
        (abilities.listing, Rpc::ListVolumesPublishedNodes),
        (abilities.capacity, Rpc::GetCapacity),
        (abilities.snapshots, Rpc::CreateDeleteSnapshot),
        (abilities.snapshots, Rpc::ListSnapshots),
        (abilities.snapshots, Rpc::GetSnapshot),
        (abilities.expansion, Rpc::ExpandVolume),
        (abilities.modification, Rpc::ModifyVolume),
        (description.has(VolumeFeature::Clone), Rpc::CloneVolume),
        (description.has(VolumeFeature::ReadOnly), Rpc::PublishReadonly),
    ];
    let capability = |(offered, rpc): (bool, Rpc)| {
        let rpc = controller_service_capability::Rpc { r#type: rpc.into() };
        let r#type = Some(Type::Rpc(rpc));
        offered.then_some(ControllerServiceCapability { r#type })
    };
    Ok(ControllerGetCapabilitiesResponse {
        capabilities: offered.into_iter().filter_map(capability).collect(),
    })
}

pub(super) async fn no_health_list(
    _: Call<'_>,
    _: ControllerListVolumeHealthRequest,
) -> Result<ControllerListVolumeHealthResponse, Status> {
    Err(Status::unimplemented("the health of volumes is not known"))
}

pub(super) async fn no_health(
    _: Call<'_>,
    _: ControllerGetVolumeHealthRequest,
) -> Result<ControllerGetVolumeHealthResponse, Status> {
    Err(Status::unimplemented("the health of a volume is not known"))
}

/// Entries of a page; 0 on the wire leaves it to the driver.
pub(super) fn limit(max_entries: i32) -> Result<u32, Status> {
    let negative = |_| Status::invalid_argument(format!("max_entries is negative: {max_entries}"));
    let limit = u32::try_from(max_entries).map_err(negative)?;
    Ok(if limit == 0 {
        MAX_VOLUME_PAGE
    } else {
        limit.min(MAX_VOLUME_PAGE)
    })
}

/// After a token that is unknown to the cloud the list starts again, which `Aborted` means.
pub(super) fn page_error(error: CloudError, after: Option<&str>) -> Status {
    match (&error, after) {
        (CloudError::Failure(Failure::Invalid(_) | Failure::NotFound(_) | Failure::OutOfRange(_)), Some(_)) => {
            Status::aborted(format!("the starting token is not valid (any more): {error}"))
        }
        _ => codes::of_error(error),
    }
}
