//! The controller service: one function per RPC.

mod answers;
mod attachments;
mod lists;
mod snapshots;
mod volumes;

use std::time::Duration;

use tokio::time::Instant;
use tonic::{Code, Request, Response, Status};
use tracing::{Instrument, info, info_span};

use crate::codes;
use crate::driver::Driver;
use crate::engine::work::{Done, Request as Wanted};
use crate::proto;
use crate::proto::controller_server::Controller;

/// How long an RPC without a deadline waits. Sidecars send one of 10 to 60 s.
const NO_DEADLINE: Duration = Duration::from_secs(5 * 60);

/// So long before its deadline an RPC is answered: the answer has to arrive.
const MARGIN: Duration = Duration::from_millis(500);

/// One RPC.
#[derive(Debug, Clone, Copy)]
struct Call<'a> {
    driver: &'a Driver,
    deadline: Instant,
}

impl Call<'_> {
    /// Does this, within the time of the RPC.
    async fn run(self, wanted: Wanted) -> Result<Done, Status> {
        let ended = self.driver.operations.run(wanted, self.deadline).await;
        ended.map_err(codes::status)
    }
}

/// The deadline that gRPC sends as a number and a unit (`grpc-timeout: 10S`).
fn deadline<T>(request: &Request<T>) -> Duration {
    let sent = request
        .metadata()
        .get("grpc-timeout")
        .and_then(|value| value.to_str().ok());
    sent.and_then(timeout)
        .map_or(NO_DEADLINE, |sent| sent.min(NO_DEADLINE).saturating_sub(MARGIN))
}

fn timeout(sent: &str) -> Option<Duration> {
    let (number, unit) = sent.split_at_checked(sent.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.saturating_mul(3600)),
        "M" => Duration::from_secs(number.saturating_mul(60)),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

impl Driver {
    /// Answers an RPC: in time, counted, in a span of its own. Requests are never logged, since they carry secrets.
    async fn answer<'a, Q, A, F>(
        &'a self,
        method: &'static str,
        request: Request<Q>,
        handle: impl FnOnce(Call<'a>, Q) -> F,
    ) -> Result<Response<A>, Status>
    where
        F: Future<Output = Result<A, Status>>,
    {
        let begun = Instant::now();
        let call = Call {
            driver: self,
            deadline: begun + deadline(&request),
        };
        let span = info_span!("csi", driver = self.name, method);
        let answer = handle(call, request.into_inner()).instrument(span).await;
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        self.metrics.request(&self.name, method, code, begun.elapsed());
        if let Err(status) = &answer {
            info!(
                driver = self.name,
                method,
                ?code,
                error = status.message(),
                "request not fulfilled"
            );
        }
        answer.map(Response::new)
    }
}

/// The methods of the service, each with the function that answers it.
macro_rules! methods {
    ($($method:ident($name:literal, $request:ident) -> $response:ident = $handle:path;)*) => {
        #[tonic::async_trait]
        impl Controller for Driver {
            $(async fn $method(&self, request: Request<proto::$request>) -> Result<Response<proto::$response>, Status> {
                self.answer($name, request, $handle).await
            })*
        }
    };
}

methods! {
    create_volume("CreateVolume", CreateVolumeRequest) -> CreateVolumeResponse = volumes::create;
    delete_volume("DeleteVolume", DeleteVolumeRequest) -> DeleteVolumeResponse = volumes::delete;
    controller_get_volume("ControllerGetVolume", ControllerGetVolumeRequest) -> ControllerGetVolumeResponse = volumes::get;
    validate_volume_capabilities("ValidateVolumeCapabilities", ValidateVolumeCapabilitiesRequest)
        -> ValidateVolumeCapabilitiesResponse = volumes::validate;
    controller_expand_volume("ControllerExpandVolume", ControllerExpandVolumeRequest)
        -> ControllerExpandVolumeResponse = volumes::expand;
    controller_modify_volume("ControllerModifyVolume", ControllerModifyVolumeRequest)
        -> ControllerModifyVolumeResponse = volumes::modify;
    controller_publish_volume("ControllerPublishVolume", ControllerPublishVolumeRequest)
        -> ControllerPublishVolumeResponse = attachments::publish;
    controller_unpublish_volume("ControllerUnpublishVolume", ControllerUnpublishVolumeRequest)
        -> ControllerUnpublishVolumeResponse = attachments::unpublish;
    list_volumes("ListVolumes", ListVolumesRequest) -> ListVolumesResponse = lists::volumes;
    get_capacity("GetCapacity", GetCapacityRequest) -> GetCapacityResponse = lists::capacity;
    controller_get_capabilities("ControllerGetCapabilities", ControllerGetCapabilitiesRequest)
        -> ControllerGetCapabilitiesResponse = lists::capabilities;
    create_snapshot("CreateSnapshot", CreateSnapshotRequest) -> CreateSnapshotResponse = snapshots::create;
    delete_snapshot("DeleteSnapshot", DeleteSnapshotRequest) -> DeleteSnapshotResponse = snapshots::delete;
    get_snapshot("GetSnapshot", GetSnapshotRequest) -> GetSnapshotResponse = snapshots::get;
    list_snapshots("ListSnapshots", ListSnapshotsRequest) -> ListSnapshotsResponse = snapshots::list;
    controller_list_volume_health("ControllerListVolumeHealth", ControllerListVolumeHealthRequest)
        -> ControllerListVolumeHealthResponse = lists::no_health_list;
    controller_get_volume_health("ControllerGetVolumeHealth", ControllerGetVolumeHealthRequest)
        -> ControllerGetVolumeHealthResponse = lists::no_health;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_is_read_with_its_unit_and_bounded() {
        let of = |sent: &str| {
            let mut request = Request::new(());
            request.metadata_mut().insert("grpc-timeout", sent.parse().unwrap());
            deadline(&request)
        };
        let seconds = Duration::from_secs;
        assert_eq!(of("10S"), seconds(10) - MARGIN);
        assert_eq!(of("1M"), seconds(60) - MARGIN);
        assert_eq!(of("14999886u"), Duration::from_micros(14_999_886) - MARGIN);
        assert_eq!(of("100m"), Duration::ZERO);
        for odd in ["99999999H", "5", "S", "-5S", "10X", ""] {
            assert!(of(odd) >= NO_DEADLINE - MARGIN, "{odd:?}");
        }
        assert_eq!(deadline(&Request::new(())), NO_DEADLINE);
    }
}
