//! The bodies of all patches of Services.
//!
//! Pure. All are strategic merge patches for the `status` subresource, which leaves `spec` alone and lets metadata through, so
//! that the controller needs no right to change Services (`spec/service-controller.md`, section 6.4). Only our own
//! entries are named: finalizers, annotations and conditions of others stay, whatever happened to them meanwhile. The uid
//! is named as well, so that a Service that was created anew under the same name refuses the patch.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};
use serde_json::{Map, Value, json};

use crate::kube::service::{CLEANUP_FINALIZER, has_cleanup_finalizer};
use crate::service::state::Unwritten;

/// Adds the cleanup finalizer behind those that are there.
pub fn add_finalizer(service: &Service) -> Value {
    let mut order = finalizers(service);
    order.push(CLEANUP_FINALIZER.to_owned());
    let mut metadata = metadata(service);
    metadata.insert("finalizers".into(), json!([CLEANUP_FINALIZER]));
    metadata.insert("$setElementOrder/finalizers".into(), json!(order));
    json!({ "metadata": metadata })
}

/// Takes the cleanup finalizer off, with those that the cloud's other controller has left, and writes what is still to be written.
pub fn remove_finalizer(service: &Service, left_behind: &[String], unwritten: &Unwritten) -> Value {
    let mut patch = write_answers(service, unwritten);
    if has_cleanup_finalizer(service) {
        let goes = |name: &String| name == CLEANUP_FINALIZER || left_behind.contains(name);
        let (gone, others): (Vec<String>, Vec<String>) = finalizers(service).into_iter().partition(goes);
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!(gone);
        patch["metadata"]["$setElementOrder/finalizers"] = json!(others);
    }
    patch
}

/// Writes status and annotations, as far as they differ.
pub fn write_answers(service: &Service, unwritten: &Unwritten) -> Value {
    let mut patch = json!({ "metadata": metadata(service) });
    let annotations: BTreeMap<String, Option<String>> = unwritten.annotations_for(service);
    if !annotations.is_empty() {
        patch["metadata"]["annotations"] = json!(annotations);
    }
    if let Some(ingress) = unwritten.ingress_for(service) {
        patch["status"] = json!({ "loadBalancer": { "ingress": ingress_value(ingress) } });
    }
    patch
}

/// An empty list is written as null: it removes the field, and an empty list would be stored.
fn ingress_value(ingress: &[LoadBalancerIngress]) -> Value {
    if ingress.is_empty() {
        Value::Null
    } else {
        json!(ingress)
    }
}

fn metadata(service: &Service) -> Map<String, Value> {
    service
        .metadata
        .uid
        .iter()
        .map(|uid| ("uid".to_owned(), json!(uid)))
        .collect()
}

fn finalizers(service: &Service) -> Vec<String> {
    service.metadata.finalizers.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    fn service(finalizers: &[&str]) -> Service {
        let finalizers = finalizers.iter().map(|name| (*name).to_owned()).collect();
        let metadata = ObjectMeta {
            uid: Some("u1".into()),
            finalizers: Some(finalizers),
            ..ObjectMeta::default()
        };
        Service {
            metadata,
            ..Service::default()
        }
    }

    fn point(ip: &str) -> LoadBalancerIngress {
        LoadBalancerIngress {
            ip: Some(ip.into()),
            ip_mode: Some("VIP".into()),
            ..LoadBalancerIngress::default()
        }
    }

    #[test]
    fn adding_the_finalizer_names_only_ours_and_keeps_the_order() {
        let expected = json!({ "metadata": {
            "uid": "u1",
            "finalizers": [CLEANUP_FINALIZER],
            "$setElementOrder/finalizers": ["a/b", CLEANUP_FINALIZER],
        }});
        assert_eq!(add_finalizer(&service(&["a/b"])), expected);
    }

    #[test]
    fn finalizer_removal_is_ours_alone_and_clears_status() {
        let mut service = service(&["keep/me", CLEANUP_FINALIZER]);
        service.status = serde_json::from_value(json!({ "loadBalancer": { "ingress": [point("1.2.3.4")] } })).unwrap();
        let unwritten = Unwritten {
            ingress: Some(Vec::new()),
            ..Unwritten::default()
        };
        let expected = json!({
            "metadata": {
                "uid": "u1",
                "$deleteFromPrimitiveList/finalizers": [CLEANUP_FINALIZER],
                "$setElementOrder/finalizers": ["keep/me"],
            },
            "status": { "loadBalancer": { "ingress": null } },
        });
        assert_eq!(remove_finalizer(&service, &[], &unwritten), expected);
    }

    #[test]
    fn finalizers_of_the_cloud_s_other_controller_go_with_ours() {
        let left_behind = ["gke.test/internal", "gke.test/external"].map(str::to_owned);
        let service = service(&["gke.test/external", "keep/me", CLEANUP_FINALIZER]);
        let expected = json!({ "metadata": {
            "uid": "u1",
            "$deleteFromPrimitiveList/finalizers": ["gke.test/external", CLEANUP_FINALIZER],
            "$setElementOrder/finalizers": ["keep/me"],
        }});
        assert_eq!(
            remove_finalizer(&service, &left_behind, &Unwritten::default()),
            expected
        );
    }

    #[test]
    fn status_and_annotations_are_written_only_where_they_differ() {
        let mut service = service(&[]);
        service.metadata.annotations = Some([("kept".into(), "1".into()), ("old".into(), "x".into())].into());
        let annotations = [
            ("kept".into(), Some("1".into())),
            ("old".into(), None),
            ("new".into(), Some("2".into())),
        ];
        let mut unwritten = Unwritten {
            ingress: Some(vec![point("1.2.3.4")]),
            annotations: annotations.into(),
        };
        assert!(unwritten.differs_from(&service));
        let expected = json!({
            "metadata": { "uid": "u1", "annotations": { "old": null, "new": "2" } },
            "status": { "loadBalancer": { "ingress": [{ "ip": "1.2.3.4", "ipMode": "VIP" }] } },
        });
        assert_eq!(write_answers(&service, &unwritten), expected);

        service.metadata.annotations = Some([("kept".into(), "1".into()), ("new".into(), "2".into())].into());
        unwritten.ingress = Some(Vec::new());
        assert!(
            !unwritten.differs_from(&service),
            "an empty list and no list are the same"
        );
    }
}
