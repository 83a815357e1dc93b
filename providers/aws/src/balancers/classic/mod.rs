//! A Classic Load Balancer: how the cloud shows it, and how one should be. Types and readers; what to do about a difference is in
//! [`crate::balancers::classic::plan`].

pub mod apply;
pub mod plan;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::balancers::annotations::settings::{AccessLog, BackendProtocol, Settings};
use crate::config::Config;

/// One listener. Protocols are upper case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// `TCP`, `SSL`, `HTTP` or `HTTPS`.
    pub protocol: &'static str,
    /// Where clients connect.
    pub port: u16,
    /// How Nodes are spoken to.
    pub node_protocol: &'static str,
    /// Where Nodes listen.
    pub node_port: u16,
    /// ARN of the certificate.
    pub certificate: Option<String>,
}

/// Where health checks knock, and how patient they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthCheck {
    /// `TCP:30080`, `HTTP:32000/healthz`.
    pub target: String,
    /// Good answers until an instance counts as healthy.
    pub healthy: u16,
    /// Bad answers until it does not.
    pub unhealthy: u16,
    /// Seconds.
    pub timeout: u16,
    /// Seconds.
    pub interval: u16,
}

/// What can be switched on and off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes {
    /// Across zones.
    pub cross_zone: bool,
    /// Access logs.
    pub access_log: AccessLog,
    /// Seconds connections may take to end; none: draining is off.
    pub draining: Option<u16>,
    /// Seconds.
    pub idle_timeout: u16,
}

/// A load balancer as it should be. The security groups and subnets are ids.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Not on the Internet.
    pub internal: bool,
    /// Listeners.
    pub listeners: Vec<Listener>,
    /// Health checks.
    pub health: HealthCheck,
    /// Attributes.
    pub attributes: Attributes,
    /// Whether all node ports get the PROXY protocol.
    pub proxy_protocol: bool,
    /// TLS policy of the cloud for all listeners with TLS.
    pub tls_policy: Option<String>,
    /// Tags that have to be there; others may.
    pub tags: Vec<Pair>,
    /// Subnets.
    pub subnets: Vec<String>,
    /// Security groups.
    pub groups: Vec<String>,
}

/// A load balancer as the cloud shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// Where it is reached.
    pub dns_name: String,
    /// Not on the Internet.
    pub internal: bool,
    /// Listeners with the policies that are set on them.
    pub listeners: Vec<(Listener, Vec<String>)>,
    /// Node ports with the policies that are set on them.
    pub backends: Vec<(u16, Vec<String>)>,
    /// Names of its policies, but for stickiness.
    pub policies: Vec<String>,
    /// Health checks; none when not known.
    pub health: Option<HealthCheck>,
    /// Attributes; none when not known.
    pub attributes: Option<Attributes>,
    /// Tags.
    pub tags: Vec<Pair>,
    /// Subnets.
    pub subnets: Vec<String>,
    /// Security groups.
    pub groups: Vec<String>,
    /// Registered instances.
    pub instances: Vec<String>,
}

/// The listeners of a Service's ports; ports without node port have none.
pub fn listeners(service: &Service, settings: &Settings) -> Vec<Listener> {
    let listener = |port: &ServicePort| {
        let tls = settings.speaks_tls(port);
        let (protocol, node_protocol) = match (tls, settings.backend) {
            (true, None | Some(BackendProtocol::Tcp)) => ("SSL", "TCP"),
            (true, Some(BackendProtocol::Ssl)) => ("SSL", "SSL"),
            (true, Some(BackendProtocol::Http)) => ("HTTPS", "HTTP"),
            (true, Some(BackendProtocol::Https)) => ("HTTPS", "HTTPS"),
            (false, Some(BackendProtocol::Http)) => ("HTTP", "HTTP"),
            (false, _) => ("TCP", "TCP"),
        };
        Some(Listener {
            protocol,
            port: port.port,
            node_protocol,
            node_port: port.node_port?,
            certificate: settings.certificate.clone().filter(|_| tls),
        })
    };
    service.ports.iter().filter_map(listener).collect()
}

/// The health check: the first port's own, the Service's for `externalTrafficPolicy: Local`, kube-proxy's where the operator chose so;
/// annotations win.
pub fn health_check(service: &Service, settings: &Settings, config: &Config) -> HealthCheck {
    let asked = &settings.health;
    let first = service.ports.iter().find_map(|port| port.node_port).unwrap_or_default();
    let (protocol, port, path) = match service.health_check_node_port {
        Some(port) => ("HTTP", port, "/healthz"),
        None => match config.shared_health_check() {
            Some((port, path)) => ("HTTP", port, path),
            None => (if settings.backend_tls { "SSL" } else { "TCP" }, first, "/"),
        },
    };
    let protocol = asked.protocol.unwrap_or(protocol);
    let port = asked.port.map_or(port, |port| port.unwrap_or(first));
    let path = match protocol {
        "HTTP" | "HTTPS" => asked.path.as_deref().unwrap_or(path),
        _ => "",
    };
    HealthCheck {
        target: format!("{protocol}:{port}{path}"),
        healthy: asked.healthy.unwrap_or(2),
        unhealthy: asked.unhealthy.unwrap_or(6),
        timeout: asked.timeout.unwrap_or(5),
        interval: asked.interval.unwrap_or(10),
    }
}

