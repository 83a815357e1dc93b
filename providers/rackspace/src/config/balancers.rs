//! `[LoadBalancer]` of the cloud config: the keys that the in-tree provider read and made nothing of, and those of Cloud Load Balancers.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_duration;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::given;
use crate::balancers::clb::Monitor;

/// Nodes of one load balancer unless the account's limit was raised (Cloud Load Balancers' absolute limit `NODE_LIMIT`).
const NODE_LIMIT: u32 = 25;

/// `[LoadBalancer]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct BalancerConfig {
    /// Whether load balancers are made at all; true when left out.
    pub enabled: Option<bool>,
    /// Whether there is a health monitor; one for `externalTrafficPolicy: Local` there is always.
    pub create_monitor: bool,
    /// Between two probes of a node; 10s when left out.
    pub monitor_delay: Option<String>,
    /// How long a probe may take; 5s when left out.
    pub monitor_timeout: Option<String>,
    /// Failed probes after which a node gets no traffic; 3 when left out.
    pub monitor_max_retries: Option<u32>,
    /// Nodes of one load balancer; 25 when left out.
    pub node_limit: Option<u32>,
    subnet_id: Option<IgnoredAny>,
}

impl BalancerConfig {
    /// Whether load balancers are made.
    pub fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true)
    }

    /// Most nodes of a load balancer.
    pub fn node_limit(&self) -> usize {
        self.node_limit.unwrap_or(NODE_LIMIT).try_into().unwrap_or(usize::MAX)
    }

    /// The health monitor, where there is one.
    pub fn monitor(&self) -> Monitor {
        let seconds = |value: &Option<String>, default| given(value).and_then(parse_duration).unwrap_or(default);
        Monitor {
            kind: "CONNECT".into(),
            delay: seconds(&self.monitor_delay, 10),
            timeout: seconds(&self.monitor_timeout, 5),
            attempts_before_deactivation: self.monitor_max_retries.unwrap_or(3).into(),
        }
    }

    /// What types cannot express. The bounds are Cloud Load Balancers' own.
    pub fn validate(&self, problems: &mut Problems) {
        let why = "an address comes from the Internet or from ServiceNet";
        problems.no_effect("loadbalancer.subnet-id", self.subnet_id.is_some(), why);
        for (key, value, most) in [
            ("monitor-delay", &self.monitor_delay, 3600),
            ("monitor-timeout", &self.monitor_timeout, 300),
        ] {
            let Some(value) = given(value) else { continue };
            if parse_duration(value).is_none_or(|seconds| seconds > most) {
                let text = format!("\"{value}\" is no duration from 1s to {most}s; write it like 10s");
                problems.add(format!("loadbalancer.{key}"), text);
            }
        }
        for (key, value, most) in [
            ("monitor-max-retries", self.monitor_max_retries, 10),
            ("node-limit", self.node_limit, 1000),
        ] {
            if let Some(value) = value.filter(|value| !(1..=most).contains(value)) {
                let text = format!("{value} is no number from 1 to {most}");
                problems.add(format!("loadbalancer.{key}"), text);
            }
        }
    }
}
