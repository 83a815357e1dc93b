//! The values of a Service's annotations, all checked.
//!
//! [`Settings::read`] turns them into values and finds everything about the Service that this cloud cannot do, in one `invalid`, before
//! any request to the cloud.

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::prelude::*;

use crate::balancers::annotations::values::{flag, number, pairs, strings, tags, text, written};
use crate::balancers::annotations::{ANNOTATIONS, Kind};

/// How Nodes are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendProtocol {
    /// Plain TCP.
    Tcp,
    /// TLS.
    Ssl,
    /// HTTP.
    Http,
    /// HTTPS.
    Https,
}

/// Where health checks connect, as far as annotations set it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthSettings {
    /// Upper case.
    pub protocol: Option<&'static str>,
    /// Some(None) for the traffic's own.
    pub port: Option<Option<u16>>,
    /// For HTTP and HTTPS.
    pub path: Option<String>,
    /// Good answers until a target counts as healthy.
    pub healthy: Option<u16>,
    /// Bad answers until it does not.
    pub unhealthy: Option<u16>,
    /// Seconds.
    pub timeout: Option<u16>,
    /// Seconds.
    pub interval: Option<u16>,
}

/// Access logs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessLog {
    /// Whether they are written.
    pub enabled: bool,
    /// Minutes.
    pub interval: u16,
    /// S3 bucket.
    pub bucket: String,
    /// Prefix in it.
    pub prefix: String,
}

