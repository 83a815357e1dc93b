use cloudwit_guest_sdk::serde_json::{Value, json};
use cloudwit_guest_sdk::testing::{FakeAnswer, FakeHost, SentRequest};

use super::*;

const API: &str = "https://gce.test/compute/v1";

fn host(more: &Value) -> FakeHost {
    let host = FakeHost::new();
    let mut config = json!({ "global": {
        "project-id": "p", "local-zone": "us-central1-a", "network-name": "default", "token-url": "nil", "api-endpoint": API,
    }});
    for (key, value) in more.as_object().unwrap() {
        config["global"][key] = value.clone();
    }
    host.config(config.to_string());
    host
}

fn zonal(name: &str, zone: &str) -> Value {
    json!({ "name": name, "zone": format!("{API}/projects/p/zones/{zone}") })
}

/// A project with disks in the cluster's zone, in another of its region, in another region, and one with replicas.
fn cloud(host: &FakeHost, silent: bool) {
    let zones = ["us-central1-a", "us-central1-b"].map(|zone| format!("{API}/projects/p/zones/{zone}"));
    let replicated =
        json!({ "name": "both", "region": format!("{API}/projects/p/regions/us-central1"), "replicaZones": zones });
    let last = match silent {
        true => json!({ "warning": { "code": "UNREACHABLE", "message": "away" } }),
        false => json!({ "warning": { "code": "NO_RESULTS_ON_PAGE", "message": "nothing" } }),
    };
    let items = json!({
        "zones/us-central1-a": { "disks": [zonal("here", "us-central1-a"), zonal("twice", "us-central1-a")] },
        "zones/us-central1-b": { "disks": [zonal("there", "us-central1-b"), zonal("twice", "us-central1-b")] },
        "zones/europe-west1-b": { "disks": [zonal("far", "europe-west1-b")] },
        "regions/us-central1": { "disks": [replicated] },
        "zones/europe-west1-c": last,
    });
    host.serve(move |request: &SentRequest| {
        let path = request.url.split('?').next().unwrap().strip_prefix(API).unwrap();
        assert_eq!(path, "/projects/p/aggregated/disks");
        FakeAnswer::json(200, &json!({ "items": items }))
    });
}

fn volume(id: &str, zone: Option<&str>) -> InTreeVolume {
    InTreeVolume {
        source: InTreeSource::GcePersistentDisk,
        id: id.into(),
        zone: zone.map(str::to_owned),
        extra: Vec::new(),
    }
}

fn ask(host: &FakeHost, id: &str, zone: Option<&str>) -> Result<Vec<String>, FailureKind> {
    let labels = host
        .provider::<Gce>()
        .volume_labels(&[volume(id, zone)])
        .unwrap()
        .remove(0);
    let values = |labels: Vec<Pair>| labels.into_iter().map(|label| label.value).collect();
    labels.map(values).map_err(|failure| failure.kind)
}

#[test]
fn labels_are_zone_region_and_all_replica_zones() {
    let host = host(&json!({}));
    cloud(&host, false);
    let labels = |zone: &str, region: &str| Ok(vec![zone.to_owned(), region.to_owned()]);
    for (id, zone, expected) in [
        ("here", None, labels("us-central1-a", "us-central1")),
        ("both", None, labels("us-central1-a__us-central1-b", "us-central1")),
        (
            "both",
            Some("us-central1-b__us-central1-a"),
            labels("us-central1-a__us-central1-b", "us-central1"),
        ),
        ("both", Some("us-central1-a"), Err(FailureKind::NotFound)),
        // Of another zone than the cluster's: only where the PersistentVolume has that zone.
        ("there", None, Err(FailureKind::NotFound)),
        ("there", Some("us-central1-b"), labels("us-central1-b", "us-central1")),
        ("far", Some("europe-west1-b"), labels("europe-west1-b", "europe-west1")),
        ("twice", None, labels("us-central1-a", "us-central1")),
        ("gone", None, Err(FailureKind::NotFound)),
    ] {
        assert_eq!(ask(&host, id, zone), expected, "{id} {zone:?}");
    }
}

#[test]
fn regional_cluster_disk_names_are_distinguished_by_label() {
    let host = host(&json!({ "multizone": true }));
    cloud(&host, false);
    assert!(ask(&host, "there", None).is_ok());
    assert_eq!(ask(&host, "far", None), Err(FailureKind::NotFound));
    assert_eq!(ask(&host, "twice", None), Err(FailureKind::Invalid));
    assert_eq!(ask(&host, "twice", Some("us-central1-b")).unwrap()[0], "us-central1-b");
}

#[test]
fn unanswering_zone_is_no_proof_of_absent_disk() {
    let host = host(&json!({}));
    cloud(&host, true);
    assert_eq!(ask(&host, "gone", None), Err(FailureKind::Unavailable));
    assert!(ask(&host, "here", None).is_ok());
}

#[test]
fn what_no_disk_can_be_called_is_not_requested() {
    let host = host(&json!({}));
    let long = "d".repeat(64);
    for id in ["", "a\") OR (name = \"b", "Upper", "a/b", &long] {
        assert_eq!(ask(&host, id, None), Err(FailureKind::NotFound), "{id}");
    }
    assert!(host.requests().is_empty());
}

#[test]
fn many_disks_are_one_request() {
    let host = host(&json!({}));
    cloud(&host, false);
    let asked = ["here", "both", "gone", "here"].map(|id| volume(id, None));
    let answers = host.provider::<Gce>().volume_labels(&asked).unwrap();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 3);
    assert_eq!(host.requests().len(), 1);
}
