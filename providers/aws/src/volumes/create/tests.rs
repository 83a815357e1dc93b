use std::collections::BTreeSet;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::ZONE_KEY;
use crate::volumes::disk::GIB;
use crate::volumes::testing::{SmallDisk, SmallEbs, disk, token, vol, volume_use, wanted};

fn named(number: u32, name: &str) -> SmallDisk {
    let mut disk = disk(number);
    disk.tags.push(("CSIVolumeName".into(), name.into()));
    disk
}

fn create(cloud: &SmallEbs, new: &NewVolume) -> Result<Volume, Failure> {
    cloud.aws().create_volume(new, None)
}

fn with(parameters: &[(&str, &str)]) -> NewVolume {
    NewVolume {
        parameters: parameters.iter().map(|(key, value)| Pair::new(*key, *value)).collect(),
        ..wanted("pvc-1")
    }
}

#[test]
fn volume_is_created_with_upstream_and_cluster_tags() {
    let cloud = SmallEbs::with(vec![]);
    let new = with(&[
        ("tagSpecification_1", "team={{ .PVCName }}"),
        ("encrypted", "true"),
        ("kmsKeyId", "alias/k"),
    ]);
    let volume = create(&cloud, &new).unwrap();
    assert_eq!(volume.size, 4 * GIB);
    assert_eq!(volume.topology, [Topology::of(ZONE_KEY, "us-east-1a")]);
    let tags = cloud.state.borrow().disks[0].tags.clone();
    let expected = [
        ("CSIVolumeName", "pvc-1"),
        ("ebs.csi.aws.com/cluster", "true"),
        ("ebs.csi.aws.com/cluster-name", "test"),
        ("kubernetes.io/cluster/test", "owned"),
        ("kubernetes.io/created-for/pvc/name", "data"),
        ("team", "data"),
        ("Name", "test-dynamic-pvc-1"),
    ];
    assert_eq!(tags, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    for (field, value) in [("Encrypted", "true"), ("KmsKeyId", "alias/k"), ("VolumeType", "gp3")] {
        assert_eq!(cloud.sent("CreateVolume", field).as_deref(), Some(value), "{field}");
    }
    assert_eq!(cloud.sent("CreateVolume", "ClientToken").unwrap().len(), 64);
}

#[test]
fn volume_in_creation_is_found_by_name_with_or_without_token() {
    let cloud = SmallEbs::with(vec![]);
    cloud.begins("creating");
    let first = token(create(&cloud, &wanted("pvc-1")));
    for begun in [Some(first.as_str()), None] {
        token(cloud.aws().create_volume(&wanted("pvc-1"), begun));
    }
    assert_eq!(cloud.count("CreateVolume"), 1);
    let id = cloud.state.borrow().disks[0].id.clone();
    cloud.change(&id, |disk| disk.state = "available");
    assert_eq!(create(&cloud, &wanted("pvc-1")).unwrap().id, id);
}

#[test]
fn request_that_is_repeated_has_the_same_client_token() {
    let cloud = SmallEbs::with(vec![]);
    let mut tokens = Vec::new();
    for name in ["pvc-1", "pvc-1", "pvc-2"] {
        cloud.refuse("CreateVolume", "InternalError", "try again");
        create(&cloud, &wanted(name)).unwrap_err();
        tokens.push(cloud.sent("CreateVolume", "ClientToken").unwrap());
    }
    assert_eq!(tokens[0], tokens[1]);
    assert_ne!(tokens[0], tokens[2]);
}

#[test]
fn volume_of_same_name_must_match_and_both_are_named() {
    type Change = fn(&mut SmallDisk);
    let changes: [(Change, &[&str]); 6] = [
        (|_| {}, &[]),
        (|disk| disk.gib = 2, &["2 GiB", "at least 4 GiB"]),
        (|disk| disk.kind = "gp2".into(), &["gp2", "gp3"]),
        (
            |disk| disk.zone = "us-east-1c".into(),
            &["us-east-1c", "us-east-1b or us-east-1a"],
        ),
        (|disk| disk.snapshot = "snap-1".into(), &["snap-1", "no snapshot"]),
        (
            |disk| (disk.gib, disk.zone) = (2, "us-east-1c".into()),
            &["2 GiB", "us-east-1c"],
        ),
    ];
    for (change, parts) in changes {
        let mut there = named(1, "pvc-1");
        change(&mut there);
        let cloud = SmallEbs::with(vec![there]);
        match create(&cloud, &wanted("pvc-1")) {
            Ok(volume) => assert!(parts.is_empty() && volume.id == vol(1), "{parts:?}"),
            Err(refused) => {
                assert_eq!(refused.kind, FailureKind::AlreadyExists);
                for part in parts.iter().chain(&[vol(1).as_str(), "pvc-1"]) {
                    assert!(refused.message.contains(part), "{part}: {refused:?}");
                }
            }
        }
        assert_eq!(cloud.count("CreateVolume"), 0);
    }
}

#[test]
fn foreign_volume_is_ignored_and_untagged_one_is_ours() {
    let mut foreign = named(1, "pvc-1");
    foreign.tags[0].0 = "kubernetes.io/cluster/other".into();
    let mut untagged = named(2, "pvc-1");
    untagged.tags.remove(0);
    let cloud = SmallEbs::with(vec![foreign, untagged]);
    assert_eq!(create(&cloud, &wanted("pvc-1")).unwrap().id, vol(2));
}

#[test]
fn two_volumes_of_a_name_are_both_named_and_no_third_is_made() {
    let cloud = SmallEbs::with(vec![named(1, "pvc-1"), named(2, "pvc-1")]);
    let refused = create(&cloud, &wanted("pvc-1")).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Conflict);
    assert!(
        refused.message.contains(&vol(1)) && refused.message.contains(&vol(2)),
        "{refused:?}"
    );
    assert_eq!(cloud.count("CreateVolume"), 0);
}

