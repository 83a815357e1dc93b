//! What a Service requests: its annotations over its class over the cloud config, read before anything is changed.

pub mod table;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::annotations::Reader;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_duration;

use crate::balancers::annotations::table::{BALANCER_ID, INTERNAL, TABLE};
use crate::balancers::config::{BalancerClass, BalancerConfig};
use crate::config::given;

/// The annotations of [`Asked::timeouts`].
const TIMEOUT_KEYS: [&str; 4] = [
    "timeout-client-data",
    "timeout-member-connect",
    "timeout-member-data",
    "timeout-tcp-inspect",
];

/// A year in milliseconds, the most that Octavia takes for a timeout.
const YEAR: i64 = 31_536_000_000;

/// Where floating IPs come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FloatingSource<'a> {
    /// Network; looked up when there is none.
    pub network_id: Option<&'a str>,
    /// One certain subnet.
    pub subnet_id: Option<&'a str>,
    /// Pattern of subnet names.
    pub subnet: Option<&'a str>,
    /// Tags of subnets.
    pub subnet_tags: Option<&'a str>,
}

/// Where the virtual IP is when the load balancer is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VipSource<'a> {
    /// Port.
    pub port_id: Option<&'a str>,
    /// Subnet.
    pub subnet_id: Option<&'a str>,
    /// Network.
    pub network_id: Option<&'a str>,
}

/// How members are checked: seconds, seconds, times, times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checks {
    /// Between checks.
    pub delay: i64,
    /// Until a check fails.
    pub timeout: i64,
    /// Good checks until a member is used.
    pub max_retries: i64,
    /// Bad checks until it is not.
    pub max_retries_down: i64,
}

/// What a Service requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// No floating IP.
    pub internal: bool,
    /// Floating IP.
    pub floating: FloatingSource<'a>,
    /// It outlives the Service.
    pub keep_floating_ip: bool,
    /// Virtual IP.
    pub vip: VipSource<'a>,
    /// Subnet of the members.
    pub member_subnet_id: Option<&'a str>,
    /// For each port; -1 for none.
    pub connection_limit: i64,
    /// `PROXY` or `PROXYV2`.
    pub proxy_protocol: Option<&'static str>,
    /// HTTP with `X-Forwarded-For`.
    pub forwarded_for: bool,
    /// `lb_algorithm`.
    pub method: &'a str,
    /// client data, member connect, member data, TCP inspect; milliseconds.
    pub timeouts: [i64; 4],
    /// None: no monitors.
    pub checks: Option<Checks>,
    /// Octavia's flavor.
    pub flavor_id: Option<&'a str>,
    /// Octavia's availability zone.
    pub availability_zone: Option<&'a str>,
    /// Barbican URL.
    pub tls_container: Option<&'a str>,
    /// Published instead of the address.
    pub hostname: Option<&'a str>,
    /// Labels; an empty value matches any.
    pub node_selector: Vec<(&'a str, &'a str)>,
    /// The load balancer by its id.
    pub balancer_id: Option<&'a str>,
}

/// Reads what the Service requests.
///
/// # Errors
/// `invalid` with every mistake.
pub fn read<'a>(
    service: &'a Service,
    config: &'a BalancerConfig,
    classes: &'a BTreeMap<String, BalancerClass>,
) -> Result<Asked<'a>, Failure> {
    let mut reader = TABLE.read(service);
    let class = class(&mut reader, classes);
    let mut asked = for_members(&mut reader, class, config);
    let of_class = |value: fn(&BalancerClass) -> &Option<String>| class.and_then(|class| given(value(class)));
    asked.internal = reader.boolean(INTERNAL).unwrap_or(config.internal_lb);
    asked.floating = floating(&mut reader, class, config);
    asked.keep_floating_ip = reader.boolean("keep-floatingip").unwrap_or_default();
    asked.vip.port_id = text(&mut reader, "port-id");
    asked.vip.subnet_id = of_class(|class| &class.subnet_id).or(text_or(&mut reader, "subnet-id", &config.subnet_id));
    asked.vip.network_id =
        of_class(|class| &class.network_id).or(text_or(&mut reader, "network-id", &config.network_id));
    let limit = reader.integer("connection-limit", -1..=i64::from(i32::MAX));
    asked.connection_limit = limit.unwrap_or(-1);
    asked.proxy_protocol = proxy_protocol(&mut reader, config);
    asked.forwarded_for = reader.boolean("x-forwarded-for").unwrap_or_default();
    asked.method = method(&mut reader, config);
    asked.timeouts = TIMEOUT_KEYS.map(|key| reader.integer(key, 0..=YEAR).unwrap_or_default());
    asked.flavor_id = text_or(&mut reader, "flavor-id", &config.flavor_id);
    asked.availability_zone = text_or(&mut reader, "availability-zone", &config.availability_zone);
    asked.tls_container = tls_container(&mut reader, config);
    if asked.forwarded_for && asked.proxy_protocol.is_some() {
        reader.mistake("x-forwarded-for and proxy-protocol exclude each other: remove one of these annotations");
    }
    reader.finish()?;
    Ok(asked)
}

