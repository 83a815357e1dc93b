//! Implements `kube`'s resource traits for [`Node`].
//!
//! Apart from the type, so that what decides about Nodes imports no client.

use std::borrow::Cow;

use k8s_openapi::ClusterResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;

use crate::kube::node::Node;

impl Resource for Node {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Node".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "nodes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
