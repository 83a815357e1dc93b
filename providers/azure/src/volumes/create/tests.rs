use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::volumes::testing::{SmallCompute, ZONE, disk_id, kind, machine_id, token, wanted};
use crate::volumes::{GIB, ZONE_KEY};

fn create(cloud: &SmallCompute, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
    cloud.call().create_volume(new, token)
}

fn in_zones(name: &str, zones: &[&str]) -> NewVolume {
    let places: Vec<Topology> = zones.iter().map(|zone| Topology::of(ZONE_KEY, *zone)).collect();
    NewVolume {
        allowed: places.clone(),
        preferred: places,
        ..wanted(name)
    }
}

#[test]
fn disk_is_made_once_and_its_operation_is_waited_for() {
    let cloud = SmallCompute::new();
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(create(&cloud, &wanted("pvc-1"), None));
    assert_eq!(token(create(&cloud, &wanted("pvc-1"), Some(&begun))), begun);
    cloud.finish();
    let made = create(&cloud, &wanted("pvc-1"), Some(&begun)).unwrap();
    assert_eq!((made.id.as_str(), made.size), (disk_id("pvc-1").as_str(), 2 * GIB));
    assert_eq!(made.topology[0].get(ZONE_KEY), Some(ZONE));
    assert_eq!(
        create(&cloud, &wanted("pvc-1"), None).map(|again| again.id),
        Ok(made.id)
    );
    assert_eq!(cloud.changes(), [format!("PUT {}", disk_id("pvc-1"))]);
    assert_eq!(cloud.get(&disk_id("pvc-1"))["zones"], json!(["1"]));
}

#[test]
fn other_disk_of_the_name_already_exists_and_differences_are_named() {
    let cloud = SmallCompute::new();
    cloud.disk("pvc-1");
    let large = NewVolume {
        size: SizeRange {
            at_least: 9 * GIB,
            at_most: Some(10 * GIB),
        },
        ..wanted("pvc-1")
    };
    let premium = NewVolume {
        parameters: vec![Pair::new("skuName", "Premium_LRS")],
        ..wanted("pvc-1")
    };
    let restored = NewVolume {
        source: Some(VolumeSource::Volume(disk_id("pvc-2"))),
        ..wanted("pvc-1")
    };
    for (new, part) in [
        (large, "9 GiB and at most 10 GiB"),
        (premium, "Premium_LRS"),
        (restored, "disks/pvc-2"),
        (in_zones("pvc-1", &["westeurope-2"]), "westeurope-2"),
    ] {
        let refused = create(&cloud, &new, None).unwrap_err();
        assert!(
            refused.kind == FailureKind::AlreadyExists && refused.message.contains(part),
            "{refused:?}"
        );
    }
    assert!(cloud.changes().is_empty());
}

#[test]
fn full_zone_is_left_for_the_next_and_what_failed_is_deleted() {
    let cloud = SmallCompute::new();
    let new = in_zones("pvc-1", &["westeurope-1", "westeurope-2"]);
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(create(&cloud, &new, None));
    {
        let mut state = cloud.state.borrow_mut();
        state.is_slow = false;
        state.error = Some(("ZonalAllocationFailed", "no room"));
    }
    // The operation failed, and left something.
    cloud.disk("pvc-1");
    cloud.edit(&disk_id("pvc-1"), "/properties/provisioningState", json!("Failed"));
    let deleting = token(create(&cloud, &new, Some(&begun)));
    assert_eq!(cloud.changes()[1..], [format!("DELETE {}", disk_id("pvc-1"))]);
    cloud
        .state
        .borrow_mut()
        .resources
        .remove(&disk_id("pvc-1").to_ascii_lowercase());
    cloud.state.borrow_mut().error = None;
    let made = create(&cloud, &new, Some(&deleting)).unwrap();
    assert_eq!(made.topology[0].get(ZONE_KEY), Some("westeurope-2"));
}

#[test]
fn exhausted_says_that_nothing_is_left() {
    let cloud = SmallCompute::new();
    let new = in_zones("pvc-1", &["westeurope-1", "westeurope-2"]);
    cloud.state.borrow_mut().refusals = vec![("PUT", 409, "SkuNotAvailable", "not there")];
    let full = create(&cloud, &new, None).unwrap_err();
    assert!(
        full.kind == FailureKind::Exhausted && full.message.contains("not there"),
        "{full:?}"
    );
    assert_eq!(cloud.changes().len(), 2);
    cloud.state.borrow_mut().refusals = vec![("PUT", 409, "OperationNotAllowed", "it exceeds the quota of disks")];
    assert_eq!(kind(create(&cloud, &new, None)), FailureKind::Exhausted);
}

#[test]
fn creation_that_failed_is_reported_and_begun_anew() {
    let cloud = SmallCompute::new();
    cloud.disk("pvc-1");
    cloud.edit(&disk_id("pvc-1"), "/properties/provisioningState", json!("Failed"));
    // The deletion is done at once.
    let failed = create(&cloud, &wanted("pvc-1"), None).unwrap_err();
    assert!(
        failed.kind == FailureKind::Other && failed.message.contains("failed"),
        "{failed:?}"
    );
    create(&cloud, &wanted("pvc-1"), None).unwrap();
    // One that Kubernetes did not make, or that is in use, is not touched.
    for (pointer, value) in [("/tags", json!({})), ("/managedBy", json!(machine_id("one")))] {
        cloud.disk("pvc-2");
        cloud.edit(&disk_id("pvc-2"), "/properties/provisioningState", json!("Failed"));
        if pointer == "/managedBy" {
            let mut disk = cloud.get(&disk_id("pvc-2"));
            disk["managedBy"] = value;
            cloud.put(&disk_id("pvc-2"), disk);
        } else {
            cloud.edit(&disk_id("pvc-2"), pointer, value);
        }
        create(&cloud, &wanted("pvc-2"), None).unwrap();
    }
}

