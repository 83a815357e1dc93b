//! Stacks, load balancers and external services as Rancher shows them.

use cloudwit_guest_sdk::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::Stage;

/// The field of `metadata` by which an external service is known to be Cloudwit's to remove.
pub const MARK: &str = "cloudwit";

/// A stack.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stack {
    pub id: String,
    pub name: String,
    #[serde(flatten)]
    pub stage: Stage,
}

/// A setting of the installation.
#[derive(Debug, Clone, Deserialize)]
pub struct Setting {
    pub name: String,
    pub value: Option<String>,
}

/// An external service: addresses of a Node.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct External {
    pub id: String,
    pub name: String,
    pub stack_id: Option<String>,
    external_ip_addresses: Option<Vec<String>>,
    metadata: Option<Map<String, Value>>,
    #[serde(flatten)]
    pub stage: Stage,
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerService {
    pub id: String,
    pub name: String,
    stack_id: Option<String>,
    launch_config: Option<LaunchConfig>,
    lb_config: Option<Map<String, Value>>,
    public_endpoints: Option<Vec<PublicEndpoint>>,
    #[serde(flatten)]
    pub stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct LaunchConfig {
    ports: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PublicEndpoint {
    ip_address: Option<String>,
}

/// What of a rule counts. One that cannot be read equals no desired one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    pub source_port: u16,
    pub target_port: u16,
    pub service_id: String,
    pub protocol: String,
}

impl External {
    /// Its addresses, sorted.
    pub fn ips(&self) -> Vec<String> {
        let mut ips = self.external_ip_addresses.clone().unwrap_or_default();
        ips.sort_unstable();
        ips.dedup();
        ips
    }

    /// Whether it is Cloudwit's to remove.
    pub fn is_marked(&self) -> bool {
        self.metadata
            .as_ref()
            .is_some_and(|metadata| metadata.contains_key(MARK))
    }

    /// Its metadata with the mark.
    pub fn marked(&self) -> Value {
        let mut metadata = self.metadata.clone().unwrap_or_default();
        metadata.insert(MARK.to_owned(), "node".into());
        metadata.into()
    }
}

impl BalancerService {
    /// The stack that its external services are in as well.
    ///
    /// # Errors
    /// When it is in none.
    pub fn stack(&self) -> Result<&str, Failure> {
        let missing = || Failure::failed_precondition(format!("the load balancer {} is in no stack", self.name));
        self.stack_id.as_deref().ok_or_else(missing)
    }

    /// Whether it has these ports, in any order; `/tcp` is the default.
    pub fn publishes(&self, wanted: &[String]) -> bool {
        let seen = self.launch_config.as_ref().and_then(|config| config.ports.as_deref());
        let plain = |ports: &[String]| {
            let mut ports: Vec<String> = ports
                .iter()
                .map(|port| port.trim_end_matches("/tcp").to_owned())
                .collect();
            ports.sort_unstable();
            ports
        };
        plain(seen.unwrap_or_default()) == plain(wanted)
    }

    /// Its rules, sorted.
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.raw_rules().iter();
        let mut rules: Vec<Rule> = rules.map(|rule| Rule::deserialize(rule).unwrap_or_default()).collect();
        rules.sort_unstable();
        rules
    }

    /// Whether a rule of it sends traffic to this service.
    pub fn uses(&self, service: &str) -> bool {
        self.raw_rules().iter().any(|rule| rule["serviceId"] == service)
    }

    fn raw_rules(&self) -> &[Value] {
        let rules = self
            .lb_config
            .as_ref()
            .and_then(|config| config.get("portRules")?.as_array());
        rules.map(Vec::as_slice).unwrap_or_default()
    }

    /// Its configuration with these rules; what others have set beside them stays.
    pub fn config(&self, rules: &[Rule]) -> Value {
        let fields = self.lb_config.iter().flatten();
        let set = fields.filter(|(name, value)| !value.is_null() && !matches!(name.as_str(), "type" | "portRules"));
        let mut config: Map<String, Value> = set.map(|(name, value)| (name.clone(), value.clone())).collect();
        config.insert("portRules".to_owned(), serde_json::json!(rules));
        config.into()
    }

    /// Where it is reached: each address of its containers' hosts once.
    pub fn ingress(&self) -> Vec<Ingress> {
        let points = self.public_endpoints.iter().flatten();
        let texts = points.filter_map(|point| point.ip_address.as_deref());
        let mut ips: Vec<std::net::IpAddr> = texts.filter_map(|text| text.parse().ok()).collect();
        ips.sort_unstable();
        ips.dedup();
        ips.iter().map(|ip| Ingress::ip(ip.to_string())).collect()
    }
}
