use super::*;
use crate::volumes::testing::{SmallEbs, disk, vol};

fn wanted(name: &str, volume: &str) -> NewSnapshot {
    NewSnapshot {
        name: name.into(),
        volume: volume.into(),
        parameters: vec![Pair::new("tagSpecification_1", "of={{ .VolumeSnapshotName }}")],
        tags: vec![Pair::new("kubernetes.io/created-for/volumesnapshot/name", "daily")],
    }
}

fn create(cloud: &SmallEbs, new: &NewSnapshot) -> Result<Snapshot, Failure> {
    cloud.aws().create_snapshot(new, None)
}

fn snap(number: u32) -> String {
    format!("snap-{number:017x}")
}

#[test]
fn snapshot_is_made_once_and_is_ready_when_ec2_has_copied_it() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    cloud.begins("pending");
    let first = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    assert_eq!(
        (first.ready, first.size, first.created),
        (false, 4 * GIB, 1_795_570_999_000)
    );
    let again = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    assert_eq!(
        (again.id.as_str(), cloud.count("CreateSnapshot")),
        (first.id.as_str(), 1)
    );
    cloud.state.borrow_mut().snapshots[0].2 = "completed";
    let found = cloud
        .aws()
        .get_snapshots(std::slice::from_ref(&first.id))
        .unwrap()
        .remove(0);
    assert!(found.unwrap().unwrap().ready);
    let tags = cloud.state.borrow().snapshots[0].3.clone();
    for tag in [
        ("CSIVolumeSnapshotName", "snap"),
        ("of", "daily"),
        ("kubernetes.io/cluster/test", "owned"),
    ] {
        assert!(tags.contains(&(tag.0.into(), tag.1.into())), "{tag:?}: {tags:?}");
    }
}

#[test]
fn snapshot_name_conflict_names_both_volumes() {
    let cloud = SmallEbs::with(vec![disk(1), disk(2)]);
    create(&cloud, &wanted("snap", &vol(1))).unwrap();
    let refused = create(&cloud, &wanted("snap", &vol(2))).unwrap_err();
    assert_eq!(refused.kind, FailureKind::AlreadyExists);
    assert!(
        refused.message.contains(&vol(1)) && refused.message.contains(&vol(2)),
        "{refused:?}"
    );
}

#[test]
fn failed_snapshot_is_cleared_away_and_another_is_made() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    let failed = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    cloud.state.borrow_mut().snapshots[0].2 = "error";
    let told = cloud
        .aws()
        .get_snapshots(std::slice::from_ref(&failed.id))
        .unwrap()
        .remove(0);
    assert_eq!(told.unwrap_err().kind, FailureKind::Other);
    let made = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    assert_ne!(made.id, failed.id);
    assert_eq!(cloud.state.borrow().snapshots.len(), 1);
}

#[test]
fn snapshots_keep_order_when_ec2_hides_the_missing_one() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    let made = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    let ids = [snap(99), made.id.clone(), "other".into(), snap(98), made.id.clone()];
    let found: Vec<Option<String>> = cloud
        .aws()
        .get_snapshots(&ids)
        .unwrap()
        .into_iter()
        .map(|found| found.unwrap().map(|snapshot| snapshot.id))
        .collect();
    let id = Some(made.id);
    assert_eq!(found, [None, id.clone(), None, None, id]);
}

#[test]
fn lists_are_of_the_cluster_or_of_one_volume() {
    let cloud = SmallEbs::with(vec![disk(1), disk(2)]);
    let made = create(&cloud, &wanted("snap", &vol(1))).unwrap();
    cloud
        .state
        .borrow_mut()
        .snapshots
        .push((snap(50), vol(2), "completed", Vec::new()));
    let list = |volume: Option<&str>| {
        let page = cloud.aws().list_snapshots(volume, None, 10).unwrap();
        assert_eq!(page.next, None);
        page.snapshots.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(list(None), [made.id.as_str()]);
    assert_eq!(list(Some(&vol(1))), [made.id.as_str()]);
    assert_eq!(list(Some(&vol(2))), [snap(50)], "of somebody else's making");
    assert_eq!(list(Some("other")), [""; 0]);
    assert_eq!(cloud.sent("DescribeSnapshots", "MaxResults").as_deref(), Some("10"));
}

#[test]
fn deleted_is_what_does_not_exist_and_what_is_used_is_not() {
    let cloud = SmallEbs::with(vec![disk(1)]);
    let delete = |id: &str| cloud.aws().delete_snapshot(id, None);
    assert_eq!(delete("other"), Ok(()));
    cloud.refuse("DeleteSnapshot", "InvalidSnapshot.NotFound", "");
    assert_eq!(delete(&snap(9)), Ok(()));
    cloud.refuse("DeleteSnapshot", "InvalidSnapshot.InUse", "of an image");
    assert_eq!(delete(&snap(9)).unwrap_err().kind, FailureKind::FailedPrecondition);
}

#[test]
fn snapshot_of_no_volume_and_an_unknown_parameter_are_refused() {
    let cloud = SmallEbs::with(vec![]);
    assert_eq!(
        create(&cloud, &wanted("snap", &vol(1))).unwrap_err().kind,
        FailureKind::NotFound
    );
    assert_eq!(
        create(&cloud, &wanted("snap", "other")).unwrap_err().kind,
        FailureKind::NotFound
    );
    let mut odd = wanted("snap", &vol(1));
    odd.parameters.push(Pair::new("lockMode", "governance"));
    let refused = create(&cloud, &odd).unwrap_err();
    assert!(
        refused.kind == FailureKind::Invalid && refused.message.contains("lockMode"),
        "{refused:?}"
    );
}

#[test]
fn recorded_snapshot_is_read() {
    let text = cloudwit_guest_sdk::testing::recorded(include_str!("../../../recorded/volumes/describe_snapshots.xml"));
    let answer = Element::parse(text).unwrap();
    let read = DiskSnapshot::read(answer.at(&["snapshotSet", "item"]).unwrap()).unwrap();
    let snapshot = read.snapshot(None);
    assert!(
        snapshot.ready && snapshot.size == 4 * GIB && snapshot.id.starts_with("snap-"),
        "{snapshot:?}"
    );
}
