//! Annotations of Services.

mod links;
mod ports;

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

pub use links::Link;
pub use ports::{PortSettings, ProbeSettings, of_app_protocol};

/// All that are read.
pub const TABLE: Table = Table::new(
    "service.beta.kubernetes.io/azure-",
    &[
        Annotation::new("load-balancer-internal", "false", "`true`: no address on the Internet"),
        Annotation::new(
            "load-balancer-internal-subnet",
            "",
            "subnet of the internal address. Default: config `subnetName`",
        ),
        Annotation::new(
            "load-balancer-ipv4",
            "",
            "the IPv4 address: a public one that exists, or a free one of the subnet. Default: `spec.loadBalancerIP`",
        ),
        Annotation::new("load-balancer-ipv6", "", "the same for IPv6"),
        Annotation::new(
            "load-balancer-resource-group",
            "",
            "resource group of the public address. Default: that of the load balancer",
        ),
        Annotation::new("pip-name", "", "the public address of this name, which has to exist"),
        Annotation::new("pip-name-ipv6", "", "the same for IPv6 in a Service of two families"),
        Annotation::new(
            "pip-prefix-id",
            "",
            "resource id of the prefix that a new public address is of",
        ),
        Annotation::new(
            "pip-prefix-id-ipv6",
            "",
            "the same for IPv6 in a Service of two families",
        ),
        Annotation::new(
            "dns-label-name",
            "",
            "DNS label of a public address that is made for the Service",
        ),
        Annotation::new(
            "load-balancer-tcp-idle-timeout",
            "4",
            "minutes without traffic after which a connection ends, 4 to 100",
        ),
        Annotation::new(
            "load-balancer-disable-tcp-reset",
            "false",
            "`true`: such a connection ends without a reset",
        ),
        Annotation::new(
            "load-balancer-health-probe-protocol",
            "",
            "`tcp`, `http` or `https`. Default: TCP; HTTP where only Nodes with a Pod take traffic",
        ),
        Annotation::new(
            "load-balancer-health-probe-request-path",
            "/",
            "path of HTTP and HTTPS probes",
        ),
        Annotation::new(
            "load-balancer-health-probe-interval",
            "5",
            "seconds between probes, 5 to 119",
        ),
        Annotation::new(
            "load-balancer-health-probe-num-of-probe",
            "2",
            "failed probes until a Node is out; times the interval less than 120",
        ),
        Annotation::new(ports::NO_RULE, "false", "`true`: no rule for this port of the Service"),
        Annotation::new(ports::NO_PROBE, "false", "`true`: a rule without a probe"),
        Annotation::new(
            ports::PROBE_PROTOCOL,
            "",
            "`tcp`, `http` or `https`. Default: `appProtocol` of the port, then the protocol of all ports",
        ),
        Annotation::new(
            ports::PROBE_PORT,
            "",
            "port that is probed: name or number of a port of the Service for its node port, or a port of the Nodes",
        ),
        Annotation::new(
            ports::PROBE_PATH,
            "",
            "path of HTTP and HTTPS probes. Default: that of all ports",
        ),
        Annotation::new(
            ports::PROBE_INTERVAL,
            "",
            "seconds between probes, 5 to 119. Default: that of all ports",
        ),
        Annotation::new(
            ports::PROBE_COUNT,
            "",
            "failed probes until a Node is out. Default: that of all ports",
        ),
        Annotation::new(
            "allowed-service-tags",
            "",
            "service tags of Azure that may connect, between commas",
        ),
        Annotation::new(
            "allowed-ip-ranges",
            "",
            "networks that may connect. Default: `spec.loadBalancerSourceRanges`",
        ),
        Annotation::new(
            "deny-all-except-load-balancer-source-ranges",
            "false",
            "`true`: the networks that may connect are the only ones, also in the virtual network",
        ),
        Annotation::new(
            "disable-load-balancer-floating-ip",
            "false",
            "`true`: packets are for the node port instead of the address of the load balancer",
        ),
        Annotation::new(
            "load-balancer-enable-high-availability-ports",
            "false",
            "`true`: one rule for all ports and protocols of an internal address",
        ),
        Annotation::new(
            "disable-load-balancer-nsg-rule",
            "false",
            "`true`: the security group is left alone",
        ),
        Annotation::new(
            "pls-create",
            "false",
            "`true`: a private link service at the address, which is internal or without floating IP",
        ),
        Annotation::new(
            "pls-name",
            "",
            "name of the private link service. Default: `pls-` and the name of the frontend",
        ),
        Annotation::new(
            "pls-resource-group",
            "",
            "its resource group. Default: config `privateLinkServiceResourceGroup`, then `resourceGroup`",
        ),
        Annotation::new(
            "pls-ip-configuration-subnet",
            "",
            "subnet of its addresses. Default: that of the internal address",
        ),
        Annotation::new(
            "pls-ip-configuration-ip-address-count",
            "1",
            "number of its addresses, 1 to 8",
        ),
        Annotation::new(
            "pls-ip-configuration-ip-address",
            "",
            "fixed IPv4 addresses of it, between blanks; the first one is primary",
        ),
        Annotation::new("pls-fqdns", "", "DNS names of it, between blanks"),
        Annotation::new(
            "pls-proxy-protocol",
            "false",
            "`true`: connections begin with a header of the PROXY protocol",
        ),
        Annotation::new(
            "pls-visibility",
            "",
            "ids of the subscriptions that may use it, between blanks; `*` for all",
        ),
        Annotation::new(
            "pls-auto-approval",
            "",
            "ids of the subscriptions whose endpoints are approved at once, between blanks",
        ),
    ],
);

