//! Builders of Services, node sets and records for the tests of the plan and of the record.

use crate::kube::node::Node;
use crate::options::classes::Classes;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service, ServiceSpec, ServiceStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::{Operation, Record};
use crate::kube::service::CLEANUP_FINALIZER;
use crate::service::targets::{DatedSet, TargetSet};

#[derive(Clone)]
pub(crate) struct Build(pub(crate) Service);

pub(crate) fn of_type(kind: &str) -> Build {
    let mut service = Service {
        spec: Some(ServiceSpec {
            type_: Some(kind.into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    service.metadata.uid = Some("u1".into());
    Build(service)
}

pub(crate) fn balancer() -> Build {
    of_type("LoadBalancer")
}

impl Build {
    pub(crate) fn finalizer(mut self) -> Self {
        self.0.metadata.finalizers = Some(vec!["other/keep".into(), CLEANUP_FINALIZER.into()]);
        self
    }

    pub(crate) fn dying(mut self) -> Self {
        self.0.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        self
    }

    pub(crate) fn class(mut self) -> Self {
        self.0.spec.as_mut().unwrap().load_balancer_class = Some("example.com/other".into());
        self
    }

    pub(crate) fn uid(mut self, uid: &str) -> Self {
        self.0.metadata.uid = Some(uid.into());
        self
    }

    pub(crate) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .annotations
            .get_or_insert_default()
            .insert(key.into(), value.into());
        self
    }

    pub(crate) fn port(mut self, port: i32) -> Self {
        let port = k8s_openapi::api::core::v1::ServicePort {
            port,
            ..Default::default()
        };
        self.0.spec.as_mut().unwrap().ports = Some(vec![port]);
        self
    }

    pub(crate) fn ingress(mut self, ip: &str) -> Self {
        let status = LoadBalancerStatus {
            ingress: Some(vec![point(ip)]),
        };
        self.0.status = Some(ServiceStatus {
            load_balancer: Some(status),
            conditions: None,
        });
        self
    }

    pub(crate) fn arc(&self) -> Arc<Service> {
        Arc::new(self.0.clone())
    }
}

pub(crate) fn point(ip: &str) -> LoadBalancerIngress {
    LoadBalancerIngress {
        ip: Some(ip.into()),
        ..LoadBalancerIngress::default()
    }
}

/// What a load balancer was given before the first pass.
pub(crate) fn nodes(names: &[&str]) -> DatedSet {
    let nodes: Vec<Node> = names
        .iter()
        .map(|name| Node {
            metadata: kube::api::ObjectMeta {
                name: Some((*name).into()),
                ..Default::default()
            },
            ..Default::default()
        })
        .collect();
    DatedSet {
        nodes: TargetSet::of(&nodes),
        pass: 0,
    }
}

/// The nodes of a pass.
pub(crate) fn in_pass(names: &[&str]) -> DatedSet {
    DatedSet {
        pass: 1,
        ..nodes(names)
    }
}

/// A record after a successful ensure with node `a` and address 1.1.1.1, all written.
pub(crate) fn ensured(service: &Build) -> Record {
    let mut record = Record::new(service.arc(), &Classes::default());
    record.start(Operation::Ensure);
    record.note_ensured(nodes(&["a"]), vec![point("1.1.1.1")], Vec::new());
    record.note_written();
    record
}