#[test]
fn failed_creation_is_cleared_and_retried_with_other_token() {
    let mut failed = named(1, "pvc-1");
    failed.state = "error";
    let cloud = SmallEbs::with(vec![failed]);
    let refused = create(&cloud, &wanted("pvc-1")).unwrap_err();
    assert!(
        refused.kind == FailureKind::Other && refused.message.contains("KMS"),
        "{refused:?}"
    );
    assert!(cloud.state.borrow().disks.is_empty());
    cloud.refuse("CreateVolume", "IdempotentParameterMismatch", "burned");
    let next = token(create(&cloud, &wanted("pvc-1")));
    let burned = cloud.sent("CreateVolume", "ClientToken");
    assert_eq!(next, "2");
    cloud.aws().create_volume(&wanted("pvc-1"), Some(&next)).unwrap();
    assert_ne!(cloud.sent("CreateVolume", "ClientToken"), burned);
}

#[test]
fn full_zone_is_passed_over_and_when_all_are_it_is_exhausted() {
    let cloud = SmallEbs::with(vec![]);
    cloud.refuse("CreateVolume", "InsufficientVolumeCapacity", "full");
    let volume = create(&cloud, &wanted("pvc-1")).unwrap();
    assert_eq!(volume.topology[0].get(ZONE_KEY), Some("us-east-1b"));
    for code in ["InsufficientVolumeCapacity", "VolumeTypeNotAvailableInZone"] {
        cloud.refuse("CreateVolume", code, "full");
    }
    assert_eq!(
        create(&cloud, &wanted("pvc-2")).unwrap_err().kind,
        FailureKind::Exhausted
    );
    cloud.refuse("CreateVolume", "VolumeLimitExceeded", "quota");
    assert_eq!(
        create(&cloud, &wanted("pvc-3")).unwrap_err().kind,
        FailureKind::Exhausted
    );
}

