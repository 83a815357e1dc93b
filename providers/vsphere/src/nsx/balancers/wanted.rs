//! What a Service requests of its load balancer. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::targets;

/// One port, which is one virtual server with its pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its protocol.
    pub protocol: Protocol,
    /// At the load balancer.
    pub port: u16,
    /// At the Nodes.
    pub node_port: u16,
    /// The tag that its objects have, such as `TCP/80`. It MUST NOT change: upstream's objects are found by it.
    pub tag: String,
}

impl Port {
    /// The end of its objects' ids.
    pub fn id(&self) -> String {
        self.tag.to_ascii_lowercase().replace('/', "-")
    }
}

/// The ports of a Service.
///
/// # Errors
/// `invalid` for what NSX does not have, all at once.
pub fn ports(service: &Service) -> Result<Vec<Port>, Failure> {
    let (mut ports, mut wrong) = (Vec::new(), Vec::new());
    for port in &service.ports {
        let protocol = match port.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => {
                wrong.push(String::from("there are no load balancers for SCTP"));
                continue;
            }
        };
        let Some(node_port) = port.node_port else {
            wrong.push(format!(
                "port {} has no node port; set allocateLoadBalancerNodePorts",
                port.port
            ));
            continue;
        };
        ports.push(Port {
            protocol: port.protocol,
            port: port.port,
            node_port,
            tag: format!("{protocol}/{}", port.port),
        });
    }
    if wrong.is_empty() {
        Ok(ports)
    } else {
        Err(Failure::invalid(wrong.join("; ")))
    }
}

/// Addresses of the Nodes behind it, and their names: the first internal one of the Service's family, else of any.
pub fn members(service: &Service, targets: &[Target]) -> BTreeMap<String, String> {
    let family = service.ip_families.first().copied();
    let address = |node: &NodeRef| {
        let own = family.and_then(|family| targets::address(node, Some(family)));
        own.or_else(|| targets::address(node, None)).map(str::to_owned)
    };
    let known = targets
        .iter()
        .filter_map(|target| Some((address(&target.node)?, target.node.name.clone())));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(protocol: Protocol, port: u16, node_port: Option<u16>) -> ServicePort {
        ServicePort {
            name: None,
            protocol,
            port,
            node_port,
            target_port: None,
            app_protocol: None,
        }
    }

    #[test]
    fn ports_have_upstream_tags_and_missing_ones_are_reported() {
        let mut service = Service::new("default", "web", "1");
        service.ports = vec![
            port(Protocol::Tcp, 80, Some(30080)),
            port(Protocol::Udp, 53, Some(30053)),
        ];
        let tags: Vec<String> = ports(&service).unwrap().into_iter().map(|port| port.tag).collect();
        assert_eq!(tags, ["TCP/80", "UDP/53"]);
        assert_eq!(ports(&service).unwrap()[0].id(), "tcp-80");
        service.ports = vec![port(Protocol::Sctp, 1, Some(1)), port(Protocol::Tcp, 2, None)];
        let failure = ports(&service).unwrap_err();
        assert!(
            failure.message.contains("SCTP") && failure.message.contains("port 2"),
            "{failure:?}"
        );
    }

    #[test]
    fn members_are_internal_addresses_of_the_services_family() {
        let mut node = NodeRef::named("one");
        node.addresses = vec![
            Address::new(AddressKind::ExternalIp, "192.0.2.1"),
            Address::new(AddressKind::InternalIp, "fd00::1"),
            Address::new(AddressKind::InternalIp, "10.0.0.1"),
        ];
        let targets = [
            Target { node, ready: true },
            Target {
                node: NodeRef::named("new"),
                ready: false,
            },
        ];
        let mut service = Service::new("default", "web", "1");
        let of = |service: &Service| members(service, &targets).into_keys().collect::<Vec<_>>();
        assert_eq!(of(&service), ["fd00::1"], "the first, as upstream");
        service.ip_families = vec![IpFamily::Ipv4];
        assert_eq!(of(&service), ["10.0.0.1"]);
    }
}
