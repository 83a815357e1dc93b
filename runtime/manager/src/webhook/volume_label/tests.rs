//! Which PersistentVolumes are labelled, and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{Answer as Answered, CloudError, Failure, InTreeSource, InTreeVolume, VolumeLabels};
use k8s_openapi::api::core::v1::PersistentVolume;
use serde_json::{Value, json};

use super::*;
use crate::webhook::review;
use crate::webhook::volume_label::gather::Source;
use crate::webhook::volume_label::question::{BETA_REGION, BETA_ZONE, REGION, ZONE, question};

fn volume(labels: Value, annotations: Value, spec: Value) -> PersistentVolume {
    let object = json!({"metadata": {"name": "data", "labels": labels, "annotations": annotations}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn asked(source: InTreeSource, id: &str, zone: Option<&str>) -> Question {
    Question::Cloud(InTreeVolume {
        source,
        id: id.into(),
        zone: zone.map(str::to_owned),
    })
}

fn gce(name: &str) -> Value {
    json!({"gcePersistentDisk": {"pdName": name}})
}

#[test]
fn each_source_is_looked_up_by_its_id() {
    use InTreeSource::{AwsElasticBlockStore, AzureDisk, Cinder, GcePersistentDisk, VsphereVolume};
    const PLACEHOLDER: &str = "placeholder-for-provisioning";
    let azure = |name: &str, uri: &str| json!({"azureDisk": {"diskName": name, "diskURI": uri}});
    for (spec, question_of) in [
        (
            json!({"awsElasticBlockStore": {"volumeID": "vol-1"}}),
            asked(AwsElasticBlockStore, "vol-1", None),
        ),
        (gce("d"), asked(GcePersistentDisk, "d", None)),
        (azure("d", "/u/d"), asked(AzureDisk, "/u/d", None)),
        (json!({"cinder": {"volumeID": "c"}}), asked(Cinder, "c", None)),
        (
            json!({"vsphereVolume": {"volumePath": "[ds] d"}}),
            asked(VsphereVolume, "[ds] d", None),
        ),
        (
            json!({"awsElasticBlockStore": {"volumeID": PLACEHOLDER}}),
            Question::Nothing,
        ),
        (gce(PLACEHOLDER), Question::Nothing),
        (azure(PLACEHOLDER, "/u/d"), Question::Nothing),
        (azure("d", PLACEHOLDER), Question::Nothing),
        (json!({"cinder": {"volumeID": PLACEHOLDER}}), Question::Nothing),
        (
            json!({"vsphereVolume": {"volumePath": PLACEHOLDER}}),
            asked(VsphereVolume, PLACEHOLDER, None),
        ),
        (json!({"csi": {"driver": "d", "volumeHandle": "v"}}), Question::Nothing),
        (json!({"hostPath": {"path": "/d"}}), Question::Nothing),
        (json!({}), Question::Nothing),
    ] {
        assert_eq!(
            question(&volume(Value::Null, Value::Null, spec.clone())),
            question_of,
            "{spec}"
        );
    }
    for (name, part) in [
        ("", "spec.gcePersistentDisk.pdName is empty"),
        (&"d".repeat(1025), "1025 bytes"),
    ] {
        let wrong = question(&volume(Value::Null, Value::Null, gce(name)));
        assert!(
            matches!(&wrong, Question::Wrong(why) if why.contains(part)),
            "{wrong:?}"
        );
    }
}

#[test]
fn zone_unfit_as_label_is_refused_before_any_request() {
    let with = |length: usize| question(&volume(json!({ZONE: "z".repeat(length)}), Value::Null, gce("d")));
    assert!(matches!(with(63), Question::Cloud(_)));
    assert!(matches!(with(64), Question::Wrong(_)));
}

#[test]
fn provisioner_labels_are_trusted_with_zone_and_region() {
    let trusted = |pairs: [(&str, &str); 2]| {
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Question::Trusted(pairs.map(own).into())
    };
    let cloud = |zone| asked(InTreeSource::GcePersistentDisk, "d", zone);
    for (provisioned, labels, expected) in [
        (
            true,
            json!({ZONE: "a", REGION: "r"}),
            trusted([(ZONE, "a"), (REGION, "r")]),
        ),
        (
            true,
            json!({BETA_ZONE: "a", BETA_REGION: "r"}),
            trusted([(BETA_ZONE, "a"), (BETA_REGION, "r")]),
        ),
        (
            true,
            json!({ZONE: "a", REGION: "r", BETA_ZONE: "b", BETA_REGION: "s"}),
            trusted([(ZONE, "a"), (REGION, "r")]),
        ),
        (
            true,
            json!({ZONE: "a", BETA_ZONE: "b", BETA_REGION: "s"}),
            trusted([(BETA_ZONE, "b"), (BETA_REGION, "s")]),
        ),
        // One of each family is no pair.
        (true, json!({ZONE: "a", BETA_REGION: "s"}), cloud(Some("a"))),
        (true, json!({REGION: "r"}), cloud(None)),
        (true, Value::Null, cloud(None)),
        (false, json!({ZONE: "a", REGION: "r"}), cloud(Some("a"))),
        (false, json!({BETA_ZONE: "b"}), cloud(Some("b"))),
    ] {
        let annotations = match provisioned {
            true => json!({"pv.kubernetes.io/provisioned-by": "x"}),
            false => Value::Null,
        };
        let found = question(&volume(labels.clone(), annotations, gce("d")));
        assert_eq!(found, expected, "{provisioned} {labels}");
    }
    let csi = json!({"csi": {"driver": "d", "volumeHandle": "v"}});
    let annotations = json!({"pv.kubernetes.io/provisioned-by": "x"});
    let found = question(&volume(json!({ZONE: "a", REGION: "r"}), annotations, csi));
    assert_eq!(found, trusted([(ZONE, "a"), (REGION, "r")]));
}

/// Knows one disk.
struct OneDisk;

impl VolumeLabels for OneDisk {
    fn label_sources(&self) -> Answered<'_, Vec<InTreeSource>> {
        Box::pin(async { Ok(vec![InTreeSource::GcePersistentDisk]) })
    }

    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answered<'a, Each<BTreeMap<String, String>>> {
        let one = |volume: &InTreeVolume| match volume.id.as_str() {
            "d" => Ok(BTreeMap::from([(ZONE.to_owned(), "a".to_owned())])),
            "everywhere" => Ok(BTreeMap::new()),
            "odd" => Ok(BTreeMap::from([(ZONE.to_owned(), "a__".to_owned())])),
            id => Err(Failure::NotFound(format!("there is no disk {id}").into())),
        };
        let answers = volumes.iter().map(one).collect();
        Box::pin(async { Ok::<_, CloudError>(answers) })
    }
}

#[tokio::test]
async fn error_anywhere_forbids_and_names_the_volume() {
    let source = Source {
        name: "lab".into(),
        cloud: Arc::new(OneDisk),
    };
    let gatherer = Gatherer::start(vec![source]);
    let of = async |spec: Value| review(&volume(Value::Null, Value::Null, spec), &gatherer).await;
    let Answer::Allowed(patch) = of(gce("d")).await else {
        panic!("a disk that exists is refused")
    };
    assert_eq!(
        patch[0],
        json!({"op": "add", "path": "/metadata/labels", "value": {ZONE: "a"}})
    );
    for unchanged in [gce("everywhere"), json!({"hostPath": {"path": "/d"}})] {
        assert_eq!(of(unchanged).await, Answer::Allowed(Vec::new()));
    }
    for (spec, part) in [
        (
            gce("gone"),
            "provider \"lab\" has no labels for the gcePersistentDisk volume \"gone\": ",
        ),
        (gce("odd"), "the zone label \"a__\" has an empty zone"),
        (gce(""), "spec.gcePersistentDisk.pdName is empty"),
        (
            json!({"cinder": {"volumeID": "c"}}),
            "no provider has labels of cinder volumes",
        ),
    ] {
        let Answer::Forbidden(why) = of(spec).await else {
            panic!("{part}")
        };
        assert!(
            why.starts_with("PersistentVolume \"data\" is not created: ") && why.contains(part),
            "{why}"
        );
    }
}

#[test]
fn what_is_no_creation_of_a_volume_is_left_alone() {
    let review = |operation: &str, resource: &str, sub_resource: &str| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": operation, "resource": {"group": "", "resource": resource},
                "subResource": sub_resource, "object": {"metadata": {"name": "a"}},
            },
        })
        .to_string()
    };
    let is_asked = |text: &str| {
        let request = review::parse(Some("application/json"), text.as_bytes()).unwrap();
        created(&request).unwrap().is_some()
    };
    assert!(is_asked(&review("CREATE", "persistentvolumes", "")));
    assert!(!is_asked(&review("UPDATE", "persistentvolumes", "")));
    assert!(!is_asked(&review("CREATE", "persistentvolumes", "status")));
    assert!(!is_asked(&review("CREATE", "pods", "")));
}