/// The zones of twelve volumes that may be anywhere.
fn zones_of_twelve(cloud: &SmallEbs) -> BTreeSet<String> {
    let one = |number: u32| {
        let new = NewVolume {
            allowed: vec![],
            preferred: vec![],
            ..wanted(&format!("pvc-{number}"))
        };
        let volume = create(cloud, &new).unwrap();
        volume.topology[0].get(ZONE_KEY).map(str::to_owned)
    };
    (0..12).filter_map(one).collect()
}

#[test]
fn unplaced_volume_uses_configured_zone_else_its_name() {
    let cloud = SmallEbs::with(vec![]);
    assert_eq!(zones_of_twelve(&cloud).len(), 3);
    let cloud = SmallEbs::with(vec![]);
    cloud
        .host
        .config("[Global]\nZone = us-east-1b\nKubernetesClusterID = test\n");
    assert_eq!(zones_of_twelve(&cloud), BTreeSet::from(["us-east-1b".to_owned()]));
}

#[test]
fn what_ebs_does_not_allow_is_refused_before_anything_is_asked() {
    let cloud = SmallEbs::with(vec![]);
    let shared = NewVolume {
        uses: vec![volume_use(AccessMode::ManyNodes)],
        ..wanted("pvc-1")
    };
    let large = |kind| NewVolume {
        size: SizeRange {
            at_least: 20_000 * GIB,
            at_most: None,
        },
        ..with(&[("type", kind)])
    };
    let elsewhere = NewVolume {
        allowed: vec![Topology::of("rack", "7")],
        ..wanted("pvc-1")
    };
    let copy = |source| NewVolume {
        source: Some(source),
        ..wanted("pvc-1")
    };
    use FailureKind::{Invalid, NotFound, OutOfRange};
    for (new, kind, part) in [
        (with(&[("tpye", "gp3")]), Invalid, "tpye"),
        (with(&[("type", "io2")]), Invalid, "iops"),
        (with(&[("throughput", "5000")]), OutOfRange, "throughput"),
        (shared, Invalid, "gp3"),
        (large("gp2"), OutOfRange, "gp2"),
        (elsewhere, Invalid, ZONE_KEY),
        (copy(VolumeSource::Volume(vol(1))), Invalid, "snapshot"),
        (copy(VolumeSource::Snapshot("other".into())), NotFound, "other"),
    ] {
        let refused = create(&cloud, &new).unwrap_err();
        assert_eq!(refused.kind, kind, "{refused:?}");
        assert!(refused.message.contains(part), "{part}: {refused:?}");
    }
    assert!(cloud.host.requests().is_empty());
}

#[test]
fn snapshot_and_shared_volumes_are_requested_as_such() {
    let cloud = SmallEbs::with(vec![]);
    let id = format!("snap-{:017x}", 9);
    let new = NewVolume {
        source: Some(VolumeSource::Snapshot(id.clone())),
        uses: vec![volume_use(AccessMode::ManyNodes)],
        ..with(&[
            ("type", "io2"),
            ("iopsPerGB", "100"),
            ("volumeInitializationRate", "200"),
            ("allowAutoIOPSIncreaseOnModify", "true"),
        ])
    };
    let volume = create(&cloud, &new).unwrap();
    assert_eq!(volume.source, Some(VolumeSource::Snapshot(id.clone())));
    for (field, value) in [
        ("SnapshotId", id.as_str()),
        ("MultiAttachEnabled", "true"),
        ("Iops", "400"),
        ("VolumeInitializationRate", "200"),
    ] {
        assert_eq!(cloud.sent("CreateVolume", field).as_deref(), Some(value), "{field}");
    }
    let tags = cloud.state.borrow().disks[0].tags.clone();
    assert!(
        tags.contains(&("ebs.csi.aws.com/IOPSPerGb".into(), "100".into())),
        "{tags:?}"
    );
    assert!(
        tags.contains(&("ebs.csi.aws.com/AllowAutoIOPSIncreaseOnModify".into(), "true".into())),
        "{tags:?}"
    );
}
