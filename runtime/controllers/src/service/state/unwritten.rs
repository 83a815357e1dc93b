//! Answers of the provider that are not on the Service yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use cloudwit_model::AnnotationChange;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, Service};

use crate::kube::service::{ingress, ingress_equal};

/// Answers of the provider that are not on the Service yet.
#[derive(Debug, Clone, Default)]
pub struct Unwritten {
    /// Ingress points for the status.
    pub ingress: Option<Vec<LoadBalancerIngress>>,
    /// New values of annotations; none removes.
    pub annotations: BTreeMap<String, Option<String>>,
}

impl Unwritten {
    /// Whether writing it would change the Service.
    pub fn differs_from(&self, service: &Service) -> bool {
        self.ingress_for(service).is_some() || !self.annotations_for(service).is_empty()
    }

    /// The ingress points, unless the Service has them.
    pub fn ingress_for(&self, service: &Service) -> Option<&[LoadBalancerIngress]> {
        self.ingress
            .as_deref()
            .filter(|wanted| !ingress_equal(wanted, ingress(service)))
    }

    /// The annotations that the Service does not have like this.
    pub fn annotations_for(&self, service: &Service) -> BTreeMap<String, Option<String>> {
        let current = service.metadata.annotations.as_ref();
        let missing = |key: &String, value: &Option<String>| current.and_then(|all| all.get(key)) != value.as_ref();
        self.annotations
            .iter()
            .filter(|(key, value)| missing(key, value))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    }

    /// Adds changes of annotations that a provider requested.
    pub fn add_annotations(&mut self, changes: Vec<AnnotationChange>) {
        self.annotations
            .extend(changes.into_iter().map(|change| (change.key, change.value)));
    }

    /// Puts the annotations on a remembered Service, so that writing them is not taken for a change by others.
    pub fn annotate(&self, service: &mut Arc<Service>) {
        if self.annotations.is_empty() {
            return;
        }
        let annotations = Arc::make_mut(service).metadata.annotations.get_or_insert_default();
        for (key, value) in &self.annotations {
            match value {
                Some(value) => annotations.insert(key.clone(), value.clone()),
                None => annotations.remove(key),
            };
        }
    }
}
