//! How many Nodes and Services there are, and the search among them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt as _;

use crate::kube::cache::key_of;

use crate::kube::node::view::{Readiness, UNINITIALIZED, has_taint, readiness};
use crate::kube::service::{ingress, service_type};
use crate::report::explain::Explain;
use crate::report::snapshot::Object;

/// Objects of the cluster, whoever's they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Nodes.
    pub nodes: usize,
    /// Nodes that are Ready.
    pub ready: usize,
    /// Nodes that wait to be initialised.
    pub uninitialised: usize,
    /// Services.
    pub services: usize,
    /// Services of type LoadBalancer.
    pub load_balancers: usize,
    /// Of these, those with an address in their status.
    pub with_address: usize,
}

impl Explain {
    /// How many objects this process sees.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for node in self.nodes.all() {
            totals.nodes += 1;
            totals.ready += usize::from(readiness(&node) == Readiness::Ready);
            totals.uninitialised += usize::from(has_taint(&node, UNINITIALIZED));
        }
        for service in self.services.all() {
            let wants_balancer = service_type(&service) == "LoadBalancer";
            totals.services += 1;
            totals.load_balancers += usize::from(wants_balancer);
            totals.with_address += usize::from(wants_balancer && !ingress(&service).is_empty());
        }
        totals
    }

    /// The Nodes and Services whose name has this part, in their order. A Service's name has its namespace: `default/web`.
    pub fn find(&self, part: &str) -> Vec<Object> {
        let nodes = self.nodes.matching(|node| key_of(node).contains(part));
        let services = self.services.matching(|service| key_of(service).contains(part));
        let nodes = nodes.iter().map(|node| Object::Node(key_of(&**node).to_string()));
        let service = |service: &Arc<Service>| {
            let (namespace, name) = (service.namespace().unwrap_or_default(), service.name_any());
            Object::Service(namespace, name)
        };
        nodes.chain(services.iter().map(service)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube::cache::Cache;
    use crate::kube::node::Node;
    use crate::report::snapshot::Reports;
    use crate::testing::node;

    fn explain() -> Explain {
        let (nodes, services) = (Arc::<Cache<Node>>::default(), Arc::<Cache<Service>>::default());
        nodes.fill(vec![
            node("web-1", "True", &[]),
            node("web-2", "False", &[UNINITIALIZED]),
            node("db", "True", &[]),
        ]);
        let service = |name: &str, kind: &str, ingress: serde_json::Value| {
            let service = serde_json::json!({
                "metadata": { "name": name, "namespace": "default" },
                "spec": { "type": kind },
                "status": { "loadBalancer": { "ingress": ingress } },
            });
            serde_json::from_value(service).unwrap()
        };
        services.fill(vec![
            service("web", "LoadBalancer", serde_json::json!([{ "ip": "1.1.1.1" }])),
            service("shop", "LoadBalancer", serde_json::json!([])),
            service("inside", "ClusterIP", serde_json::json!([])),
        ]);
        Explain::new(nodes, services, Reports::default())
    }

    #[test]
    fn nodes_and_services_are_counted_by_what_they_have() {
        let totals = Totals {
            nodes: 3,
            ready: 2,
            uninitialised: 1,
            services: 3,
            load_balancers: 2,
            with_address: 1,
        };
        assert_eq!(explain().totals(), totals);
    }

    #[test]
    fn a_part_of_a_name_finds_nodes_and_services() {
        let found = explain().find("web");
        assert_eq!(
            found,
            [
                Object::Node("web-1".into()),
                Object::Node("web-2".into()),
                Object::Service("default".into(), "web".into())
            ]
        );
        assert_eq!(explain().find("default/sh").len(), 1);
        assert_eq!(explain().find("nothing"), []);
    }
}
