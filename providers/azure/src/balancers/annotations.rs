//! Annotations of Services.

use cloudwit_guest_sdk::annotations::{Annotation, Table};
use cloudwit_guest_sdk::prelude::*;

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
            "disable-load-balancer-nsg-rule",
            "false",
            "`true`: the security group is left alone",
        ),
    ],
);

/// Annotations of upstream that ask for what is not there. To read past them would make another load balancer than asked for.
const REFUSED: [&str; 5] = [
    "load-balancer-enable-high-availability-ports",
    "disable-load-balancer-floating-ip",
    "pls-create",
    "additional-public-ips",
    "deny-all-except-load-balancer-source-ranges",
];

/// What the annotations of a Service ask for.
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
    /// As probes name it.
    pub probe: Option<&'static str>,
    pub probe_path: &'a str,
    pub probe_seconds: i64,
    pub probe_count: i64,
    pub service_tags: Vec<&'a str>,
    pub ranges: Option<Vec<String>>,
    pub with_rules: bool,
}

/// Reads them.
///
/// # Errors
/// `invalid` with all mistakes.
pub fn read(service: &Service) -> Result<Asked<'_>, Failure> {
    let mut read = TABLE.read(service);
    let probes = [("tcp", "Tcp"), ("http", "Http"), ("https", "Https")];
    let asked = Asked {
        internal: read.boolean("load-balancer-internal").unwrap_or_default(),
        subnet: read.text("load-balancer-internal-subnet"),
        ip: [read.text("load-balancer-ipv4"), read.text("load-balancer-ipv6")],
        address_group: read.text("load-balancer-resource-group"),
        address_name: [read.text("pip-name"), read.text("pip-name-ipv6")],
        prefix: [read.text("pip-prefix-id"), read.text("pip-prefix-id-ipv6")],
        dns_label: read.text("dns-label-name"),
        idle_minutes: read.integer("load-balancer-tcp-idle-timeout", 4..=100).unwrap_or(4),
        tcp_reset: !read.boolean("load-balancer-disable-tcp-reset").unwrap_or_default(),
        probe: read.word("load-balancer-health-probe-protocol", &probes),
        probe_path: read.text("load-balancer-health-probe-request-path").unwrap_or("/"),
        probe_seconds: read
            .integer("load-balancer-health-probe-interval", 5..=119)
            .unwrap_or(5),
        probe_count: read
            .integer("load-balancer-health-probe-num-of-probe", 2..=23)
            .unwrap_or(2),
        service_tags: read.list("allowed-service-tags").unwrap_or_default(),
        ranges: read
            .cidrs("allowed-ip-ranges")
            .map(|ranges| ranges.iter().map(ToString::to_string).collect()),
        with_rules: !read.boolean("disable-load-balancer-nsg-rule").unwrap_or_default(),
    };
    if asked.probe_seconds * asked.probe_count >= 120 {
        read.mistake("the interval of probes times their number has to be less than 120 seconds");
    }
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
            ("pls-create", "true"),
        ]);
        service.source_ranges = vec!["10.0.0.0/8".into()];
        let failure = read(&service).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Invalid);
        for part in ["maybe", "\"3\"", "less than 120", "exclude each other", "pls-create"] {
            assert!(failure.message().contains(part), "{part}: {failure:?}");
        }
    }
}
