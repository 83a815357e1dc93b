use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::json;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::testing::{SmallPd, ZONE, disk_path, kind, machine_path, token, wanted};
use crate::volumes::{GIB, ZONE_KEY};

fn parameters(all: &[(&str, &str)]) -> Vec<Pair> {
    all.iter().map(|(key, value)| Pair::new(*key, *value)).collect()
}

fn places(zones: &[&str]) -> Vec<Topology> {
    zones.iter().map(|zone| Topology::of(ZONE_KEY, *zone)).collect()
}

#[test]
fn disk_is_inserted_once_and_its_operation_is_waited_for() {
    let cloud = SmallPd::new();
    cloud.state.borrow_mut().is_slow = true;
    let new = NewVolume {
        parameters: parameters(&[("type", "pd-ssd"), ("labels", "team=shop")]),
        tags: parameters(&[("kubernetes.io/created-for/pvc/name", "data")]),
        ..wanted("pvc-1")
    };
    let begun = token(cloud.call().create_volume(&new, None));
    assert!(begun.contains("operations/operation-1"), "{begun}");
    assert_eq!(token(cloud.call().create_volume(&new, Some(&begun))), begun);
    cloud.finish();
    let made = cloud.call().create_volume(&new, Some(&begun)).unwrap();
    assert_eq!((made.id.as_str(), made.size), (disk_path("pvc-1").as_str(), 2 * GIB));
    assert_eq!(made.topology, places(&[ZONE]));
    assert_eq!(cloud.call().create_volume(&new, None), Ok(made.clone()));
    assert_eq!(
        cloud.call().get_volumes(std::slice::from_ref(&made.id)),
        Ok(vec![Ok(Some(made))])
    );
    assert_eq!(cloud.changes(), [format!("POST projects/p/zones/{ZONE}/disks")]);
    let disk = cloud.state.borrow().resources[&disk_path("pvc-1")].clone();
    assert_eq!(
        disk["labels"],
        json!({ "team": "shop", "kubernetes_io_created_for_pvc_name": "data" })
    );
    assert!(
        disk["type"]
            .as_str()
            .unwrap()
            .ends_with(&format!("{ZONE}/diskTypes/pd-ssd")),
        "{disk}"
    );
}

#[test]
fn volume_of_another_size_type_or_place_already_exists() {
    let cloud = SmallPd::new();
    cloud.disk("pvc-1");
    let larger = NewVolume {
        size: SizeRange {
            at_least: 3 * GIB,
            at_most: None,
        },
        ..wanted("pvc-1")
    };
    let faster = NewVolume {
        parameters: parameters(&[("type", "pd-ssd")]),
        ..wanted("pvc-1")
    };
    let copy = NewVolume {
        source: Some(VolumeSource::Snapshot("projects/p/global/snapshots/s".into())),
        ..wanted("pvc-1")
    };
    for other in [larger, faster, copy] {
        assert_eq!(
            kind(cloud.call().create_volume(&other, None)),
            FailureKind::AlreadyExists,
            "{other:?}"
        );
    }
    // The same name in another zone is another disk.
    let elsewhere = NewVolume {
        allowed: places(&["us-central1-b"]),
        ..wanted("pvc-1")
    };
    let made = cloud.call().create_volume(&elsewhere, None).unwrap();
    assert_eq!(made.id, "projects/p/zones/us-central1-b/disks/pvc-1");
}

#[test]
fn full_zone_is_left_for_the_next_one() {
    let cloud = SmallPd::new();
    let new = NewVolume {
        allowed: places(&[ZONE, "us-central1-b"]),
        preferred: places(&["us-central1-b"]),
        ..wanted("pvc-1")
    };
    {
        let mut state = cloud.state.borrow_mut();
        state.refusals = vec![("POST projects/p/zones/us-central1-b/disks", 403, "quotaExceeded")];
    }
    let made = cloud.call().create_volume(&new, None).unwrap();
    assert_eq!(made.id, disk_path("pvc-1"));
    // Full is known only when the operation has ended.
    let other = NewVolume {
        name: "pvc-2".into(),
        ..new
    };
    {
        let mut state = cloud.state.borrow_mut();
        state.refusals.clear();
        state.is_slow = true;
    }
    let begun = token(cloud.call().create_volume(&other, None));
    {
        let mut state = cloud.state.borrow_mut();
        state.is_slow = false;
        state.error = Some(("ZONE_RESOURCE_POOL_EXHAUSTED", "full"));
    }
    let full = cloud.call().create_volume(&other, Some(&begun)).unwrap_err();
    assert_eq!(full.kind, FailureKind::Exhausted, "in both: {full:?}");
    let changes = cloud.changes();
    assert_eq!(
        changes[changes.len() - 2..],
        ["b", "a"].map(|zone| format!("POST projects/p/zones/us-central1-{zone}/disks"))
    );
    // A fresh attempt tries them again.
    cloud.state.borrow_mut().error = None;
    let made = cloud.call().create_volume(&other, None).unwrap();
    assert_eq!(made.id, "projects/p/zones/us-central1-b/disks/pvc-2");
}

