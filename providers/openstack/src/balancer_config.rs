//! `[LoadBalancer]` and `[LoadBalancerClass "name"]` of the cloud config.

use std::collections::BTreeMap;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::section;

use crate::config::given;
use crate::go_duration;
use crate::subnet_filter::NameFilter;

section! {
    /// `[LoadBalancer]`. Defaults are upstream's.
    pub struct BalancerConfig {
        /// Whether load balancers are made at all; true when left out.
        pub enabled: Option<bool> = "enabled",
        /// Network of the floating IPs.
        pub floating_network_id: Option<String> = "floating-network-id",
        /// Subnet of the floating IPs.
        pub floating_subnet_id: Option<String> = "floating-subnet-id",
        /// Name, glob or `~` and a pattern of subnets of the floating IPs; `!` negates.
        pub floating_subnet: Option<String> = "floating-subnet",
        /// Tags of subnets of the floating IPs.
        pub floating_subnet_tags: Option<String> = "floating-subnet-tags",
        /// `ROUND_ROBIN` when left out.
        pub lb_method: Option<String> = "lb-method",
        /// `amphora` when left out.
        pub lb_provider: Option<String> = "lb-provider",
        /// Subnet of the virtual IP.
        pub subnet_id: Option<String> = "subnet-id",
        /// Subnet of the members.
        pub member_subnet_id: Option<String> = "member-subnet-id",
        /// Network of the virtual IP.
        pub network_id: Option<String> = "network-id",
        /// Whether a security group for node ports is kept.
        pub manage_security_groups: bool = "manage-security-groups",
        /// Whether there is a health monitor.
        pub create_monitor: bool = "create-monitor",
        /// 5s when left out.
        pub monitor_delay: Option<String> = "monitor-delay",
        /// 3s when left out.
        pub monitor_timeout: Option<String> = "monitor-timeout",
        /// 1 when left out.
        pub monitor_max_retries: Option<u32> = "monitor-max-retries",
        /// 3 when left out.
        pub monitor_max_retries_down: Option<u32> = "monitor-max-retries-down",
        /// Whether no floating IP is made.
        pub internal_lb: bool = "internal-lb",
        /// Which Nodes become members.
        pub node_selector: Option<String> = "node-selector",
        /// True when left out.
        pub cascade_delete: Option<bool> = "cascade-delete",
        /// Octavia's flavor.
        pub flavor_id: Option<String> = "flavor-id",
        /// Octavia's availability zone.
        pub availability_zone: Option<String> = "availability-zone",
        /// Whether a host name is published for load balancers with proxy protocol.
        pub enable_ingress_hostname: bool = "enable-ingress-hostname",
        /// `nip.io` when left out.
        pub ingress_hostname_suffix: Option<String> = "ingress-hostname-suffix",
        /// Barbican's container for TLS.
        pub default_tls_container_ref: Option<String> = "default-tls-container-ref",
        /// `barbican` when left out.
        pub container_store: Option<String> = "container-store",
        /// 2 when left out.
        pub max_shared_lb: Option<u32> = "max-shared-lb",
        /// Whether a load balancer is made piece by piece.
        pub provider_requires_serial_api_calls: bool = "provider-requires-serial-api-calls",
        /// From the time when there was something else.
        pub use_octavia: Option<bool> = "use-octavia",
        /// From the same time; only `v2`.
        pub lb_version: Option<String> = "lb-version",
    }
}

section! {
    /// `[LoadBalancerClass "name"]`.
    pub struct BalancerClass {
        /// As in `[LoadBalancer]`.
        pub floating_network_id: Option<String> = "floating-network-id",
        /// As in `[LoadBalancer]`.
        pub floating_subnet_id: Option<String> = "floating-subnet-id",
        /// As in `[LoadBalancer]`.
        pub floating_subnet: Option<String> = "floating-subnet",
        /// As in `[LoadBalancer]`.
        pub floating_subnet_tags: Option<String> = "floating-subnet-tags",
        /// As in `[LoadBalancer]`.
        pub network_id: Option<String> = "network-id",
        /// As in `[LoadBalancer]`.
        pub subnet_id: Option<String> = "subnet-id",
        /// As in `[LoadBalancer]`.
        pub member_subnet_id: Option<String> = "member-subnet-id",
    }
}

/// How traffic is spread, by Octavia's names.
pub const METHODS: [&str; 4] = ["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"];

impl BalancerConfig {
    /// What types cannot express.
    pub fn validate(&self, classes: &BTreeMap<String, BalancerClass>, problems: &mut Problems) {
        let mut wrong = |key: &str, value: &str, wanted: &str| {
            problems.add(
                format!("loadbalancer.{key}"),
                format!("\"{value}\" is no {wanted}"),
            );
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
            if let Some(value) = given(value).filter(|value| go_duration::seconds(value).is_none()) {
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
