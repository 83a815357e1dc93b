//! What the provider decides about volumes; the whole way is in `tests/suite/tests/volumes`.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::testing::{FakeHost, placeholder};
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use super::GIB;
use crate::Sim;
use crate::config::Config;

const DISKS: &str = "https://sim.test/v1/disks";
const KEY: &str = "topology.sim.csi.cloudwit.dev/zone";

fn host() -> FakeHost {
    let host = FakeHost::new();
    host.config(r#"{"endpoint": "https://sim.test"}"#)
        .secret("token", "t0ken");
    host
}

fn wanted() -> NewVolume {
    NewVolume {
        name: "pvc-1".into(),
        size: SizeRange {
            at_least: 2 * GIB,
            at_most: None,
        },
        uses: vec![VolumeUse {
            block: false,
            fs_type: None,
            access: AccessMode::OneNode,
        }],
        parameters: Vec::new(),
        mutable_parameters: Vec::new(),
        source: None,
        allowed: vec![Topology::of(KEY, "sim-1a"), Topology::of(KEY, "sim-1b")],
        preferred: vec![Topology::of(KEY, "sim-1b")],
        tags: Vec::new(),
        extra: Vec::new(),
    }
}

fn attachment(volume: &str) -> NewAttachment {
    NewAttachment {
        volume: volume.into(),
        node_id: "vm-1".into(),
        read_only: false,
        volume_use: wanted().uses.remove(0),
        token: None,
    }
}

fn spec(zone: &str, size: u64) -> Value {
    json!({"name": "pvc-1", "cluster": "test", "size": size, "zone": zone, "type": "standard", "iops": null, "shared": false,
        "source": null, "encrypted": false})
}

fn disk(ready: bool, zone: &str, size: u64) -> Value {
    json!({"id": "disk-7", "ready": ready, "spec": spec(zone, size), "attachments": []})
}

fn encrypted() -> NewVolume {
    NewVolume {
        parameters: vec![Pair::new("encrypted", "true")],
        ..wanted()
    }
}

#[test]
fn passphrase_of_the_request_goes_along_in_base64() {
    let host = host();
    host.secret(&secret_name("passphrase"), "of the request");
    let passphrase = placeholder("volume/passphrase", Encoding::Base64);
    let header = "x-disk-passphrase";
    let spec = |encrypted| {
        let mut spec = spec("sim-1b", 2 * GIB);
        spec["encrypted"] = json!(encrypted);
        spec
    };
    let made = json!({"id": "disk-7", "ready": true, "spec": spec(true), "attachments": []});
    host.expect("POST", DISKS)
        .with_json(spec(true))
        .with_header(header, &passphrase)
        .answers(201, made);
    assert_eq!(
        host.provider::<Sim>().create_volume(&encrypted(), None).unwrap().id,
        "disk-7"
    );
    host.expect("POST", "https://sim.test/v1/disks/batch")
        .with_header(header, &passphrase)
        .answers(200, json!({"deleted": [], "created": [{"status": 200}, {"status": 403, "message": "disk disk-8 has another passphrase"}]}));
    let results = host
        .provider::<Sim>()
        .attach_volumes(&["disk-7", "disk-8"].map(attachment))
        .unwrap();
    assert!(results[0].is_ok());
    let refused = results[1].as_ref().unwrap_err();
    assert_eq!(
        (&refused.kind, &*refused.message),
        (&FailureKind::Denied, "disk disk-8 has another passphrase")
    );
    host.expect("DELETE", "https://sim.test/v1/disks/disk-7")
        .with_header(header, &passphrase)
        .answers(204, json!(null));
    assert_eq!(host.provider::<Sim>().delete_volume("disk-7", None), Ok(()));
}

#[test]
fn missing_passphrase_makes_nothing_and_is_the_reason_of_a_denial() {
    let host = host();
    let refused = host.provider::<Sim>().create_volume(&encrypted(), None).unwrap_err();
    assert_eq!(refused.kind, FailureKind::Denied);
    assert!(refused.message.contains("volume/passphrase"), "{refused:?}");
    host.expect("POST", "https://sim.test/v1/disks/batch").answers(
        200,
        json!({"deleted": [], "created": [{"status": 403, "message": "its passphrase is missing"}]}),
    );
    let results = host.provider::<Sim>().attach_volumes(&[attachment("disk-7")]).unwrap();
    let refused = results[0].as_ref().unwrap_err();
    assert!(
        refused.message.starts_with("its passphrase is missing; ") && refused.message.contains("volume/passphrase"),
        "{refused:?}"
    );
}

#[test]
fn disk_is_made_in_the_next_zone_when_one_is_full() {
    let host = host();
    host.expect("POST", DISKS)
        .with_json(spec("sim-1b", 2 * GIB))
        .answers(507, json!({"error": {"message": "full"}}));
    host.expect("POST", DISKS)
        .with_json(spec("sim-1a", 2 * GIB))
        .answers(201, disk(true, "sim-1a", 2 * GIB));
    let volume = host.provider::<Sim>().create_volume(&wanted(), None).unwrap();
    assert_eq!((volume.id.as_str(), volume.size), ("disk-7", 2 * GIB));
    assert_eq!(volume.topology[0].get(KEY), Some("sim-1a"));
}

#[test]
fn disk_in_creation_is_found_by_name_without_another() {
    let host = host();
    host.expect("POST", DISKS).answers(201, disk(false, "sim-1b", 2 * GIB));
    let waits = host.provider::<Sim>().create_volume(&wanted(), None).unwrap_err();
    let FailureKind::Pending(token) = waits.kind else {
        panic!("{waits:?}")
    };
    let url = "https://sim.test/v1/disks?cluster=test&name=pvc-1&limit=1000";
    host.expect("GET", url)
        .answers(200, json!({"items": [disk(true, "sim-1b", 2 * GIB)], "next": null}));
    let volume = host.provider::<Sim>().create_volume(&wanted(), Some(&token)).unwrap();
    assert_eq!(volume.id, "disk-7");
}

#[test]
fn disk_of_the_same_name_has_to_be_what_is_wanted() {
    for (zone, size, differs) in [
        ("sim-1a", 2 * GIB, None),
        ("sim-1a", GIB, Some("size")),
        ("sim-2a", 2 * GIB, Some("zone")),
    ] {
        let host = host();
        host.expect("POST", DISKS)
            .answers(409, json!({"error": {"message": "taken"}}));
        host.expect("GET", "https://sim.test/v1/disks?cluster=test&name=pvc-1&limit=1000")
            .answers(200, json!({"items": [disk(true, zone, size)], "next": null}));
        let created = host.provider::<Sim>().create_volume(&wanted(), None);
        match differs {
            None => assert_eq!(created.unwrap().id, "disk-7"),
            Some(what) => {
                let failure = created.unwrap_err();
                assert_eq!(failure.kind, FailureKind::AlreadyExists);
                assert!(failure.message.contains(what), "{failure:?}");
            }
        }
    }
}

#[test]
fn wrong_parameters_are_named_before_anything_is_made() {
    let host = host();
    for (parameters, mutable, named) in [
        (vec![Pair::new("colour", "red")], vec![], "colour"),
        (vec![Pair::new("type", "golden")], vec![], "golden"),
        (vec![Pair::new("encrypted", "yes")], vec![], "yes"),
        (vec![], vec![Pair::new("iops", "many")], "many"),
    ] {
        let new = NewVolume {
            parameters,
            mutable_parameters: mutable,
            ..wanted()
        };
        let failure = host.provider::<Sim>().create_volume(&new, None).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
        assert!(failure.message.contains(named), "{failure:?}");
    }
}

#[test]
fn foreign_ids_cost_no_request() {
    let host = host();
    let foreign = ["vol-1", "disk-", "disk-../x", ""].map(String::from);
    let found = host.provider::<Sim>().get_volumes(&foreign).unwrap();
    assert!(found.iter().all(|one| *one == Ok(None)), "{found:?}");
    for id in &foreign {
        assert_eq!(host.provider::<Sim>().delete_volume(id, None), Ok(()));
        assert_eq!(host.provider::<Sim>().delete_snapshot(id, None), Ok(()));
    }
}

#[test]
fn each_of_a_batch_has_its_own_result_in_order() {
    let host = host();
    host.expect("POST", "https://sim.test/v1/disks/batch")
        .with_json(json!({"attach": [
            {"disk": "disk-1", "machine": "vm-1", "readOnly": false}, {"disk": "disk-2", "machine": "vm-1", "readOnly": false},
            {"disk": "disk-3", "machine": "vm-1", "readOnly": false}, {"disk": "disk-4", "machine": "vm-1", "readOnly": false}],
            "detach": []}))
        .answers(200, json!({"deleted": [], "created": [
            {"status": 200}, {"status": 202}, {"status": 412, "message": "elsewhere"}, {"status": 507, "message": "full"}]}));
    let wanted = ["disk-1", "disk-2", "disk-3", "disk-4"].map(attachment);
    let results = host.provider::<Sim>().attach_volumes(&wanted).unwrap();
    assert_eq!(results[0].as_ref().unwrap().devices, [Device::Serial("disk-1".into())]);
    let kinds: Vec<&FailureKind> = results[1..].iter().map(|one| &one.as_ref().unwrap_err().kind).collect();
    assert!(matches!(
        kinds[..],
        [
            FailureKind::Pending(_),
            FailureKind::FailedPrecondition,
            FailureKind::Exhausted
        ]
    ));
}

#[test]
fn volume_that_is_large_enough_is_not_changed() {
    let host = host();
    let url = "https://sim.test/v1/disks?ids=disk-7&limit=1000";
    let range = |at_least| SizeRange {
        at_least,
        at_most: None,
    };
    let page = json!({"items": [disk(true, "sim-1a", 2 * GIB)], "next": null});
    host.expect("GET", url).answers(200, page.clone());
    let expand = |size| host.provider::<Sim>().expand_volume("disk-7", range(size), None);
    assert_eq!(expand(GIB).unwrap().size, 2 * GIB);
    host.expect("GET", url).answers(200, page);
    host.expect("PUT", "https://sim.test/v1/disks/disk-7")
        .with_json(json!({"size": 3 * GIB}))
        .answers(200, disk(true, "sim-1a", 3 * GIB));
    assert_eq!(expand(3 * GIB).unwrap().size, 3 * GIB);
}

fn in_tree(source: InTreeSource, id: &str) -> InTreeVolume {
    InTreeVolume {
        source,
        id: id.into(),
        zone: None,
        extra: Vec::new(),
    }
}

#[test]
fn labels_report_zone_and_region_of_the_disks_that_exist() {
    let host = host();
    host.expect("GET", "https://sim.test/v1/disks?ids=disk-7%2Cdisk-8&limit=1000")
        .answers(200, json!({"items": [disk(true, "sim-1b", 2 * GIB)]}));
    host.expect("GET", "https://sim.test/v1/zones")
        .answers(200, json!({"items": [{"name": "sim-1b", "region": "sim-1"}]}));
    let asked = ["disk-7", "disk-8", "other"].map(|id| in_tree(InTreeSource::Cinder, id));
    let labels = host.provider::<Sim>().volume_labels(&asked).unwrap();
    let expected = [
        Pair::new("topology.kubernetes.io/zone", "sim-1b"),
        Pair::new("topology.kubernetes.io/region", "sim-1"),
    ];
    assert_eq!(labels[0], Ok(expected.to_vec()));
    for missing in &labels[1..] {
        assert_eq!(missing.as_ref().unwrap_err().kind, FailureKind::NotFound);
    }
}

#[test]
fn sources_are_those_of_the_configuration() {
    assert_eq!(Sim::label_sources(None), []);
    let text = r#"{"endpoint": "https://sim.test", "labelSources": ["cinder", "gcePersistentDisk"]}"#;
    let config: Config = serde_json::from_str(text).unwrap();
    assert_eq!(
        Sim::label_sources(Some(&config)),
        [InTreeSource::Cinder, InTreeSource::GcePersistentDisk]
    );
}