/// What members follow from. A mistake elsewhere must not keep new Nodes from a load balancer that works.
///
/// # Errors
/// `invalid` with the mistakes that matter here.
pub fn read_for_members<'a>(
    service: &'a Service,
    config: &'a BalancerConfig,
    classes: &'a BTreeMap<String, BalancerClass>,
) -> Result<Asked<'a>, Failure> {
    let mut reader = TABLE.read(service);
    let class = class(&mut reader, classes);
    let asked = for_members(&mut reader, class, config);
    reader.finish()?;
    Ok(asked)
}

/// What is needed to find and delete, mistakes or not.
pub fn read_leniently<'a>(service: &'a Service, config: &'a BalancerConfig) -> Asked<'a> {
    let mut reader = TABLE.read(service);
    let mut asked = for_members(&mut reader, None, config);
    asked.keep_floating_ip = reader.boolean("keep-floatingip").unwrap_or_default();
    // A lenient read does not report mistakes.
    drop(reader.finish());
    asked
}

fn for_members<'a>(reader: &mut Reader<'a>, class: Option<&'a BalancerClass>, config: &'a BalancerConfig) -> Asked<'a> {
    let of_class = class.and_then(|class| given(&class.member_subnet_id));
    Asked {
        member_subnet_id: text(reader, "member-subnet-id")
            .or(of_class)
            .or(given(&config.member_subnet_id)),
        checks: checks(reader, config),
        node_selector: node_selector(reader, config),
        balancer_id: text(reader, BALANCER_ID),
        hostname: text(reader, "hostname"),
        ..Asked::default()
    }
}

fn text<'a>(reader: &mut Reader<'a>, key: &str) -> Option<&'a str> {
    reader.text(key).filter(|text| !text.is_empty())
}

fn text_or<'a>(reader: &mut Reader<'a>, key: &str, config: &'a Option<String>) -> Option<&'a str> {
    text(reader, key).or(given(config))
}

fn class<'a>(reader: &mut Reader<'a>, classes: &'a BTreeMap<String, BalancerClass>) -> Option<&'a BalancerClass> {
    let name = text(reader, "class")?;
    let found = classes.get(name);
    if found.is_none() {
        let names: Vec<&str> = classes.keys().map(String::as_str).collect();
        let allowed = "the name of a [LoadBalancerClass] of the cloud config, which has ";
        let names = if names.is_empty() {
            "none".into()
        } else {
            names.join(", ")
        };
        return reader.wrong("class", &format!("{allowed}{names}"));
    }
    found
}

/// Class over annotation over config; the three ways to name subnets are one choice.
fn floating<'a>(
    reader: &mut Reader<'a>,
    class: Option<&'a BalancerClass>,
    config: &'a BalancerConfig,
) -> FloatingSource<'a> {
    let network = text_or(reader, "floating-network-id", &config.floating_network_id);
    let source = |id, subnet, tags| FloatingSource {
        network_id: None,
        subnet_id: id,
        subnet,
        subnet_tags: tags,
    };
    let of_class = class.map(|class| {
        source(
            given(&class.floating_subnet_id),
            given(&class.floating_subnet),
            given(&class.floating_subnet_tags),
        )
    });
    let asked = source(
        text(reader, "floating-subnet-id"),
        text(reader, "floating-subnet"),
        text(reader, "floating-subnet-tags"),
    );
    let of_config = source(
        given(&config.floating_subnet_id),
        given(&config.floating_subnet),
        given(&config.floating_subnet_tags),
    );
    let none = FloatingSource::default();
    let chosen = [of_class.unwrap_or(none), asked]
        .into_iter()
        .find(|source| *source != none)
        .unwrap_or(of_config);
    if let Some(wrong) = chosen
        .subnet
        .and_then(|text| crate::balancers::floating_ips::subnet_filter::NameFilter::parse(text).err())
    {
        reader.mistake(format!("floating-subnet: {wrong}"));
    }
    FloatingSource {
        network_id: class.and_then(|class| given(&class.floating_network_id)).or(network),
        ..chosen
    }
}