#[test]
fn disk_with_replicas_is_in_two_zones_of_its_region() {
    let cloud = SmallPd::new();
    let new = NewVolume {
        parameters: parameters(&[("replication-type", "regional-pd")]),
        allowed: places(&["us-central1-b", ZONE]),
        preferred: places(&[ZONE]),
        ..wanted("pvc-1")
    };
    let made = cloud.call().create_volume(&new, None).unwrap();
    assert_eq!(made.id, "projects/p/regions/us-central1/disks/pvc-1");
    assert_eq!(made.topology, places(&[ZONE, "us-central1-b"]));
    assert_eq!(cloud.call().create_volume(&new, None), Ok(made));
    // One zone alone: another of the region is added.
    let one = NewVolume {
        name: "pvc-2".into(),
        allowed: places(&[ZONE]),
        ..new
    };
    let made = cloud.call().create_volume(&one, None).unwrap();
    assert!(
        made.topology.len() == 2 && made.topology.contains(&places(&[ZONE])[0]),
        "{made:?}"
    );
}

#[test]
fn volume_for_anywhere_is_in_a_zone_of_the_region() {
    let cloud = SmallPd::new();
    let mut zones = std::collections::BTreeSet::new();
    for number in 0..20 {
        let new = NewVolume {
            allowed: Vec::new(),
            ..wanted(&format!("pvc-{number}"))
        };
        let made = cloud.call().create_volume(&new, None).unwrap();
        assert_eq!(cloud.call().create_volume(&new, None), Ok(made.clone()));
        zones.insert(made.topology[0].get(ZONE_KEY).unwrap().to_owned());
    }
    assert_eq!(zones.len(), 3, "{zones:?}");
}

#[test]
fn names_that_are_none_of_compute_engine_are_digests() {
    let cloud = SmallPd::new();
    for name in ["Upper", "1-x", "under_score", &"n".repeat(128)] {
        let made = cloud.call().create_volume(&wanted(name), None).unwrap();
        assert_eq!(
            cloud.call().create_volume(&wanted(name), None),
            Ok(made.clone()),
            "{name}"
        );
        assert!(made.id.contains("/disks/vol-"), "{made:?}");
    }
}

#[test]
fn wrong_parameter_makes_nothing() {
    let cloud = SmallPd::new();
    for (key, value) in [("tpye", "pd-ssd"), ("replication-type", "twice")] {
        let odd = NewVolume {
            parameters: parameters(&[(key, value)]),
            ..wanted("pvc-1")
        };
        let refused = cloud.call().create_volume(&odd, None).unwrap_err();
        assert!(
            refused.kind == FailureKind::Invalid && refused.message.contains(key),
            "{refused:?}"
        );
    }
    let missing = NewVolume {
        source: Some(VolumeSource::Snapshot("s".into())),
        ..wanted("pvc-1")
    };
    assert_eq!(kind(cloud.call().create_volume(&missing, None)), FailureKind::NotFound);
    assert!(cloud.changes().is_empty());
}

#[test]
fn zone_that_does_not_answer_may_have_the_disk() {
    let cloud = SmallPd::new();
    cloud.state.borrow_mut().refusals = vec![("GET projects/p/aggregated", 503, "backendError")];
    assert_eq!(
        kind(cloud.call().create_volume(&wanted("pvc-1"), None)),
        FailureKind::Unavailable
    );
    assert!(cloud.changes().is_empty());
}

