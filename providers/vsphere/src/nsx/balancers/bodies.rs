//! What is sent: objects under upstream's names and tags. Pure.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Value, json};

use super::wanted::Port;
use crate::nsx::object::{items, tags, text};
use crate::nsx::settings::BalancerSettings;

/// Scopes of tags (upstream's `loadbalancer/access.go`). They MUST NOT change: everything is found by them.
pub const OWNER: &str = "owner";
pub const CLUSTER: &str = "cluster";
pub const SERVICE: &str = "service";
pub const PORT: &str = "port";
pub const POOL: &str = "ippoolid";
pub const CLASS: &str = "lbclass";

/// Longest display name, in characters.
const NAME: usize = 255;

/// Whose objects are made.
pub struct Owner<'a> {
    pub settings: &'a BalancerSettings,
    pub cluster: &'a str,
    /// Namespace and name of the Service.
    pub service: &'a str,
}

impl Owner<'_> {
    /// By these tags everything of the Service is found.
    pub fn scopes(&self) -> [(&str, &str); 3] {
        [
            (OWNER, &self.settings.owner),
            (CLUSTER, self.cluster),
            (SERVICE, self.service),
        ]
    }

    fn tags<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Value {
        let given = self.settings.tags.iter();
        let given = given.map(|(scope, tag)| (scope.as_str(), tag.as_str()));
        // The first of a scope counts, and what everything is found by must.
        let own: Vec<(&str, &str)> = more.iter().copied().chain(self.scopes()).collect();
        let free = given.filter(|(scope, _)| own.iter().all(|(known, _)| known != scope));
        tags(own.iter().copied().chain(free))
    }

    fn name(&self) -> String {
        balancer_name(self.cluster, self.service)
    }

    /// An address of a pool; this one where one is requested.
    pub fn allocation(&self, ip: Option<&str>) -> Value {
        let mut body = json!({ "display_name": self.name(), "tags": self.tags(&[]) });
        if let Some(ip) = ip {
            body["allocation_ip"] = ip.into();
        }
        body
    }

    /// What checks whether a Node takes connections.
    pub fn monitor(&self, port: &Port) -> Value {
        json!({
            "resource_type": "LBTcpMonitorProfile", "monitor_port": port.node_port, "tags": self.tags(&[(PORT, &port.tag)]),
            "display_name": cut(format!("{}:{}", self.name(), port.node_port)),
            "description": format!("tcp monitor for cluster {}, service {}, port {}", self.cluster, self.service, port.node_port),
        })
    }

    /// The Nodes behind a port.
    pub fn pool(&self, port: &Port, members: Value, monitors: &Value) -> Value {
        let snat = if self.settings.snat_disabled {
            "LBSnatDisabled"
        } else {
            "LBSnatAutoMap"
        };
        json!({
            "display_name": self.name(), "tags": self.tags(&[(PORT, &port.tag)]), "snat_translation": { "type": snat }, "members": members,
            "active_monitor_paths": monitors, "description": format!("pool for cluster {}, service {}", self.cluster, self.service),
        })
    }

    /// What of a virtual server is kept in line.
    pub fn server_fields(&self, port: &Port, ip: &str, profile: &str, pool: &str) -> Value {
        json!({
            "default_pool_member_ports": [port.node_port.to_string()], "ip_address": ip, "application_profile_path": profile, "pool_path": pool,
        })
    }

    /// A port at the address, in this class with addresses of this pool.
    pub fn server(&self, port: &Port, class: &str, pool_id: &str, service_path: &str) -> Value {
        json!({
            "display_name": self.name(), "tags": self.tags(&[(PORT, &port.tag), (POOL, pool_id), (CLASS, class)]), "enabled": true,
            "ports": [port.port.to_string()], "lb_service_path": service_path,
            "description": format!("virtual server for cluster {}, service {}", self.cluster, self.service),
        })
    }

    /// What virtual servers of a gateway belong to.
    pub fn lb_service(&self, gateway: &str, size: &str) -> Value {
        let scopes = [(OWNER, self.settings.owner.as_str()), (CLUSTER, self.cluster)];
        let given = self.settings.tags.iter();
        let given = given.map(|(scope, tag)| (scope.as_str(), tag.as_str()));
        let free = given.filter(|(scope, _)| scopes.iter().all(|(known, _)| known != scope));
        json!({
            "display_name": cut(format!("cluster:{}", self.cluster)), "tags": tags(scopes.into_iter().chain(free)), "size": size, "enabled": true,
            "connectivity_path": gateway, "description": format!("virtual server pool for cluster {}", self.cluster),
        })
    }

    /// The members of a pool: those that stay are left as they are, whatever was set on them by hand.
    pub fn members(&self, seen: &Value, wanted: &BTreeMap<String, String>) -> Value {
        let mut left = wanted.clone();
        let mut members: Vec<Value> = items(seen, "members")
            .filter(|member| left.remove(text(member, "ip_address")).is_some())
            .cloned()
            .collect();
        let new = left.into_iter().map(|(ip, node)| {
            json!({ "ip_address": ip, "display_name": cut(format!("{}:{node}", self.cluster)), "admin_state": "ENABLED" })
        });
        members.extend(new);
        members.into()
    }
}

/// The name of a Service's load balancer.
pub fn balancer_name(cluster: &str, service: &str) -> String {
    cut(format!("cluster:{cluster}:{service}"))
}

fn cut(text: String) -> String {
    match text.char_indices().nth(NAME) {
        Some((end, _)) => text.get(..end).unwrap_or_default().into(),
        None => text,
    }
}

/// As upstream writes it.
pub fn service_name(service: &Service) -> String {
    format!("{}/{}", service.namespace, service.name)
}