fn proxy_protocol(reader: &mut Reader<'_>, config: &BalancerConfig) -> Option<&'static str> {
    const V1: Option<&str> = Some("PROXY");
    let words = [
        ("false", None),
        ("true", V1),
        ("v1", V1),
        ("v2", Some("PROXYV2")),
        ("0", None),
        ("1", V1),
        ("f", None),
        ("t", V1),
    ];
    let asked = reader.word("proxy-protocol", &words).flatten();
    if asked.is_some() && is_ovn(config) {
        reader.mistake("proxy-protocol: the provider OVN cannot do it; remove the annotation");
    }
    asked
}

/// Whether Octavia's provider is OVN, which does much less.
pub fn is_ovn(config: &BalancerConfig) -> bool {
    given(&config.lb_provider) == Some("ovn")
}

fn method<'a>(reader: &mut Reader<'a>, config: &'a BalancerConfig) -> &'a str {
    const METHODS: [&str; 4] = ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"];
    let asked = reader.word("lb-method", &METHODS.map(|method| (method, method)));
    asked.or(given(&config.lb_method)).unwrap_or("ROUND_ROBIN")
}

fn checks(reader: &mut Reader<'_>, config: &BalancerConfig) -> Option<Checks> {
    let seconds = |value: &Option<String>, default| given(value).and_then(parse_duration).unwrap_or(default);
    let times = |value: Option<u32>, default| value.map_or(default, i64::from);
    let on = reader.boolean("enable-health-monitor").unwrap_or(config.create_monitor);
    let checks = Checks {
        delay: reader
            .integer("health-monitor-delay", 1..=86_400)
            .unwrap_or(seconds(&config.monitor_delay, 5)),
        timeout: reader
            .integer("health-monitor-timeout", 1..=86_400)
            .unwrap_or(seconds(&config.monitor_timeout, 3)),
        max_retries: reader
            .integer("health-monitor-max-retries", 1..=10)
            .unwrap_or(times(config.monitor_max_retries, 1)),
        max_retries_down: reader
            .integer("health-monitor-max-retries-down", 1..=10)
            .unwrap_or(times(config.monitor_max_retries_down, 3)),
    };
    on.then_some(checks)
}

fn tls_container<'a>(reader: &mut Reader<'a>, config: &'a BalancerConfig) -> Option<&'a str> {
    let container = text_or(reader, "default-tls-container-ref", &config.default_tls_container_ref)?;
    if barbican_path(container).is_none() {
        return reader.wrong(
            "default-tls-container-ref",
            "a URL of Barbican that ends in containers/ID or secrets/ID",
        );
    }
    Some(container)
}

/// `containers/<id>` or `secrets/<id>` at the end of a reference to Barbican.
pub fn barbican_path(reference: &str) -> Option<&str> {
    let (rest, id) = reference.rsplit_once('/')?;
    let (start, kind) = rest.rsplit_once('/')?;
    (matches!(kind, "containers" | "secrets") && !id.is_empty()).then(|| reference.get(start.len() + 1..))?
}

fn node_selector<'a>(reader: &mut Reader<'a>, config: &'a BalancerConfig) -> Vec<(&'a str, &'a str)> {
    if reader.is_set("node-selector") {
        return reader.map("node-selector").unwrap_or_default();
    }
    let entries = given(&config.node_selector).unwrap_or_default().split(',');
    let pairs = entries.map(|entry| entry.split_once('=').unwrap_or((entry, "")));
    let pairs = pairs.map(|(key, value)| (key.trim_ascii(), value.trim_ascii()));
    pairs.filter(|(key, _)| !key.is_empty()).collect()
}

#[cfg(test)]
mod tests;
