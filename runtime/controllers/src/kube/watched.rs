//! The kinds that are watched, and what of them is kept.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::kube::node::Node;

/// A kind that can be kept in a [`Cache`](crate::kube::cache::Cache).
pub trait Watched: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static {
    /// The kind's name in logs and metrics.
    const KIND: &'static str;
    /// The resource in metrics.
    const RESOURCE: &'static str;
    /// Its status subresource in metrics.
    const STATUS: &'static str;

    /// Access to objects of this kind; `namespace` is None for kinds without one.
    fn api(client: Client, namespace: Option<&str>) -> Api<Self>;

    /// Throws away what no controller reads and decoding has not left out.
    fn trim(&mut self);
}

impl Watched for Node {
    const KIND: &'static str = "Node";
    const RESOURCE: &'static str = "nodes";
    const STATUS: &'static str = "nodes/status";

    fn api(client: Client, _: Option<&str>) -> Api<Self> {
        Api::all(client)
    }

    fn trim(&mut self) {
        self.fit();
    }
}

impl Watched for Service {
    const KIND: &'static str = "Service";
    const RESOURCE: &'static str = "services";
    const STATUS: &'static str = "services/status";

    fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
        Api::namespaced(client, namespace.unwrap_or("default"))
    }

    fn trim(&mut self) {
        trim_metadata(&mut self.metadata);
        if let Some(annotations) = &mut self.metadata.annotations {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
        if let Some(status) = &mut self.status {
            status.conditions = None;
        }
        if let Some(spec) = &mut self.spec {
            spec.selector = None;
        }
    }
}

fn trim_metadata(metadata: &mut kube::api::ObjectMeta) {
    metadata.managed_fields = None;
    metadata.owner_references = None;
    metadata.self_link = None;
    metadata.generate_name = None;
}
