//! Names that upstream's controller gives. They MUST NOT change: what it left behind is adopted by them.

use cloudwit_guest_sdk::keys::{Hash, Keys};
use cloudwit_guest_sdk::prelude::*;
use data_encoding::HEXLOWER;

use crate::config::{Global, given};
use crate::place::Place;

/// Letters of a cluster's id, and of a hash in a name.
const ID: usize = 16;

/// Where kube-proxy reports whether a Node takes traffic.
pub const NODE_CHECK: (u16, &str) = (10256, "/healthz");

/// Firewall rule of a load balancer's ports.
pub fn firewall(balancer: &str) -> String {
    format!("k8s-fw-{balancer}")
}

/// What names what several load balancers share: as configured, else from the cluster's name.
pub fn cluster_id(global: &Global, place: &Place, cluster: &str, keys: Keys) -> String {
    match given(&global.cluster_id) {
        Some(id) => id.into(),
        None => hash(keys, Hash::Sha256, &format!("{}/{cluster}", place.project)),
    }
}

/// Health check of all Nodes.
pub fn node_check(cluster_id: &str) -> String {
    format!("k8s-{cluster_id}-node")
}

/// Firewall rule of an external load balancer's health check.
pub fn external_check_firewall(check: &str) -> String {
    if check.starts_with("k8s-") {
        format!("{check}-http-hc")
    } else {
        format!("k8s-{check}-http-hc")
    }
}

/// Firewall rule of an internal load balancer's health check.
pub fn internal_check_firewall(check: &str) -> String {
    format!("{check}-hc")
}

/// Instance group, one in each zone.
pub fn group(cluster_id: &str) -> String {
    format!("k8s-ig--{cluster_id}")
}

/// Backend service that all internal load balancers of a protocol share on request.
pub fn shared_backend(cluster_id: &str, protocol: &str, affinity: bool, keys: Keys) -> String {
    let affinity = hash(keys, Hash::Sha1, if affinity { "ClientIP" } else { "None" });
    format!(
        "k8s-{cluster_id}-internal-{}-nmv1-{affinity}",
        protocol.to_ascii_lowercase()
    )
}

fn hash(keys: Keys, hash: Hash, text: &str) -> String {
    let mut hex = HEXLOWER.encode(&keys.digest(hash, text.as_bytes()));
    hex.truncate(ID);
    hex
}

/// The description of a resource, by which upstream finds its owner.
pub fn description(service: &Service, ip: Option<&str>) -> String {
    let name = format!("{}/{}", service.namespace, service.name);
    match ip {
        Some(ip) => format!(r#"{{"kubernetes.io/service-name":"{name}", "kubernetes.io/service-ip":"{ip}"}}"#),
        None => format!(r#"{{"kubernetes.io/service-name":"{name}"}}"#),
    }
}

/// Key of the state while a deletion takes away what load balancers with this kind of check share.
pub fn deleted_check(kind: &str) -> String {
    format!("balancers/{kind}/deleted")
}

#[cfg(test)]
mod tests {
    use cloudwit_guest_sdk::testing::FakeHost;

    use super::*;

    #[test]
    fn names_are_upstreams() {
        let host = FakeHost::new();
        let keys = host.context().keys();
        assert_eq!(firewall("a1"), "k8s-fw-a1");
        let node = node_check("0123456789abcdef");
        assert_eq!(external_check_firewall(&node), "k8s-0123456789abcdef-node-http-hc");
        assert_eq!(external_check_firewall("a1"), "k8s-a1-http-hc");
        assert_eq!(
            (&*internal_check_firewall(&node), &*internal_check_firewall("a1")),
            ("k8s-0123456789abcdef-node-hc", "a1-hc")
        );
        assert_eq!(group("id"), "k8s-ig--id");
        // printf None | sha1sum
        assert_eq!(
            shared_backend("id", "TCP", false, keys),
            "k8s-id-internal-tcp-nmv1-6eef6648406c333a"
        );
    }
}