#[test]
fn places_without_zone_are_places() {
    let cloud = SmallCompute::new();
    let made = create(&cloud, &in_zones("pvc-1", &["", "0"]), None).unwrap();
    assert_eq!(made.topology[0].get(ZONE_KEY), Some(""));
    assert!(cloud.get(&disk_id("pvc-1")).get("zones").is_none());
    let anywhere = NewVolume {
        allowed: Vec::new(),
        ..wanted("pvc-2")
    };
    assert_eq!(
        create(&cloud, &anywhere, None).unwrap().topology[0].get(ZONE_KEY),
        Some("")
    );
    let copies = NewVolume {
        parameters: vec![Pair::new("skuName", "Premium_ZRS")],
        ..in_zones("pvc-3", &["westeurope-2"])
    };
    let zones = create(&cloud, &copies, None).unwrap().topology;
    let zones: Vec<_> = zones.iter().map(|place| place.get(ZONE_KEY).unwrap()).collect();
    assert_eq!(
        zones,
        ["westeurope-1", "westeurope-2", "westeurope-3", "westeurope-4", ""]
    );
    let elsewhere = NewVolume {
        allowed: vec![Topology::of("rack", "7")],
        ..wanted("pvc-4")
    };
    assert_eq!(kind(create(&cloud, &elsewhere, None)), FailureKind::Invalid);
    let usual = NewVolume {
        allowed: vec![Topology::of("topology.kubernetes.io/zone", "westeurope-3")],
        ..wanted("pvc-5")
    };
    assert_eq!(
        create(&cloud, &usual, None).unwrap().topology[0].get(ZONE_KEY),
        Some("westeurope-3")
    );
}

#[test]
fn copy_of_a_disk_is_in_its_zone_and_at_least_as_large() {
    let cloud = SmallCompute::new();
    let source = cloud.disk("source");
    cloud.edit(&source, "/properties/diskSizeGB", json!(7));
    let copy = NewVolume {
        source: Some(VolumeSource::Volume(source.clone())),
        ..in_zones("pvc-1", &["westeurope-2", ZONE])
    };
    let made = create(&cloud, &copy, None).unwrap();
    assert_eq!((made.size, made.topology[0].get(ZONE_KEY)), (7 * GIB, Some(ZONE)));
    assert_eq!(made.source, copy.source);
    let apart = NewVolume {
        source: copy.source.clone(),
        ..in_zones("pvc-2", &["westeurope-2"])
    };
    let refused = create(&cloud, &apart, None).unwrap_err();
    assert!(
        refused.kind == FailureKind::Exhausted && refused.message.contains(ZONE),
        "{refused:?}"
    );
    let small = NewVolume {
        size: SizeRange {
            at_least: GIB,
            at_most: Some(3 * GIB),
        },
        ..copy
    };
    let small = NewVolume {
        name: "pvc-3".into(),
        ..small
    };
    assert_eq!(kind(create(&cloud, &small, None)), FailureKind::OutOfRange);
    for source in [
        VolumeSource::Volume(disk_id("gone")),
        VolumeSource::Volume("no id".into()),
        VolumeSource::Snapshot(disk_id("source")),
        VolumeSource::Snapshot(disk_id("gone").replace("/disks/", "/snapshots/")),
    ] {
        let new = NewVolume {
            source: Some(source),
            ..wanted("pvc-4")
        };
        assert_eq!(kind(create(&cloud, &new, None)), FailureKind::NotFound, "{new:?}");
    }
}

#[test]
fn volumes_for_several_machines_need_a_class_for_them() {
    let cloud = SmallCompute::new();
    let shared = NewVolume {
        uses: vec![VolumeUse {
            block: true,
            fs_type: None,
            access: AccessMode::ManyNodes,
        }],
        ..wanted("pvc-1")
    };
    let refused = create(&cloud, &shared, None).unwrap_err();
    assert!(refused.message.contains("maxShares"), "{refused:?}");
    let shared = NewVolume {
        parameters: vec![Pair::new("maxShares", "2"), Pair::new("resourceGroup", "disks")],
        ..shared
    };
    let made = create(&cloud, &shared, None).unwrap();
    assert!(made.id.contains("/resourceGroups/disks/"), "{made:?}");
    assert_eq!(made.context, shared.parameters);
    assert_eq!(cloud.get(&made.id)["properties"]["maxShares"], 2);
}

#[test]
fn deleting_twice_is_success_and_attached_disk_stays() {
    let cloud = SmallCompute::new();
    let disk = cloud.disk("d");
    let mut attached = cloud.get(&disk);
    attached["managedBy"] = json!(machine_id("one"));
    cloud.put(&disk, attached);
    let refused = cloud.call().delete_volume(&disk, None).unwrap_err();
    assert!(
        refused.kind == FailureKind::FailedPrecondition && refused.message.contains("virtualMachines/one"),
        "{refused:?}"
    );
    cloud.disk("d");
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().delete_volume(&disk, None));
    cloud.finish();
    assert_eq!(cloud.call().delete_volume(&disk, Some(&begun)), Ok(()));
    for id in [
        disk.as_str(),
        "no id",
        "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/snapshots/d",
    ] {
        assert_eq!(cloud.call().delete_volume(id, None), Ok(()), "{id}");
    }
    assert_eq!(cloud.changes(), [format!("DELETE {disk}")]);
}
