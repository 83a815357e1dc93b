//! Answers of the model in the words of the interface.

use std::collections::HashMap;

use cloudwit_model::volume::{AttachedVolume, DeviceHint, Snapshot, Topology, Volume, VolumeSource};
use tonic::Status;

use crate::DEVICE_HINT;
use crate::engine::work::Done;
use crate::proto;
use crate::proto::volume_content_source::{SnapshotSource, Type as Source, VolumeSource as WireVolumeSource};

/// An operation ended with something else, which is a bug.
pub(super) fn unexpected(done: &Done) -> Status {
    Status::aborted(format!("the operation ended with {done:?}"))
}

pub(super) fn bytes(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

pub(super) fn volume(volume: Volume) -> proto::Volume {
    proto::Volume {
        capacity_bytes: bytes(volume.size),
        volume_id: volume.id,
        volume_context: volume.context.into_iter().collect(),
        content_source: volume.source.map(source),
        accessible_topology: volume.topology.into_iter().map(topology).collect(),
    }
}

fn source(source: VolumeSource) -> proto::VolumeContentSource {
    proto::VolumeContentSource {
        r#type: Some(match source {
            VolumeSource::Snapshot(snapshot_id) => Source::Snapshot(SnapshotSource { snapshot_id }),
            VolumeSource::Volume(volume_id) => Source::Volume(WireVolumeSource { volume_id }),
        }),
    }
}

fn topology(Topology(segments): Topology) -> proto::Topology {
    proto::Topology {
        segments: segments.into_iter().collect(),
    }
}

pub(super) fn snapshot(snapshot: Snapshot) -> proto::Snapshot {
    let milliseconds = i64::try_from(snapshot.created).unwrap_or(i64::MAX);
    proto::Snapshot {
        size_bytes: bytes(snapshot.size),
        snapshot_id: snapshot.id,
        source_volume_id: snapshot.volume,
        creation_time: Some(prost_types::Timestamp {
            seconds: milliseconds / 1000,
            nanos: i32::try_from(milliseconds % 1000).unwrap_or_default() * 1_000_000,
        }),
        ready_to_use: snapshot.ready,
        ..Default::default()
    }
}

/// What the plugin on the machine gets: the cloud's own context as it is, and the device. Of several hints of a kind the first keeps the plain key.
pub(super) fn publish_context(attached: AttachedVolume) -> HashMap<String, String> {
    let mut context: HashMap<String, String> = attached.context.into_iter().collect();
    for hint in attached.devices {
        let (kind, value) = match hint {
            DeviceHint::Serial(serial) => ("serial", serial),
            DeviceHint::Wwn(wwn) => ("wwn", wwn),
            DeviceHint::ById(name) => ("by-id", name),
            DeviceHint::Lun(lun) => ("lun", lun.to_string()),
            DeviceHint::Path(path) => ("path", path),
        };
        let mut key = format!("{DEVICE_HINT}{kind}");
        let mut number = 1;
        while context.contains_key(&key) {
            number += 1;
            key = format!("{DEVICE_HINT}{kind}.{number}");
        }
        context.insert(key, value);
    }
    context
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_gets_the_clouds_context_and_each_device_hint() {
        let attached = AttachedVolume {
            context: [("devicePath".to_owned(), "/dev/xvdba".to_owned())].into(),
            devices: vec![
                DeviceHint::Serial("vol1".into()),
                DeviceHint::Serial("vol-1".into()),
                DeviceHint::Lun(3),
            ],
        };
        let expected = [
            ("devicePath", "/dev/xvdba"),
            ("device.csi.cloudwit.dev/serial", "vol1"),
            ("device.csi.cloudwit.dev/serial.2", "vol-1"),
            ("device.csi.cloudwit.dev/lun", "3"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(publish_context(attached), HashMap::from(expected));
    }
}