impl Attributes {
    /// As the annotations request.
    pub fn wanted(settings: &Settings) -> Self {
        Self {
            cross_zone: settings.cross_zone,
            access_log: settings.access_log.clone(),
            draining: settings.draining,
            idle_timeout: settings.idle_timeout,
        }
    }

    /// Reads `DescribeLoadBalancerAttributes`.
    pub fn read(answer: &Element) -> Option<Self> {
        let all = answer.child("LoadBalancerAttributes")?;
        let text = |part: &str, key: &str| all.child(part).and_then(|part| part.text(key)).unwrap_or_default();
        let on = |part| text(part, "Enabled") == "true";
        let number = |part, key| text(part, key).parse().unwrap_or_default();
        Some(Self {
            cross_zone: on("CrossZoneLoadBalancing"),
            access_log: AccessLog {
                enabled: on("AccessLog"),
                interval: number("AccessLog", "EmitInterval"),
                bucket: text("AccessLog", "S3BucketName").into(),
                prefix: text("AccessLog", "S3BucketPrefix").into(),
            },
            draining: on("ConnectionDraining").then(|| number("ConnectionDraining", "Timeout")),
            idle_timeout: number("ConnectionSettings", "IdleTimeout"),
        })
    }

    /// Whether these are as desired; what is switched off has no details.
    pub fn fit(&self, wanted: &Self) -> bool {
        let logs = &wanted.access_log;
        let same_logs = if logs.enabled {
            self.access_log == *logs
        } else {
            !self.access_log.enabled
        };
        same_logs
            && (self.cross_zone, self.draining, self.idle_timeout)
                == (wanted.cross_zone, wanted.draining, wanted.idle_timeout)
    }
}

/// Reads the load balancer in an answer of `DescribeLoadBalancers`; without tags and attributes, which other calls show.
pub fn read(answer: &Element) -> Option<Seen> {
    read_all(answer).next().map(|(_, seen)| seen)
}

/// The same of all in the answer, with their names.
pub fn read_all(answer: &Element) -> impl Iterator<Item = (&str, Seen)> {
    let all = answer.all(&["LoadBalancerDescriptions", "member"]);
    all.map(|one| (one.text("LoadBalancerName").unwrap_or_default(), read_one(one)))
}

fn read_one(one: &Element) -> Seen {
    let members = |name: &str| one.child(name).map(texts).unwrap_or_default();
    let listeners = one.all(&["ListenerDescriptions", "member"]);
    let backends = one.all(&["BackendServerDescriptions", "member"]);
    Seen {
        dns_name: one.text("DNSName").unwrap_or_default().into(),
        internal: one.text("Scheme") == Some("internal"),
        listeners: listeners
            .filter_map(|item| Some((read_listener(item.child("Listener")?)?, policy_names(item))))
            .collect(),
        backends: backends
            .filter_map(|item| Some((item.text("InstancePort")?.parse().ok()?, policy_names(item))))
            .collect(),
        policies: one.at(&["Policies", "OtherPolicies"]).map(texts).unwrap_or_default(),
        health: one.child("HealthCheck").and_then(read_health),
        attributes: None,
        tags: Vec::new(),
        subnets: members("Subnets"),
        groups: members("SecurityGroups"),
        instances: one
            .child("Instances")
            .map(|all| {
                all.children("member")
                    .filter_map(|item| item.text("InstanceId").map(Into::into))
                    .collect()
            })
            .unwrap_or_default(),
    }
}

fn read_listener(item: &Element) -> Option<Listener> {
    let number = |name| item.text(name)?.parse().ok();
    Some(Listener {
        protocol: protocol(item.text("Protocol")?),
        port: number("LoadBalancerPort")?,
        node_protocol: protocol(item.text("InstanceProtocol").or(item.text("Protocol"))?),
        node_port: number("InstancePort")?,
        certificate: item
            .text("SSLCertificateId")
            .filter(|id| !id.is_empty())
            .map(Into::into),
    })
}

/// The cloud answers in either case. Protocols added later equal no desired one.
fn protocol(text: &str) -> &'static str {
    let known = ["TCP", "SSL", "HTTP", "HTTPS"];
    known
        .into_iter()
        .find(|known| known.eq_ignore_ascii_case(text))
        .unwrap_or("?")
}

fn read_health(item: &Element) -> Option<HealthCheck> {
    let number = |name| item.text(name)?.parse().ok();
    Some(HealthCheck {
        target: item.text("Target")?.into(),
        healthy: number("HealthyThreshold")?,
        unhealthy: number("UnhealthyThreshold")?,
        timeout: number("Timeout")?,
        interval: number("Interval")?,
    })
}

fn policy_names(item: &Element) -> Vec<String> {
    item.child("PolicyNames").map(texts).unwrap_or_default()
}

/// The texts of a list's members.
pub fn texts(list: &Element) -> Vec<String> {
    list.children("member").map(|item| item.own_text().into()).collect()
}
