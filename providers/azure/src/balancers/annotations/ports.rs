//! Annotations of probes, and of single ports, which have the port's number in their key.

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::prelude::*;

pub const NO_RULE: &str = "service.beta.kubernetes.io/port_{port}_no_lb_rule";
pub const NO_PROBE: &str = "service.beta.kubernetes.io/port_{port}_no_probe_rule";
pub const PROBE_PROTOCOL: &str = "service.beta.kubernetes.io/port_{port}_health-probe_protocol";
pub const PROBE_PORT: &str = "service.beta.kubernetes.io/port_{port}_health-probe_port";
pub const PROBE_PATH: &str = "service.beta.kubernetes.io/port_{port}_health-probe_request-path";
pub const PROBE_INTERVAL: &str = "service.beta.kubernetes.io/port_{port}_health-probe_interval";
pub const PROBE_COUNT: &str = "service.beta.kubernetes.io/port_{port}_health-probe_num-of-probe";

/// Protocols of probes, as annotations and as probes name them.
const PROTOCOLS: [(&str, &str); 3] = [("tcp", "Tcp"), ("http", "Http"), ("https", "Https")];

/// A probe's interval and number of failures, multiplied, stay below this: seconds, of the API's reference.
const LONGEST: i64 = 120;

/// How Nodes are probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeSettings<'a> {
    /// As probes name it; none where the annotations name none.
    pub protocol: Option<&'static str>,
    pub path: &'a str,
    pub seconds: i64,
    /// Failed probes until a Node is out.
    pub count: i64,
}

/// What the annotations of one port request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSettings<'a> {
    pub number: u16,
    pub with_rule: bool,
    pub with_probe: bool,
    /// Port of the Nodes that is probed, where it is not the port's own.
    pub probe_port: Option<u16>,
    pub probe: ProbeSettings<'a>,
}

/// `appProtocol` as the protocol of a probe: TCP where there are no probes of it.
pub fn of_app_protocol(app_protocol: &str) -> &'static str {
    let mut known = PROTOCOLS.iter();
    let found = known.find(|(word, _)| word.eq_ignore_ascii_case(app_protocol.trim_ascii()));
    found.map_or("Tcp", |(_, protocol)| protocol)
}

/// Reads how all ports are probed.
pub fn probe<'a>(read: &mut Reader<'a>) -> ProbeSettings<'a> {
    let probe = ProbeSettings {
        protocol: read.word("load-balancer-health-probe-protocol", &PROTOCOLS),
        path: read.text("load-balancer-health-probe-request-path").unwrap_or("/"),
        seconds: read
            .integer("load-balancer-health-probe-interval", 5..=119)
            .unwrap_or(5),
        count: read
            .integer("load-balancer-health-probe-num-of-probe", 2..=23)
            .unwrap_or(2),
    };
    check(read, &probe);
    probe
}

/// Reads the settings of all ports of the Service, and of the port on which Nodes report whether they have a Pod.
pub fn read<'a>(read: &mut Reader<'a>, service: &Service, all: &ProbeSettings<'a>) -> Vec<PortSettings<'a>> {
    let mut numbers: Vec<u16> = service.ports.iter().map(|port| port.port).collect();
    numbers.extend(service.health_check_node_port);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
        .into_iter()
        .map(|number| of_port(read, service, all, number))
        .collect()
}

fn of_port<'a>(read: &mut Reader<'a>, service: &Service, all: &ProbeSettings<'a>, number: u16) -> PortSettings<'a> {
    read.port(number);
    let probe = ProbeSettings {
        protocol: read.word(PROBE_PROTOCOL, &PROTOCOLS),
        path: read.text(PROBE_PATH).unwrap_or(all.path),
        seconds: read.integer(PROBE_INTERVAL, 5..=119).unwrap_or(all.seconds),
        count: read.integer(PROBE_COUNT, 2..=23).unwrap_or(all.count),
    };
    check(read, &probe);
    PortSettings {
        number,
        with_rule: !read.boolean(NO_RULE).unwrap_or_default(),
        with_probe: !read.boolean(NO_PROBE).unwrap_or_default(),
        probe_port: read.text(PROBE_PORT).and_then(|text| {
            let found = probed_port(service, text);
            found.or_else(|| {
                read.wrong(
                    PROBE_PORT,
                    "the name of a port of the Service that has a node port, or a number",
                )
            })
        }),
        probe,
    }
}

/// The port of the Nodes that a text names: by name or number of a port of the Service, or itself.
fn probed_port(service: &Service, text: &str) -> Option<u16> {
    let named = |port: &&ServicePort| port.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(text));
    if let Some(port) = service.ports.iter().find(named) {
        return port.node_port;
    }
    let number = text.parse().ok().filter(|number| *number > 0)?;
    match service.ports.iter().find(|port| port.port == number) {
        Some(port) => port.node_port,
        None => Some(number),
    }
}

fn check(read: &mut Reader<'_>, probe: &ProbeSettings<'_>) {
    if probe.seconds * probe.count >= LONGEST {
        read.mistake("the interval of probes times their number has to be less than 120 seconds");
    }
}
