use super::*;
use crate::volumes::testing::{SmallEbs, disk as small, token, vol};

fn range(gib: u64) -> SizeRange {
    SizeRange {
        at_least: gib * GIB,
        at_most: None,
    }
}

fn expand(cloud: &SmallEbs, gib: u64) -> Result<Expanded, Failure> {
    cloud.aws().expand_volume(&vol(1), range(gib), None)
}

fn modify(cloud: &SmallEbs, parameters: &[(&str, &str)]) -> Result<(), Failure> {
    let parameters: Vec<Pair> = parameters.iter().map(|(key, value)| Pair::new(*key, *value)).collect();
    cloud.aws().modify_volume(&vol(1), &parameters, None)
}

#[test]
fn volume_grows_and_one_that_is_large_enough_stays() {
    let cloud = SmallEbs::with(vec![small(1)]);
    let grown = expand(&cloud, 6).unwrap();
    assert_eq!((grown.size, grown.on_node), (6 * GIB, true));
    assert_eq!(expand(&cloud, 5).unwrap().size, 6 * GIB);
    assert_eq!(cloud.count("ModifyVolume"), 1);
    assert_eq!(cloud.sent("ModifyVolume", "Iops"), None);
}

#[test]
fn growth_is_waited_for_and_asked_for_once() {
    let cloud = SmallEbs::with(vec![small(1)]);
    cloud.begins("modifying");
    for _ in 0..2 {
        token(expand(&cloud, 6));
    }
    // EC2 may show the new size before it is there, and the old one after.
    cloud.change(&vol(1), |disk| disk.gib = 6);
    token(expand(&cloud, 6));
    cloud.change(&vol(1), |disk| {
        (disk.gib, disk.modification) = (4, Some(("optimizing", 6)))
    });
    token(expand(&cloud, 6));
    cloud.change(&vol(1), |disk| disk.gib = 6);
    assert_eq!(expand(&cloud, 6).unwrap().size, 6 * GIB);
    assert_eq!(cloud.count("ModifyVolume"), 1);
}

#[test]
fn failed_modification_is_begun_again_and_a_smaller_one_goes_on() {
    for latest in [("failed", 6), ("completed", 5)] {
        let cloud = SmallEbs::with(vec![small(1)]);
        cloud.change(&vol(1), |disk| disk.modification = Some(latest));
        assert_eq!(expand(&cloud, 6).unwrap().size, 6 * GIB, "{latest:?}");
    }
}

#[test]
fn growth_has_the_bounds_of_the_type_and_what_ec2_says() {
    let cloud = SmallEbs::with(vec![small(1)]);
    cloud.change(&vol(1), |disk| disk.kind = "standard".into());
    let refused = expand(&cloud, 2_000).unwrap_err();
    assert_eq!(refused.kind, FailureKind::OutOfRange);
    assert!(
        refused.message.contains("1024") && refused.message.contains("2000"),
        "{refused:?}"
    );
    let missing = cloud.aws().expand_volume("vol-1", range(6), None).unwrap_err();
    assert_eq!(missing.kind, FailureKind::NotFound);
    for code in ["IncorrectModificationState", "VolumeModificationRateExceeded"] {
        cloud.refuse("ModifyVolume", code, "later");
        assert_eq!(expand(&cloud, 6).unwrap_err().kind, FailureKind::Conflict, "{code}");
    }
    // A newer type of EBS has bounds that are not known here.
    cloud.change(&vol(1), |disk| disk.kind = "gp9".into());
    assert_eq!(expand(&cloud, 99_999).unwrap().size, 99_999 * GIB);
}

#[test]
fn operations_grow_with_the_volume_where_its_class_says_so() {
    let cloud = SmallEbs::with(vec![small(1)]);
    cloud.change(&vol(1), |disk| {
        (disk.kind, disk.iops) = ("io2".into(), "400".into());
        disk.tags.push((iops_per_gib_key(), "100".into()));
    });
    expand(&cloud, 6).unwrap();
    assert_eq!(cloud.sent("ModifyVolume", "Iops"), None);
    cloud.change(&vol(1), |disk| disk.tags.push((grow_key(), "true".into())));
    // The small cloud keeps the old number, which EC2 would not: it is waited for.
    token(expand(&cloud, 8));
    assert_eq!(cloud.sent("ModifyVolume", "Iops").as_deref(), Some("800"));
}

#[test]
fn class_changes_what_it_names_and_nothing_that_is_so() {
    let cloud = SmallEbs::with(vec![small(1)]);
    assert_eq!(modify(&cloud, &[("type", "gp3"), ("iops", "3000")]), Ok(()));
    assert_eq!(modify(&cloud, &[]), Ok(()));
    assert_eq!(cloud.count("ModifyVolume"), 0);
    cloud.begins("modifying");
    cloud.change(&vol(1), |disk| disk.gib = 16);
    token(modify(&cloud, &[("iops", "8000"), ("throughput", "500")]));
    for (field, value) in [
        ("Iops", Some("8000")),
        ("Throughput", Some("500")),
        ("Size", None),
        ("VolumeType", None),
    ] {
        assert_eq!(cloud.sent("ModifyVolume", field).as_deref(), value, "{field}");
    }
}

#[test]
fn wrong_change_is_named_and_not_asked_for() {
    let cloud = SmallEbs::with(vec![small(1)]);
    for (parameters, kind, part) in [
        (&[("speed", "1")][..], FailureKind::Invalid, "speed"),
        (&[("type", "gp9")], FailureKind::Invalid, "gp9"),
        (&[("type", "st1")], FailureKind::OutOfRange, "125"),
        (&[("throughput", "2000")], FailureKind::OutOfRange, "8000"),
        (&[("type", "gp2"), ("iops", "100")], FailureKind::Invalid, "gp2"),
    ] {
        let refused = modify(&cloud, parameters).unwrap_err();
        assert_eq!(refused.kind, kind, "{refused:?}");
        assert!(refused.message.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(cloud.count("ModifyVolume"), 0);
}

#[test]
fn recorded_modification_is_read() {
    let text = cloudwit_guest_sdk::testing::recorded(include_str!(
        "../../../recorded/volumes/describe_volumes_modifications.xml"
    ));
    let answer = Element::parse(text).unwrap();
    let read = Modification::read(answer.at(&["volumeModificationSet", "item"]).unwrap());
    assert_eq!((read.state.as_str(), read.gib), ("completed", Some(6)));
}