/// All settings of the annotations, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Not on the Internet.
    pub internal: bool,
    /// Ids or names.
    pub subnets: Vec<String>,
    /// Instead of the managed group.
    pub security_groups: Vec<String>,
    /// Beside it.
    pub extra_security_groups: Vec<String>,
    /// Further tags.
    pub tags: Vec<Pair>,
    /// Labels that Nodes must have; an empty value requires the key alone.
    pub node_labels: Vec<Pair>,
    /// PROXY protocol (Classic).
    pub proxy_protocol: bool,
    /// How Nodes are spoken to.
    pub backend: Option<BackendProtocol>,
    /// Whether a health check by the backend's own protocol uses TLS.
    pub backend_tls: bool,
    /// ARN.
    pub certificate: Option<String>,
    /// Ports that use TLS; none for all.
    tls_ports: Option<Vec<String>>,
    /// Name of a TLS policy.
    pub tls_policy: Option<String>,
    /// Access logs.
    pub access_log: AccessLog,
    /// Seconds connections may take to end; none: draining is off.
    pub draining: Option<u16>,
    /// Seconds.
    pub idle_timeout: u16,
    /// Across zones.
    pub cross_zone: bool,
    /// Health checks.
    pub health: HealthSettings,
    /// One for each subnet.
    pub eip_allocations: Vec<String>,
    /// One for each subnet.
    pub private_addresses: Vec<String>,
    /// Key and `true` or `false`.
    pub target_attributes: Vec<Pair>,
    /// What counts in part only, for messages.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads them for a load balancer of this kind.
    ///
    /// # Errors
    /// `invalid` with everything that is wrong with the Service, not only with its annotations.
    pub fn read(service: &Service, kind: Kind) -> Result<Self, Failure> {
        let (settings, sound) = Self::read_anyhow(service, kind);
        sound.map(|()| settings)
    }

    /// For bringing targets in line: with a default for what is wrong, and whether all is right. A mistake does not keep new Nodes from a load
    /// balancer that works.
    ///
    /// # Errors
    /// `invalid` when it is wrong which Nodes are meant.
    pub fn for_targets(service: &Service, kind: Kind) -> Result<(Self, bool), Failure> {
        let (settings, sound) = Self::read_anyhow(service, kind);
        let asked = ANNOTATIONS.read(service).is_set("target-node-labels");
        match sound {
            Err(failure) if asked && settings.node_labels.is_empty() => Err(failure),
            sound => Ok((settings, sound.is_ok())),
        }
    }

    fn read_anyhow(service: &Service, kind: Kind) -> (Self, Result<(), Failure>) {
        let mut reader = ANNOTATIONS.read(service);
        let read = &mut reader;
        let classic = kind == Kind::Classic;
        check_service(read, service, kind);
        let mut warnings = Vec::new();
        warn_of_type(service, &mut warnings);
        let backend = backend(read, &mut warnings);
        let settings = Self {
            internal: read.text("internal").is_some_and(|text| !matches!(text, "" | "false")),
            subnets: strings(read, "subnets"),
            security_groups: strings(read, "security-groups"),
            extra_security_groups: strings(read, "extra-security-groups"),
            tags: tags(read, &mut warnings),
            node_labels: pairs(read, "target-node-labels"),
            proxy_protocol: classic
                && written(read, "proxy-protocol")
                && read.word("proxy-protocol", &[("*", true)]) == Some(true),
            backend,
            // Upstream reads it in any case here, and only here.
            backend_tls: text(read, "backend-protocol")
                .is_some_and(|text| ["https", "ssl"].iter().any(|tls| text.eq_ignore_ascii_case(tls))),
            certificate: text(read, "ssl-cert"),
            tls_ports: text(read, "ssl-ports")
                .filter(|ports| ports != "*")
                .map(|ports| ports.split(',').map(|port| port.trim_ascii().to_owned()).collect()),
            tls_policy: text(read, "ssl-negotiation-policy"),
            access_log: access_log(read, classic),
            draining: match classic && flag(read, "connection-draining-enabled") {
                true => number(read, "connection-draining-timeout", 1, 3600),
                false => None,
            },
            idle_timeout: if classic {
                number(read, "connection-idle-timeout", 1, 4000).unwrap_or(60)
            } else {
                60
            },
            cross_zone: flag(read, "cross-zone-load-balancing-enabled"),
            health: health(read, classic),
            eip_allocations: strings(read, "eip-allocations"),
            private_addresses: strings(read, "private-ipv4-addresses"),
            target_attributes: pairs(read, "target-group-attributes"),
            warnings,
        };
        settings.check(read, service, kind);
        (settings, reader.finish())
    }

    /// Whether this port serves TLS to clients: there is a certificate, and the port is named or all are.
    pub fn speaks_tls(&self, port: &ServicePort) -> bool {
        let number = port.port.to_string();
        let name = port.name.as_deref();
        let named = |ports: &Vec<String>| {
            ports
                .iter()
                .any(|one| *one == number || name.is_some_and(|name| one.eq_ignore_ascii_case(name)))
        };
        self.certificate.is_some() && self.tls_ports.as_ref().is_none_or(named)
    }

    /// Whether the Service names this security group, which is then the operator's in any case.
    pub fn names_group(service: &Service, id: &str) -> bool {
        let mut read = ANNOTATIONS.read(service);
        ["security-groups", "extra-security-groups"]
            .into_iter()
            .any(|key| strings(&mut read, key).iter().any(|one| one == id))
    }

    /// What depends on more than one annotation.
    fn check(&self, read: &mut Reader<'_>, service: &Service, kind: Kind) {
        if kind == Kind::Network && !self.extra_security_groups.is_empty() {
            read.wrong::<()>("extra-security-groups", "absent: a Network Load Balancer takes none");
        }
        let named = text(read, "backend-protocol").is_some_and(|text| BACKENDS.iter().all(|(word, _)| *word != text));
        if kind == Kind::Classic && named && service.ports.iter().any(|port| self.speaks_tls(port)) {
            read.wrong::<()>(
                "backend-protocol",
                "tcp or ssl or http or https where there is a certificate",
            );
        }
        if kind == Kind::Classic && !self.target_attributes.is_empty() {
            read.wrong::<()>(
                "target-group-attributes",
                "absent: a Classic Load Balancer has no target groups",
            );
        }
        let udp = service.ports.iter().any(|port| port.protocol == Protocol::Udp);
        for Pair { key, value } in &self.target_attributes {
            let known = matches!(key.as_str(), "preserve_client_ip.enabled" | "proxy_protocol_v2.enabled");
            if !known || !matches!(value.as_str(), "true" | "false") {
                let allowed = "preserve_client_ip.enabled or proxy_protocol_v2.enabled, each =true or =false";
                read.wrong::<()>("target-group-attributes", allowed);
            } else if udp && key.starts_with("preserve") && value == "false" {
                read.wrong::<()>(
                    "target-group-attributes",
                    "without preserve_client_ip.enabled=false: UDP ports always keep the client's address",
                );
            }
        }
        if self.access_log.enabled && self.access_log.bucket.is_empty() {
            read.wrong::<()>(
                "access-log-s3-bucket-name",
                "the name of a bucket when access logs are enabled",
            );
        }
        let count = self.eip_allocations.len();
        if count > 0 && self.internal {
            read.wrong::<()>("eip-allocations", "absent for an internal load balancer");
        }
        for (key, list) in [
            ("eip-allocations", &self.eip_allocations),
            ("private-ipv4-addresses", &self.private_addresses),
        ] {
            if kind == Kind::Network && !list.is_empty() && !self.subnets.is_empty() && list.len() != self.subnets.len()
            {
                read.wrong::<()>(key, "a list with one entry for each of the subnets");
            }
        }
    }
}

const BACKENDS: &[(&str, BackendProtocol)] = &[
    ("tcp", BackendProtocol::Tcp),
    ("ssl", BackendProtocol::Ssl),
    ("http", BackendProtocol::Http),
    ("https", BackendProtocol::Https),
];

