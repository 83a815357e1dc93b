use super::*;
use crate::engine::testing::{GIB, driver};
use crate::proto::VolumeCapability;
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use crate::proto::volume_content_source::{SnapshotSource, VolumeSource as WireVolumeSource};

fn request() -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: "pvc-1".into(),
        volume_capabilities: vec![VolumeCapability {
            access_mode: Some(AccessMode {
                mode: Mode::SingleNodeWriter.into(),
            }),
            access_type: Some(AccessType::Mount(MountVolume::default())),
        }],
        ..Default::default()
    }
}

fn abilities() -> VolumeAbilities {
    VolumeAbilities {
        basic: true,
        snapshots: true,
        ..VolumeAbilities::default()
    }
}

fn read(request: CreateVolumeRequest) -> Result<NewVolume, Status> {
    new_volume(request, &driver(), abilities()).map(|(new, _)| new)
}

fn range(required_bytes: i64, limit_bytes: i64) -> Option<CapacityRange> {
    Some(CapacityRange {
        required_bytes,
        limit_bytes,
    })
}

#[test]
fn what_sidecars_add_becomes_tags_and_the_rest_stays_the_class() {
    let given = [
        ("type", "fast"),
        ("csi.storage.k8s.io/pvc/name", "data"),
        ("csi.storage.k8s.io/pvc/namespace", "shop"),
        ("csi.storage.k8s.io/fstype", "xfs"),
    ];
    let parameters = given.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let new = read(CreateVolumeRequest {
        parameters,
        ..request()
    })
    .unwrap();
    assert_eq!(new.parameters, [("type".to_owned(), "fast".to_owned())].into());
    let tags = [
        ("kubernetes.io/created-for/pvc/name", "data"),
        ("kubernetes.io/created-for/pvc/namespace", "shop"),
    ];
    assert_eq!(
        new.tags,
        tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    );
}

#[test]
fn size_is_rounded_and_nothing_means_the_usual_one() {
    let size = |capacity_range| {
        let request = CreateVolumeRequest {
            capacity_range,
            ..request()
        };
        read(request)
            .map(|new| new.size.at_least)
            .map_err(|refused| refused.code())
    };
    assert_eq!(size(None), Ok(8 * GIB));
    assert_eq!(size(range(1, 0)), Ok(GIB));
    assert_eq!(size(range(1, 1)), Err(tonic::Code::OutOfRange));
    assert_eq!(size(range(65 << 30, 0)), Err(tonic::Code::OutOfRange));
    assert_eq!(size(range(2, 1)), Err(tonic::Code::InvalidArgument));
    assert_eq!(size(range(-1, 0)), Err(tonic::Code::InvalidArgument));
    assert_eq!(size(range(i64::MAX, 0)), Err(tonic::Code::OutOfRange));
}

#[test]
fn all_mistakes_are_reported_together() {
    let odd = CreateVolumeRequest {
        name: String::new(),
        volume_capabilities: Vec::new(),
        capacity_range: range(-5, 0),
        mutable_parameters: [("iops".to_owned(), "9".to_owned())].into(),
        ..Default::default()
    };
    let refused = read(odd).unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(
        refused.message(),
        "the name is missing; volume capabilities are missing; volumes of csi.test have no mutable parameters; \
         the required capacity is negative: -5"
    );
    let long = CreateVolumeRequest {
        name: "n".repeat(300),
        parameters: [("k".to_owned(), "v".repeat(20_000))].into(),
        ..request()
    };
    let refused = read(long).unwrap_err();
    assert!(refused.message().contains("300 bytes") && refused.message().contains("parameters have 20001 bytes"));
}

#[test]
fn source_needs_the_ability() {
    let with = |r#type, abilities| {
        let request = CreateVolumeRequest {
            volume_content_source: Some(VolumeContentSource { r#type }),
            ..request()
        };
        new_volume(request, &driver(), abilities).map(|(new, _)| new.source)
    };
    let snapshot_id = "s".to_owned();
    let snapshot = Some(Source::Snapshot(SnapshotSource { snapshot_id }));
    assert_eq!(
        with(snapshot.clone(), abilities()).unwrap(),
        Some(VolumeSource::Snapshot("s".into()))
    );
    assert!(with(snapshot, VolumeAbilities::default()).is_err());
    let volume_id = "v".to_owned();
    let volume = Some(Source::Volume(WireVolumeSource { volume_id }));
    assert_eq!(
        with(volume, abilities()).unwrap(),
        Some(VolumeSource::Volume("v".into()))
    );
    assert!(with(None, abilities()).is_err());
}

#[test]
fn secrets_are_bounded_beside_everything_else_and_never_repeated() {
    let secrets = |pairs: Vec<(&str, String)>| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let odd = CreateVolumeRequest {
        name: String::new(),
        secrets: secrets(vec![
            ("passphrase", "hunter2-".repeat(1000)),
            ("a/b", "hunter2-".into()),
        ]),
        ..request()
    };
    let refused = read(odd).unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    assert_eq!(
        refused.message(),
        "the name is missing; the key \"a/b\" of a secret has other characters than letters, digits, '.', '_' and '-'; \
         the secret \"passphrase\" has 8000 bytes, at most 4096 are allowed"
    );
    let good = CreateVolumeRequest {
        secrets: secrets(vec![("passphrase", "hunter2".into())]),
        ..request()
    };
    let (_, read) = new_volume(good, &driver(), abilities()).unwrap();
    assert_eq!(read.expose().collect::<Vec<_>>(), [("passphrase", "hunter2")]);
}
