use super::*;

fn pairs(parameters: &[(&str, &str)]) -> Vec<Pair> {
    parameters.iter().map(|(key, value)| Pair::new(*key, *value)).collect()
}

fn class(parameters: &[(&str, &str)]) -> Result<Class, Failure> {
    Class::read(&pairs(parameters), &[], &[])
}

#[test]
fn names_and_types_are_taken_in_any_case_as_upstream_takes_them() {
    let read = class(&[
        ("TYPE", "IO2"),
        ("iopspergb", "50"),
        ("KMSKeyID", "alias/k"),
        ("fsType", "xfs"),
    ])
    .unwrap();
    assert_eq!((read.kind.name, read.iops), ("io2", Some(WantedIops::PerGib(50))));
    assert_eq!((read.encrypted, read.key.as_str()), (Some(true), "alias/k"));
    assert_eq!(class(&[]).unwrap().kind.name, "gp3");
}

#[test]
fn wrong_parameter_is_named() {
    for (parameters, named) in [
        (&[("tpye", "gp3")][..], "tpye"),
        (&[("type", "gp9")], "gp9"),
        (&[("iops", "many")], "iops"),
        (&[("iops", "0")], "iops"),
        (&[("iopsPerGB", "-1")], "iopsPerGB"),
        (&[("iops", "3000"), ("iopsPerGB", "3")], "iopsPerGB"),
        (&[("throughput", "1.5")], "throughput"),
        (&[("encrypted", "yes")], "encrypted"),
        (&[("encrypted", "false"), ("kmsKeyId", "k")], "kmsKeyId"),
        (&[("kmsKeyId", "arn:aws:iam::123456789012:role/x")], "kmsKeyId"),
        (&[("kmsKeyId", "arn:aws:kms")], "kmsKeyId"),
        (&[("blockSize", "4 k")], "blockSize"),
        (&[("ext4ClusterSize", "16384")], "ext4BigAlloc"),
        (
            &[("blockAttachUntilInitialized", "true")],
            "blockAttachUntilInitialized",
        ),
        (&[("iops", "1"), ("IOPS", "2")], "twice"),
        (&[("tagSpecification_1", "x")], "tagSpecification_1"),
    ] {
        let refused = class(parameters).unwrap_err();
        assert_eq!(refused.kind, FailureKind::Invalid, "{refused:?}");
        assert!(refused.message.contains(named), "{named}: {refused:?}");
    }
}

#[test]
fn what_can_be_changed_later_counts_before_the_class() {
    let read = Class::read(
        &pairs(&[("type", "gp2"), ("iopsPerGB", "3")]),
        &pairs(&[("type", "gp3"), ("iops", "4000"), ("throughput", "200")]),
        &[],
    )
    .unwrap();
    assert_eq!(read.kind.name, "gp3");
    assert_eq!((read.iops, read.throughput), (Some(WantedIops::Total(4000)), Some(200)));
    let older = Change::read(&pairs(&[("volumeType", "io2")])).unwrap();
    assert_eq!(older.kind.unwrap().name, "io2");
    let refused = Change::read(&pairs(&[("encrypted", "true")])).unwrap_err();
    assert!(refused.message.contains("encrypted"), "{refused:?}");
}

#[test]
fn operations_follow_size_and_type() {
    let of = |parameters: &[(&str, &str)], gib| class(parameters).unwrap().iops_of(gib).map_err(|refused| refused.kind);
    assert_eq!(of(&[], 100), Ok(None));
    assert_eq!(of(&[("iopsPerGB", "50"), ("type", "io1")], 10), Ok(Some(500)));
    assert_eq!(
        of(&[("iopsPerGB", "1"), ("type", "io1")], 10),
        Err(FailureKind::OutOfRange)
    );
    let raised = [
        ("iopsPerGB", "1"),
        ("type", "io1"),
        ("allowAutoIOPSPerGBIncrease", "true"),
    ];
    assert_eq!(of(&raised, 10), Ok(Some(100)));
    assert_eq!(of(&[("type", "io2")], 10), Err(FailureKind::Invalid));
    assert_eq!(of(&[("type", "st1"), ("iops", "500")], 200), Err(FailureKind::Invalid));
}

#[test]
fn formatting_reaches_the_plugin_on_the_machine() {
    let read = class(&[
        ("blockSize", "4096"),
        ("ext4BigAlloc", "True"),
        ("ext4ClusterSize", "16384"),
        ("ext4EncryptionSupport", "false"),
    ]);
    let expected = pairs(&[
        ("blocksize", "4096"),
        ("ext4bigalloc", "true"),
        ("ext4clustersize", "16384"),
    ]);
    assert_eq!(read.unwrap().context, expected);
}

#[test]
fn snapshot_class_has_tags_alone() {
    assert_eq!(check_snapshot_class(&pairs(&[("tagSpecification_1", "a=b")])), Ok(()));
    let refused = check_snapshot_class(&pairs(&[("fastSnapshotRestoreAvailabilityZones", "us-east-1a")])).unwrap_err();
    assert!(
        refused.message.contains("fastSnapshotRestoreAvailabilityZones"),
        "{refused:?}"
    );
}