/// What the load balancers of this cloud cannot do, regardless of annotations (`clouds/aws.md`, "Common refusals").
fn check_service(read: &mut Reader<'_>, service: &Service, kind: Kind) {
    if service.session_affinity_seconds.is_some() {
        read.mistake("sessionAffinity is ClientIP, but the load balancers of AWS know only None");
    }
    if let Some(address) = service
        .load_balancer_ip
        .as_deref()
        .filter(|address| !address.is_empty())
    {
        read.mistake(format!(
            "loadBalancerIP is {address}, but the load balancers of AWS choose their addresses: remove it"
        ));
    }
    let Some(first) = service.ports.first() else {
        read.mistake("the Service has no ports");
        return;
    };
    if service.ports.iter().any(|port| port.protocol != first.protocol) {
        read.mistake(
            "the ports have different protocols, but a load balancer of AWS has one: make one Service for each",
        );
    }
    let known = |port: &ServicePort| match kind {
        Kind::Network => port.protocol != Protocol::Sctp,
        _ => port.protocol == Protocol::Tcp,
    };
    if let Some(port) = service.ports.iter().find(|port| !known(port)) {
        let (can, kind) = match kind {
            Kind::Network => ("TCP and UDP", "Network"),
            _ => ("TCP", "Classic"),
        };
        read.mistake(format!(
            "port {} is not {can}, which is all a {kind} Load Balancer can do",
            port.port
        ));
    }
    if service.ports.iter().all(|port| port.node_port.is_none()) {
        read.mistake(
            "no port has a node port, but the load balancer needs one: set allocateLoadBalancerNodePorts to true",
        );
    }
}

fn access_log(read: &mut Reader<'_>, classic: bool) -> AccessLog {
    let enabled = flag(read, "access-log-enabled");
    let interval = match classic && enabled && written(read, "access-log-emit-interval") {
        true => read.word("access-log-emit-interval", &[("5", 5), ("60", 60)]),
        false => None,
    };
    AccessLog {
        enabled,
        interval: interval.unwrap_or(60),
        bucket: text(read, "access-log-s3-bucket-name").unwrap_or_default(),
        prefix: text(read, "access-log-s3-bucket-prefix").unwrap_or_default(),
    }
}

fn health(read: &mut Reader<'_>, classic: bool) -> HealthSettings {
    let protocols: &[_] = &[("tcp", "TCP"), ("http", "HTTP"), ("https", "HTTPS"), ("ssl", "SSL")];
    let protocols = if classic { protocols } else { &protocols[..3] };
    let port = match text(read, "healthcheck-port").as_deref() {
        None => None,
        Some("traffic-port") => Some(None),
        Some(port) => match port.parse::<u16>() {
            Ok(port) if port > 0 => Some(Some(port)),
            _ => read.wrong("healthcheck-port", "traffic-port or a number from 1 to 65535"),
        },
    };
    let path = text(read, "healthcheck-path");
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        read.wrong::<()>("healthcheck-path", "a path that begins with /");
    }
    let health = HealthSettings {
        protocol: match written(read, "healthcheck-protocol") {
            true => read.word("healthcheck-protocol", protocols),
            false => None,
        },
        port,
        path,
        healthy: number(read, "healthcheck-healthy-threshold", 2, 10),
        unhealthy: number(read, "healthcheck-unhealthy-threshold", 2, 10),
        timeout: number(read, "healthcheck-timeout", 2, 120),
        interval: number(read, "healthcheck-interval", 5, 300),
    };
    let interval = health.interval.unwrap_or(if classic { 10 } else { 30 });
    if health.timeout.unwrap_or(if classic { 5 } else { 0 }) >= interval {
        read.wrong::<()>(
            "healthcheck-timeout",
            &format!("less than the interval, which is {interval}"),
        );
    }
    health
}

/// As upstream has it: only these very words count, and everything else is TCP.
fn backend(read: &mut Reader<'_>, warnings: &mut Vec<String>) -> Option<BackendProtocol> {
    let text = text(read, "backend-protocol")?;
    let known = BACKENDS.iter().find(|(word, _)| *word == text);
    if known.is_none() {
        let key = ANNOTATIONS.key("backend-protocol");
        warnings.push(format!(
            "{key} is \"{text}\", which counts as tcp; write tcp, ssl, http or https"
        ));
    }
    known.map(|(_, protocol)| *protocol)
}

fn warn_of_type(service: &Service, warnings: &mut Vec<String>) {
    let key = ANNOTATIONS.key("type");
    let text = service.annotation(&key).unwrap_or_default();
    if !matches!(text, "" | "classic" | "nlb" | "nlb-ip" | "external") {
        warnings.push(format!(
            "{key} is \"{text}\", which counts as classic; write classic or nlb"
        ));
    }
}
