//! Services of type `LoadBalancer` as a provider sees them. Field meanings: `wit/v0.1/services.wit`.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// Address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// `spec.externalTrafficPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrafficPolicy {
    /// Any node may forward.
    #[default]
    Cluster,
    /// Only nodes with an endpoint take traffic.
    Local,
}

/// One entry of `spec.ports`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePort {
    /// Name, when it has one.
    pub name: Option<String>,
    /// Protocol.
    pub protocol: Protocol,
    /// Port of the load balancer.
    pub port: u16,
    /// Port on the nodes.
    pub node_port: Option<u16>,
    /// Container port, a number or a name.
    pub target_port: Option<String>,
    /// `appProtocol`.
    pub app_protocol: Option<String>,
}

/// How traffic arrives at an ingress IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpMode {
    /// Delivered to the node with the address of the load balancer.
    #[default]
    Vip,
    /// Delivered to the node's or Pod's own address.
    Proxy,
}

/// Where a load balancer is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// An IP address.
    Ip(IpAddr, IpMode),
    /// A host name, never empty.
    Hostname(String),
}

/// State of one port of an ingress point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortStatus {
    /// The port.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// CamelCase reason, when it does not work.
    pub error: Option<String>,
}

/// One entry of `status.loadBalancer.ingress`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ingress {
    /// Where.
    pub endpoint: Endpoint,
    /// State of its ports, when the provider reports it.
    pub ports: Vec<PortStatus>,
}

/// A Service as a provider needs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Service {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Ports in their order.
    pub ports: Vec<ServicePort>,
    /// `spec.loadBalancerClass`.
    pub load_balancer_class: Option<String>,
    /// `spec.loadBalancerIP`.
    pub load_balancer_ip: Option<String>,
    /// Who may connect, as normalised CIDRs; empty means all.
    pub source_ranges: Vec<String>,
    /// External traffic policy.
    pub traffic_policy: TrafficPolicy,
    /// Seconds of client-IP affinity, when it is on.
    pub session_affinity_seconds: Option<u32>,
    /// Health-check port of the nodes under policy `Local`.
    pub health_check_node_port: Option<u16>,
    /// Families, primary first.
    pub ip_families: Vec<IpFamily>,
    /// `spec.externalIPs`.
    pub external_ips: Vec<String>,
    /// Status as it stands.
    pub ingress: Vec<Ingress>,
}
