//! Members: Nodes that have an address, and which of them a selector takes. Pure.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets::address;

use crate::balancers::octavia::Member;

/// A member for each Node that has an address. A Node without one comes with a later call.
pub fn wanted(targets: &[&Target], family: Option<IpFamily>, node_port: u16, monitor_port: Option<i64>) -> Vec<Member> {
    let mut members = Vec::new();
    for target in targets {
        if let Some(address) = address(&target.node, family) {
            members.push(Member {
                id: String::new(),
                name: target.node.name.clone(),
                address: address.into(),
                port: node_port.into(),
                monitor_port,
            });
        }
    }
    members
}

/// The server's id in the provider id of a Node, with or without region.
pub fn server_id(node: &NodeRef) -> Option<&str> {
    let rest = node.provider_id.as_deref()?.strip_prefix(crate::PROVIDER_ID_PREFIX)?;
    Some(rest.rsplit_once('/').map_or(rest, |(_, id)| id)).filter(|id| !id.is_empty())
}

/// The targets whose Nodes have all these labels; an empty value matches any.
pub fn selected<'t>(targets: &'t [Target], nodes: &[ClusterNode], selector: &[(&str, &str)]) -> Vec<&'t Target> {
    let takes = |node: &ClusterNode| {
        selector.iter().all(|(key, value)| {
            node.labels
                .iter()
                .any(|label| label.key == **key && (value.is_empty() || label.value == *value))
        })
    };
    let named = |target: &&Target| {
        nodes
            .iter()
            .any(|node| node.ref_.name == target.node.name && takes(node))
    };
    targets.iter().filter(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str, addresses: &[(AddressKind, &str)]) -> Target {
        let mut node = NodeRef::named(name);
        node.addresses = addresses
            .iter()
            .map(|(kind, value)| Address::new(*kind, *value))
            .collect();
        Target { node, ready: true }
    }

    #[test]
    fn a_node_without_address_is_no_member() {
        let one = target("a", &[(AddressKind::InternalIp, "10.0.0.1")]);
        let two = target("b", &[(AddressKind::InternalIp, "10.0.0.2")]);
        let members = wanted(&[&one, &target("c", &[]), &two], None, 30080, Some(31000));
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!((members[0].port, members[0].monitor_port), (30080, Some(31000)));
    }

    #[test]
    fn provider_ids_with_and_without_region_name_the_server() {
        let id = |text: &str| server_id(&NodeRef::named("n").with_provider_id(text)).map(String::from);
        assert_eq!(id("openstack:///s-1").as_deref(), Some("s-1"));
        assert_eq!(id("openstack://region/s-1").as_deref(), Some("s-1"));
        assert_eq!(id("aws:///z/i-1"), None);
        assert_eq!(id("openstack:///"), None);
    }

    #[test]
    fn a_selector_takes_nodes_with_all_its_labels() {
        let targets = ["a", "b", "gone"].map(|name| target(name, &[]));
        let node = |name: &str, labels: &[(&str, &str)]| ClusterNode {
            ref_: NodeRef::named(name),
            labels: labels.iter().map(|(key, value)| Pair::new(*key, *value)).collect(),
            pod_cidrs: Vec::new(),
        };
        let nodes = [
            node("a", &[("role", "edge"), ("x", "1")]),
            node("b", &[("role", "edge")]),
        ];
        let names = |selector: &[(&str, &str)]| {
            selected(&targets, &nodes, selector)
                .iter()
                .map(|target| target.node.name.clone())
                .collect::<String>()
        };
        assert_eq!(names(&[("role", "edge")]), "ab");
        assert_eq!(names(&[("role", ""), ("x", "1")]), "a");
        assert_eq!(names(&[("role", "core")]), "");
    }
}
