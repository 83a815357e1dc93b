//! `[LoadBalancer]` and `[LoadBalancerClass "name"]` of the cloud config.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_duration;

use serde::Deserialize;

use crate::balancers::floating_ips::subnet_filter::NameFilter;
use crate::config::given;

/// `[LoadBalancer]`. Defaults are upstream's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct BalancerConfig {
    /// Whether load balancers are made at all; true when left out.
    pub enabled: Option<bool>,
    /// Network of the floating IPs.
    pub floating_network_id: Option<String>,
    /// Subnet of the floating IPs.
    pub floating_subnet_id: Option<String>,
    /// Name, glob or `~` and a pattern of subnets of the floating IPs; `!` negates.
    pub floating_subnet: Option<String>,
    /// Tags of subnets of the floating IPs.
    pub floating_subnet_tags: Option<String>,
    /// `ROUND_ROBIN` when left out.
    pub lb_method: Option<String>,
    /// `amphora` when left out.
    pub lb_provider: Option<String>,
    /// Subnet of the virtual IP.
    pub subnet_id: Option<String>,
    /// Subnet of the members.
    pub member_subnet_id: Option<String>,
    /// Network of the virtual IP.
    pub network_id: Option<String>,
    /// Whether a security group for node ports is kept.
    pub manage_security_groups: bool,
    /// Whether there is a health monitor.
    pub create_monitor: bool,
    /// 5s when left out.
    pub monitor_delay: Option<String>,
    /// 3s when left out.
    pub monitor_timeout: Option<String>,
    /// 1 when left out.
    pub monitor_max_retries: Option<u32>,
    /// 3 when left out.
    pub monitor_max_retries_down: Option<u32>,
    /// Whether no floating IP is made.
    pub internal_lb: bool,
    /// Which Nodes become members.
    pub node_selector: Option<String>,
    /// True when left out.
    pub cascade_delete: Option<bool>,
    /// Octavia's flavor.
    pub flavor_id: Option<String>,
    /// Octavia's availability zone.
    pub availability_zone: Option<String>,
    /// Whether a host name is published for load balancers with proxy protocol.
    pub enable_ingress_hostname: bool,
    /// `nip.io` when left out.
    pub ingress_hostname_suffix: Option<String>,
    /// Barbican's container for TLS.
    pub default_tls_container_ref: Option<String>,
    /// `barbican` when left out.
    pub container_store: Option<String>,
    /// 2 when left out.
    pub max_shared_lb: Option<u32>,
    /// Whether a load balancer is made piece by piece.
    pub provider_requires_serial_api_calls: bool,
    /// From the time when there was something else.
    pub use_octavia: Option<bool>,
    /// From the same time; only `v2`.
    pub lb_version: Option<String>,
}

/// `[LoadBalancerClass "name"]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct BalancerClass {
    /// As in `[LoadBalancer]`.
    pub floating_network_id: Option<String>,
    /// As in `[LoadBalancer]`.
    pub floating_subnet_id: Option<String>,
    /// As in `[LoadBalancer]`.
    pub floating_subnet: Option<String>,
    /// As in `[LoadBalancer]`.
    pub floating_subnet_tags: Option<String>,
    /// As in `[LoadBalancer]`.
    pub network_id: Option<String>,
    /// As in `[LoadBalancer]`.
    pub subnet_id: Option<String>,
    /// As in `[LoadBalancer]`.
    pub member_subnet_id: Option<String>,
}

/// How traffic is spread, by Octavia's names.
pub const METHODS: [&str; 4] = ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"];

impl BalancerConfig {
    /// What types cannot express.
    pub fn validate(&self, classes: &BTreeMap<String, BalancerClass>, problems: &mut Problems) {
        let mut wrong = |key: &str, value: &str, wanted: &str| {
            problems.add(format!("loadbalancer.{key}"), format!("\"{value}\" is no {wanted}"));
        };
        let words: [(&str, &Option<String>, &[&str]); 3] = [
            ("lb-method", &self.lb_method, &METHODS),
            ("container-store", &self.container_store, &["barbican", "external"]),
            ("lb-version", &self.lb_version, &["v2"]),
        ];
        for (key, value, known) in words {
            if let Some(value) = given(value).filter(|value| !known.contains(value)) {
                wrong(key, value, &format!("value; there are {}", known.join(", ")));
            }
        }
        for (key, value) in [
            ("monitor-delay", &self.monitor_delay),
            ("monitor-timeout", &self.monitor_timeout),
        ] {
            if let Some(value) = given(value).filter(|value| parse_duration(value).is_none()) {
                wrong(key, value, "duration of a second or more; write it like 5s");
            }
        }
        for (key, value) in [
            ("monitor-max-retries", self.monitor_max_retries),
            ("monitor-max-retries-down", self.monitor_max_retries_down),
        ] {
            if let Some(value) = value.filter(|value| !(1..=10).contains(value)) {
                wrong(key, &value.to_string(), "number from 1 to 10");
            }
        }
        if self.use_octavia == Some(false) {
            wrong(
                "use-octavia",
                "false",
                "choice any more: only Octavia is spoken; remove the key",
            );
        }
        let patterns = classes
            .iter()
            .map(|(name, class)| (format!("loadbalancerclass.{name}"), &class.floating_subnet));
        for (section, pattern) in patterns.chain([("loadbalancer".into(), &self.floating_subnet)]) {
            if let Some(Err(why)) = given(pattern).map(NameFilter::parse) {
                problems.add(format!("{section}.floating-subnet"), why);
            }
        }
    }
}
