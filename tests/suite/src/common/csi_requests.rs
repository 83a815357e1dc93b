//! Requests as the sidecars make them.

use std::fmt::Debug;
use std::time::Duration;

use cloudwit_csi::proto::volume_capability::access_mode::Mode;
use cloudwit_csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use cloudwit_csi::proto::*;
use cloudwit_test_support::eventually;
use tonic::{Code, Request, Response, Status};

use crate::hosting::LONG;

pub const GIB: i64 = 1 << 30;

/// A file system that one machine writes to.
pub fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

/// At this place and nowhere else.
pub fn at(key: &str, zone: &str) -> TopologyRequirement {
    let place = Topology {
        segments: [(key.to_owned(), zone.to_owned())].into(),
    };
    TopologyRequirement {
        requisite: vec![place.clone()],
        preferred: vec![place],
    }
}

/// A volume of two GiB at this place.
pub fn wanted_at(name: &str, key: &str, zone: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(CapacityRange {
            required_bytes: 2 * GIB,
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability()],
        accessibility_requirements: Some(at(key, zone)),
        ..Default::default()
    }
}

pub fn delete(volume_id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: volume_id.into(),
        ..Default::default()
    }
}

/// Lets it grow to so many bytes.
pub fn grow(volume_id: &str, bytes: i64) -> ControllerExpandVolumeRequest {
    ControllerExpandVolumeRequest {
        volume_id: volume_id.into(),
        capacity_range: Some(CapacityRange {
            required_bytes: bytes,
            limit_bytes: 0,
        }),
        ..Default::default()
    }
}

pub fn publish(volume_id: &str, node_id: &str) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: volume_id.into(),
        node_id: node_id.into(),
        volume_capability: Some(capability()),
        ..Default::default()
    }
}

pub fn unpublish(volume_id: &str, node_id: &str) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: volume_id.into(),
        node_id: node_id.into(),
        ..Default::default()
    }
}

/// With a deadline, as sidecars send one.
pub fn within<T>(time: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time);
    request
}

/// What the driver says to a request whose time is up, sent as often as that takes: the client waits no longer than that time either, and on a busy machine it
/// gives up first now and then.
pub async fn overdue<T, Fut>(mut send: impl FnMut() -> Fut) -> Status
where
    T: Debug,
    Fut: Future<Output = Result<Response<T>, Status>>,
{
    let look = || {
        let sent = send();
        async move {
            match sent.await {
                Ok(answer) => panic!("{answer:?}"),
                Err(given_up) if given_up.code() == Code::Cancelled => Err(given_up),
                Err(said) => Ok(said),
            }
        }
    };
    eventually(LONG, "the driver's own answer", look).await
}
