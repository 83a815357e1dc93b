//! Ports of a Service at the machines behind its load balancer.

use crate::types::{Protocol, Service, ServicePort};

/// A port that traffic comes to, and where it goes.
#[derive(Debug, Clone, Copy)]
pub struct NodePort<'s, P> {
    /// At the load balancer.
    pub port: &'s ServicePort,
    /// What the cloud calls its protocol.
    pub protocol: P,
    /// At the machines.
    pub node_port: u16,
}

/// The Service's ports for a cloud that sends traffic to node ports. `protocol` gives none for what the cloud has no load balancers for; `mistake` gets that,
/// and ports without a node port, in words.
///
/// ```
/// # use cloudwit_guest_sdk::{ports::node_ports, Protocol, Service};
/// # let service = Service::new("default", "web", "1");
/// let mut wrong = Vec::new();
/// let ports = node_ports(
///     &service,
///     |port| match port.protocol {
///         Protocol::Tcp => Some("tcp"),
///         Protocol::Udp | Protocol::Sctp => None,
///     },
///     |mistake| wrong.push(mistake),
/// );
/// assert!(ports.is_empty() && wrong.is_empty());
/// ```
pub fn node_ports<'s, P>(
    service: &'s Service,
    protocol: impl Fn(&ServicePort) -> Option<P>,
    mut mistake: impl FnMut(String),
) -> Vec<NodePort<'s, P>> {
    let mut ports = Vec::with_capacity(service.ports.len());
    for port in &service.ports {
        match (protocol(port), port.node_port) {
            (Some(protocol), Some(node_port)) => ports.push(NodePort {
                port,
                protocol,
                node_port,
            }),
            (None, _) => mistake(format!(
                "there are no load balancers for {}, as port {} is",
                word(port.protocol),
                port.port
            )),
            (_, None) => mistake(format!(
                "port {} has no node port; set allocateLoadBalancerNodePorts",
                port.port
            )),
        }
    }
    ports
}

fn word(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_features_are_reported_per_port() {
        let mut service = Service::new("default", "web", "1");
        let port = |protocol, port, node_port| ServicePort {
            name: None,
            protocol,
            port,
            node_port,
            target_port: None,
            app_protocol: None,
        };
        service.ports = vec![
            port(Protocol::Tcp, 80, Some(30_080)),
            port(Protocol::Sctp, 90, Some(30_090)),
            port(Protocol::Tcp, 443, None),
        ];
        let mut wrong = Vec::new();
        let tcp = |port: &ServicePort| (port.protocol == Protocol::Tcp).then_some("tcp");
        let found: Vec<_> = node_ports(&service, tcp, |text| wrong.push(text))
            .iter()
            .map(|port| (port.port.port, port.protocol, port.node_port))
            .collect();
        assert_eq!(found, [(80, "tcp", 30_080)]);
        assert_eq!(
            wrong,
            [
                "there are no load balancers for SCTP, as port 90 is",
                "port 443 has no node port; set allocateLoadBalancerNodePorts"
            ]
        );
    }
}