/// Annotations of upstream without an equivalent here. Without them it would be another load balancer than the one that is requested.
const REFUSED: [&str; 1] = ["additional-public-ips"];

/// What the annotations of a Service request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    pub internal: bool,
    pub subnet: Option<&'a str>,
    /// By family: IPv4, IPv6.
    pub ip: [Option<&'a str>; 2],
    pub address_group: Option<&'a str>,
    pub address_name: [Option<&'a str>; 2],
    pub prefix: [Option<&'a str>; 2],
    pub dns_label: Option<&'a str>,
    pub idle_minutes: i64,
    pub tcp_reset: bool,
    /// Of all ports.
    pub probe: ProbeSettings<'a>,
    /// By number.
    pub ports: Vec<PortSettings<'a>>,
    pub service_tags: Vec<&'a str>,
    pub ranges: Option<Vec<String>>,
    pub with_rules: bool,
    /// Whether networks that are not named are denied, also those of the virtual network.
    pub deny_others: bool,
    /// Whether packets keep the address of the frontend.
    pub floating: bool,
    /// Whether one rule is for all ports.
    pub all_ports: bool,
    pub link: Option<Link<'a>>,
}

impl<'a> Asked<'a> {
    /// Of a port; none where no port of the Service has this number.
    pub fn port(&self, number: u16) -> Option<&PortSettings<'a>> {
        self.ports.iter().find(|port| port.number == number)
    }
}

/// Reads them.
///
/// # Errors
/// `invalid` with all mistakes.
pub fn read(service: &Service) -> Result<Asked<'_>, Failure> {
    let mut read = TABLE.read(service);
    let probe = ports::probe(&mut read);
    let link = links::read(&mut read);
    let internal = read.boolean("load-balancer-internal").unwrap_or_default();
    let all_ports = read
        .boolean("load-balancer-enable-high-availability-ports")
        .unwrap_or_default();
    let deny_others = read
        .boolean("deny-all-except-load-balancer-source-ranges")
        .unwrap_or_default();
    let asked = Asked {
        internal,
        subnet: read.text("load-balancer-internal-subnet"),
        ip: [read.text("load-balancer-ipv4"), read.text("load-balancer-ipv6")],
        address_group: read.text("load-balancer-resource-group"),
        address_name: [read.text("pip-name"), read.text("pip-name-ipv6")],
        prefix: [read.text("pip-prefix-id"), read.text("pip-prefix-id-ipv6")],
        dns_label: read.text("dns-label-name"),
        idle_minutes: read.integer("load-balancer-tcp-idle-timeout", 4..=100).unwrap_or(4),
        tcp_reset: !read.boolean("load-balancer-disable-tcp-reset").unwrap_or_default(),
        probe,
        ports: ports::read(&mut read, service, &probe),
        service_tags: read.list("allowed-service-tags").unwrap_or_default(),
        ranges: read
            .cidrs("allowed-ip-ranges")
            .map(|ranges| ranges.iter().map(ToString::to_string).collect()),
        with_rules: !read.boolean("disable-load-balancer-nsg-rule").unwrap_or_default(),
        deny_others,
        floating: !read.boolean("disable-load-balancer-floating-ip").unwrap_or_default(),
        // There are none for public addresses.
        all_ports: all_ports && internal,
        link,
    };
    if asked.ranges.is_some() && !service.source_ranges.is_empty() {
        let key = TABLE.key("allowed-ip-ranges");
        read.mistake(format!(
            "{key} and spec.loadBalancerSourceRanges exclude each other; remove one"
        ));
    }
    for key in REFUSED {
        let key = TABLE.key(key);
        let value = service.annotation(&key).unwrap_or_default().trim_ascii();
        if !matches!(value, "" | "false") {
            read.mistake(format!("{key} is not supported; remove it"));
        }
    }
    read.finish().map(|()| asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(annotations: &[(&str, &str)]) -> Service {
        let pairs = annotations.iter().map(|(key, value)| Pair::new(TABLE.key(key), *value));
        Service {
            annotations: pairs.collect(),
            ..Service::new("default", "web", "1")
        }
    }

    #[test]
    fn the_readme_has_them() {
        cloudwit_guest_sdk::testing::assert_readme(include_str!("../../README.md"), &TABLE);
    }

    #[test]
    fn all_mistakes_are_reported_together() {
        let mut service = service(&[
            ("load-balancer-internal", "maybe"),
            ("load-balancer-tcp-idle-timeout", "3"),
            ("load-balancer-health-probe-interval", "60"),
            ("allowed-ip-ranges", "10.0.0.0/8"),
            ("pls-ip-configuration-ip-address", "10.0.0.1 fd00::1"),
            ("additional-public-ips", "1.1.1.1"),
            ("service.beta.kubernetes.io/port_80_health-probe_port", "nothing"),
            ("service.beta.kubernetes.io/port_80_health-probe_interval", "4"),
        ]);
        service.ports.push(ServicePort {
            name: None,
            protocol: Protocol::Tcp,
            port: 80,
            node_port: None,
            target_port: None,
            app_protocol: None,
        });
        service.source_ranges = vec!["10.0.0.0/8".into()];
        let failure = read(&service).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
        for part in [
            "maybe",
            "\"3\"",
            "less than 120",
            "exclude each other",
            "additional-public-ips",
            "port_80_health-probe_port is \"nothing\"",
            "port_80_health-probe_interval is \"4\"",
            "IPv4 addresses between blanks",
            "at least the number",
        ] {
            assert!(failure.message().contains(part), "{part}: {failure:?}");
        }
    }
}