#[test]
fn attached_disk_is_not_deleted_and_a_missing_one_is_success() {
    let cloud = SmallPd::new();
    let path = cloud.disk("d");
    let machine = machine_path("one");
    cloud.state.borrow_mut().resources.get_mut(&path).unwrap()["users"] = json!([format!("https://x/v1/{machine}")]);
    let attached = cloud.call().delete_volume(&path, None).unwrap_err();
    assert!(
        attached.kind == FailureKind::FailedPrecondition && attached.message.contains(&machine),
        "{attached:?}"
    );
    for missing in [
        &disk_path("gone"),
        "no disk",
        "projects/p/zones/us-central1-a/instances/d",
    ] {
        assert_eq!(cloud.call().delete_volume(missing, None), Ok(()), "{missing}");
    }
    cloud.state.borrow_mut().resources.get_mut(&path).unwrap()["users"] = json!([]);
    cloud.state.borrow_mut().is_slow = true;
    let begun = token(cloud.call().delete_volume(&path, None));
    cloud.finish();
    assert_eq!(cloud.call().delete_volume(&path, Some(&begun)), Ok(()));
    assert_eq!(cloud.call().get_volumes(&[path]), Ok(vec![Ok(None)]));
}

#[test]
fn only_compute_engines_own_word_is_that_there_is_no_disk() {
    let cloud = SmallPd::new();
    // A zone or a project that does not exist, or a proxy.
    cloud.state.borrow_mut().refusals = vec![("GET projects/p/zones", 404, "notFound")];
    let found = cloud.call().get_volumes(&[disk_path("d")]).unwrap().remove(0);
    assert_eq!(kind(found), FailureKind::NotFound);
    assert!(cloud.call().delete_volume(&disk_path("d"), None).is_err());
}

#[test]
fn disk_grows_and_one_that_is_large_enough_stays() {
    let cloud = SmallPd::new();
    let path = cloud.disk("d");
    let size = |gib: u64| SizeRange {
        at_least: gib * GIB,
        at_most: None,
    };
    let grown = cloud.call().expand_volume(&path, size(5), None).unwrap();
    assert_eq!((grown.size, grown.on_node), (5 * GIB, true));
    assert_eq!(cloud.call().expand_volume(&path, size(3), None).unwrap().size, 5 * GIB);
    assert_eq!(cloud.changes().len(), 1);
    assert_eq!(
        kind(cloud.call().expand_volume(&disk_path("gone"), size(3), None)),
        FailureKind::NotFound
    );
}

#[test]
fn migrated_ids_are_found_in_the_region() {
    let cloud = SmallPd::new();
    cloud.disk("d");
    let ids = [
        "zones/UNSPECIFIED",
        "zones/us-central1-a",
        "regions/UNSPECIFIED",
        "zones/us-central1-b",
    ]
    .map(|place| format!("projects/UNSPECIFIED/{place}/disks/d"));
    let found = cloud.call().get_volumes(&ids).unwrap();
    for (id, found) in ids.iter().zip(&found[..3]) {
        let found = found.as_ref().unwrap().as_ref().unwrap();
        assert_eq!((&found.id, found.size), (id, 2 * GIB));
    }
    assert_eq!(found[3], Ok(None));
    // A disk of the same name in another zone makes them ambiguous.
    let mut other = cloud.state.borrow().resources[&disk_path("d")].clone();
    other["zone"] = json!("https://x/v1/projects/p/zones/us-central1-b");
    cloud.put("projects/p/zones/us-central1-b/disks/d", other);
    let found = cloud.call().get_volumes(&ids[..1]).unwrap().remove(0);
    assert_eq!(kind(found), FailureKind::Invalid);
}

#[test]
fn list_has_what_was_made_for_kubernetes() {
    let cloud = SmallPd::new();
    let path = cloud.disk("d");
    cloud.disk("boot");
    cloud.state.borrow_mut().resources.get_mut(&disk_path("boot")).unwrap()["description"] = json!("");
    let page = cloud.call().list_volumes(None, 10).unwrap();
    let ids: Vec<String> = page.volumes.into_iter().map(|volume| volume.id).collect();
    assert_eq!((ids, page.next), (vec![path], None));
    cloud.state.borrow_mut().refusals = vec![("GET projects/p/aggregated", 400, "invalid")];
    assert_eq!(
        kind(cloud.call().list_volumes(Some("nowhere"), 10)),
        FailureKind::Aborted
    );
}
