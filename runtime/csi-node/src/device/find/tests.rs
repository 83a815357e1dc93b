use super::*;

const UUID: &str = "0b8f4a5e-1d2c-4f3a-9e8d-7c6b5a493827";

/// A machine with one device of each kind.
fn devices() -> Vec<BlockDevice> {
    let device = |name: &str, serials: &[&str], wwns: &[&str]| BlockDevice {
        name: name.to_owned(),
        serials: serials.iter().map(|text| (*text).to_owned()).collect(),
        wwns: wwns.iter().map(|text| (*text).to_owned()).collect(),
        ..BlockDevice::default()
    };
    vec![
        device("vda", &[], &[]),
        device("vdb", &[&UUID[..20]], &[]),
        device("nvme1n1", &["vol0abcdef0123456789"], &["nvme.1d0f-766f6c"]),
        device(
            "sdb",
            &["6000c29a1b2c3d4e5f60718293a4b5c6"],
            &["naa.6000c29a1b2c3d4e5f60718293a4b5c6"],
        ),
        BlockDevice {
            texts: vec!["Google  PersistentDisk  disk-of-mine".to_owned()],
            lun: Some(2),
            ..device("sdc", &[], &["t10.Google"])
        },
        BlockDevice {
            lun: Some(3),
            ..device("sdd", &[], &[])
        },
        device("loop7", &["disk-1"], &[]),
    ]
}

fn hints(serials: &[&str], wwns: &[&str]) -> Hints {
    Hints {
        serials: serials.iter().map(|text| (*text).to_owned()).collect(),
        wwns: wwns.iter().map(|text| (*text).to_owned()).collect(),
        ..Hints::default()
    }
}

fn found(hints: &Hints, resolved: &Resolved) -> Result<(String, bool), NotFound> {
    find(hints, resolved, &devices()).map(|found| (found.device.name, found.proven))
}

#[test]
fn serials_and_names_prove_a_device() {
    let wwn = "0x6000c29a1b2c3d4e5f60718293a4b5c6";
    for (serial, wwns, expected) in [
        (Some("disk-1"), None, Some("loop7")),
        (Some(UUID), None, Some("vdb")),
        (Some("vol-0abcdef0123456789"), None, Some("nvme1n1")),
        (Some("vol0abcdef0123456789"), None, Some("nvme1n1")),
        (Some("6000C29a-1b2c-3d4e-5f60-718293a4b5c6"), None, Some("sdb")),
        (None, Some(wwn), Some("sdb")),
        (None, Some("wwn-0x6000C29A1B2C3D4E5F60718293A4B5C6"), Some("sdb")),
        // Not there.
        (Some("disk-11"), None, None),
        (Some("disk"), None, None),
        (Some("disk1"), None, None),
        (Some("vol-0abc"), None, None),
        (Some(&UUID[..19]), None, None),
        (None, Some("6000c29a"), None),
        (None, Some("Google"), None),
    ] {
        let hints = hints(serial.as_slice(), wwns.as_slice());
        let found = found(&hints, &Resolved::default());
        match expected {
            Some(name) => assert_eq!(found, Ok((name.to_owned(), true)), "{hints}"),
            None => assert_eq!(found, Err(NotFound::None(hints.to_string()))),
        }
    }
}

#[test]
fn two_devices_of_one_serial_are_refused() {
    let mut devices = devices();
    let twin = BlockDevice {
        name: "loop8".into(),
        ..devices[6].clone()
    };
    devices.push(twin);
    let refused = find(&hints(&["disk-1"], &[]), &Resolved::default(), &devices).unwrap_err();
    assert!(refused.to_string().contains("loop7, loop8"), "{refused}");
    // Two hints that mean two devices are no better.
    let refused = found(&hints(&["disk-1", UUID], &[]), &Resolved::default()).unwrap_err();
    assert!(matches!(refused, NotFound::Several { .. }), "{refused}");
}

#[test]
fn path_and_lun_find_a_device_and_prove_nothing() {
    let path = Resolved {
        paths: vec!["sdd".into()],
        ..Resolved::default()
    };
    let only_path = Hints {
        paths: vec!["/dev/sdd".into()],
        ..Hints::default()
    };
    assert_eq!(found(&only_path, &path), Ok(("sdd".into(), false)));
    let lun = Hints {
        luns: vec![3],
        ..Hints::default()
    };
    assert_eq!(found(&lun, &Resolved::default()), Ok(("sdd".into(), false)));
    // A serial that no device has is not replaced by a path.
    let both = Hints {
        serials: vec!["gone".into()],
        ..only_path
    };
    assert!(found(&both, &path).is_err());
}

#[test]
fn link_proves_a_device_with_the_same_serial() {
    for (link, target, proven) in [
        ("scsi-0Google_PersistentDisk_disk-of-mine", "sdc", true),
        ("google-disk-of-mine", "sdc", false),
        ("wwn-0x6000c29a1b2c3d4e5f60718293a4b5c6", "sdb", true),
        ("scsi-36000c29a1b2c3d4e5f60718293a4b5c6", "sdb", true),
        ("nvme-Amazon_Elastic_Block_Store_vol0abcdef0123456789", "nvme1n1", true),
        // Links of yesterday.
        ("nvme-Amazon_Elastic_Block_Store_vol0abcdef0123456780", "nvme1n1", false),
        ("wwn-0x6000c29a1b2c3d4e5f60718293a4b5c6", "sdd", false),
        // Too short to mean anything.
        ("virtio-disk-1", "loop7", false),
    ] {
        let resolved = Resolved {
            by_id: vec![(link.to_owned(), target.to_owned())],
            ..Resolved::default()
        };
        let hints = Hints {
            by_id: vec![link.to_owned()],
            ..Hints::default()
        };
        assert_eq!(found(&hints, &resolved), Ok((target.to_owned(), proven)), "{link}");
    }
}
