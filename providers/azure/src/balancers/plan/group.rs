//! What comes next for the network security group of a Service.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::security::{self, Kept, Owners};
use super::{Task, address, balancer, has_failed, ip_of, settled, wanted};
use crate::arm::NETWORK;
use crate::balancers::work::Change;
use crate::config::given;

impl Task<'_> {
    /// The change of the security group that leaves these rules for the Service.
    pub(super) fn group_change(
        &self,
        found: &[Option<Value>; 2],
        addresses: &[Value],
        rules: &[security::Rule],
        ips: &[String],
    ) -> Result<Option<Change>, Failure> {
        let config = &self.azure.config;
        let Some(name) = given(&config.security_group_name) else {
            return Ok(None);
        };
        let owners = self.owners(found, addresses, ips);
        if owners.own.is_empty() {
            return Ok(None);
        }
        let group = config.network_group(given(&config.security_group_resource_group));
        let path = format!("{group}/providers/Microsoft.Network/networkSecurityGroups/{name}");
        let Some(mut there) = self.azure.arm.find(&path, NETWORK, &[])? else {
            if rules.is_empty() {
                return Ok(None);
            }
            let text = format!("there is no network security group {name}; make it, or correct securityGroupName");
            return Err(Failure::failed_precondition(text));
        };
        let changed = security::allow(&mut there, rules, &owners)?;
        if !changed && !rules.is_empty() {
            settled(&there)?;
        }
        Ok((changed || has_failed(&there)).then(|| Change::put(there)))
    }
    /// Owners of the destinations of security rules. The Service's are those that it has now, and those in its status and tags.
    fn owners(&self, found: &[Option<Value>; 2], addresses: &[Value], ips: &[String]) -> Owners {
        let mut owners = Owners::default();
        owners.own.extend(ips.iter().cloned());
        let in_status = self.service.ingress.iter();
        owners
            .own
            .extend(in_status.filter_map(|ingress| match &ingress.endpoint {
                Endpoint::Ip((ip, _)) => Some(ip.clone()),
                Endpoint::Hostname(_) => None,
            }));
        let tagged = address::named_by(addresses, &wanted::tag(self.service), &self.cluster);
        owners.own.extend(tagged.into_iter().map(str::to_owned));
        for one in found.iter().flatten() {
            let fronts = balancer::fronts(one, &self.base);
            let ips = fronts.iter().filter_map(|front| ip_of(front, addresses));
            owners.own.extend(ips.map(str::to_owned));
            for v6 in [false, true] {
                owners
                    .nodes
                    .extend(balancer::in_pool(one, &wanted::pool(&self.cluster, v6)));
            }
            let for_nodes = balancer::rules_of(one, &self.base, true).filter(|rule| !rule.is_floating);
            owners
                .node_ports
                .extend(for_nodes.map(|rule| (rule.protocol.to_owned(), rule.backend_port)));
            for rule in balancer::rules_of(one, &self.base, false) {
                let ip = balancer::front(one, rule.front)
                    .and_then(|front| ip_of(front, addresses))
                    .map(str::to_owned);
                let protocol = rule.protocol.to_owned();
                match ip {
                    _ if !rule.is_floating => owners.kept.push(Kept {
                        protocol,
                        port: rule.backend_port,
                        ip: None,
                    }),
                    Some(ip) => owners.kept.push(Kept {
                        protocol,
                        port: rule.port,
                        ip: Some(ip),
                    }),
                    None => {}
                }
            }
        }
        owners
    }
}
