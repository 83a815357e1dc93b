//! Reads of volumes: by id, in lists, and where they are.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::recorded;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use super::disk::Disk;
use super::testing::{SmallEbs, disk, from, instance, vol};
use super::{DRIVER, ZONE_KEY, ZONE_KEYS};
use crate::Aws;

#[test]
fn driver_is_upstreams() {
    let driver = Aws::volume_driver(None);
    assert_eq!(driver.name, DRIVER);
    assert_eq!(driver.topology_keys, ZONE_KEYS);
    assert!(!driver.features.contains(&Feature::ReadOnly) && !driver.features.contains(&Feature::Clone));
}

#[test]
fn recorded_volumes_are_read() {
    let answer = Element::parse(recorded(include_str!("../../recorded/volumes/describe_volumes.xml"))).unwrap();
    let disks: Vec<Disk> = answer
        .all(&["volumeSet", "item"])
        .map(|item| Disk::read(item).unwrap())
        .collect();
    let [usual, shared] = disks.as_slice() else {
        panic!("{disks:?}")
    };
    let volume = usual.volume("as-asked");
    assert_eq!(
        (volume.id.as_str(), volume.size, volume.source),
        ("as-asked", 4 << 30, None)
    );
    assert_eq!(volume.topology, [Topology::of(ZONE_KEY, "us-east-1a")]);
    assert!(volume.attachments[0].node_id.starts_with("i-"));
    assert_eq!((usual.iops, shared.iops, shared.shared), (Some(3_000), Some(400), true));
    let source = shared.volume("x").source;
    assert!(
        matches!(&source, Some(VolumeSource::Snapshot(id)) if id.starts_with("snap-")),
        "{source:?}"
    );
}

#[test]
fn volumes_keep_order_and_missing_one_costs_itself() {
    let mut going = disk(3);
    going.state = "deleting";
    let cloud = SmallEbs::with(vec![disk(1), disk(2), going]);
    let handle = format!("aws://us-east-1a/{}", vol(1));
    let ids = [vol(2), vol(9), handle.clone(), "other".into(), vol(3), vol(1)];
    let found: Vec<Option<String>> = cloud
        .aws()
        .get_volumes(&ids)
        .unwrap()
        .into_iter()
        .map(|found| found.unwrap().map(|volume| volume.id))
        .collect();
    assert_eq!(found, [Some(vol(2)), None, Some(handle), None, None, Some(vol(1))]);
    assert_eq!(cloud.count("DescribeVolumes"), 2);
}

#[test]
fn absence_is_only_what_ec2_says_of_that_id() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    for code in ["InternalError", "RequestLimitExceeded", "UnauthorizedOperation"] {
        cloud.refuse("DescribeVolumes", code, "not now");
        assert!(cloud.aws().get_volumes(&[vol(1)]).is_err(), "{code}");
    }
    // Refused for an id that was not requested: each is requested alone.
    cloud.refuse(
        "DescribeVolumes",
        "InvalidVolume.NotFound",
        "The volume 'vol-other' does not exist.",
    );
    let found = cloud.aws().get_volumes(&[vol(1), vol(2)]).unwrap();
    assert!(matches!(&found[..], [Ok(Some(_)), Ok(None)]), "{found:?}");
}

#[test]
fn volume_is_deleted_once_and_not_while_it_is_attached() {
    let mut attached = disk(2);
    attached
        .attachments
        .push((instance(1), "/dev/xvdaa".into(), "attached"));
    let cloud = SmallEbs::with(vec![disk(1), attached]);
    let delete = |id: &str| cloud.aws().delete_volume(id, None);
    for id in [vol(1), vol(1), "other".into()] {
        assert_eq!(delete(&id), Ok(()));
    }
    assert_eq!(delete(&vol(2)).unwrap_err().kind, FailureKind::FailedPrecondition);
    let moved = cloud.aws().detach_volumes(&[from(&vol(2), &instance(1))]).unwrap();
    assert!(moved[0].is_err());
    assert_eq!(delete(&format!("aws://us-east-1a/{}", vol(2))), Ok(()));
    assert!(cloud.state.borrow().disks.is_empty());
}

#[test]
fn list_has_the_clusters_volumes_that_are_there() {
    let mut foreign = disk(2);
    foreign.tags.clear();
    let mut going = disk(3);
    going.state = "deleting";
    let cloud = SmallEbs::with(vec![disk(1), foreign, going]);
    let page = cloud.aws().list_volumes(None, 1).unwrap();
    assert_eq!(page.volumes[0].id, vol(1));
    assert_eq!(cloud.sent("DescribeVolumes", "MaxResults").as_deref(), Some("5"));
    let page = cloud.aws().list_volumes(page.next.as_deref(), 1).unwrap();
    assert!(page.volumes.is_empty() && page.next.is_none(), "{page:?}");
    for token in ["nonsense", "0.5.old"] {
        cloud.refuse("DescribeVolumes", "InvalidNextToken", "too old");
        let refused = cloud.aws().list_volumes(Some(token), 1).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Aborted, "{token}");
    }
}

#[test]
fn labels_say_zone_and_region_of_disks_that_exist() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    let volume = |id: &str| InTreeVolume {
        source: InTreeSource::AwsElasticBlockStore,
        id: id.into(),
        zone: None,
        extra: Vec::new(),
    };
    let asked = [vol(1), format!("aws://us-east-1b/{}", vol(1)), vol(9), "other".into()].map(|id| volume(&id));
    let labels = cloud.aws().volume_labels(&asked).unwrap();
    let expected = vec![
        Pair::new(ZONE_KEY, "us-east-1a"),
        Pair::new("topology.kubernetes.io/region", "us-east-1"),
    ];
    assert_eq!(labels[..2], [Ok(expected.clone()), Ok(expected)]);
    for missing in &labels[2..] {
        assert_eq!(missing.as_ref().unwrap_err().kind, FailureKind::NotFound);
    }
    assert_eq!(Aws::label_sources(None), [InTreeSource::AwsElasticBlockStore]);
}
