//! The security group of a Service, with `manage-security-groups`: opens its node ports on the ports of its members.

pub mod plan;

use cloudwit_guest_sdk::prelude::*;

use crate::api::Endpoint;
use crate::api::wire::{Fields, Object};
use crate::balancers::change::Change;
use crate::balancers::members::server_id;
use crate::balancers::names::security_group as group_name;
use crate::balancers::security_groups::plan::{Group, ServerPort, member_addresses, rule_changes, rules};
use crate::balancers::task::BalancerTask;
use crate::balancers::wanted::{Wanted, allowed_cidrs};

/// Addresses in one request: a URL of a few kilobytes.
const ADDRESSES: usize = 50;

impl BalancerTask<'_> {
    /// Brings the group, its rules and its ports to what the Service needs; without `manage-security-groups` it is removed.
    pub(crate) fn ensure_security_group(
        &self,
        wanted: &Wanted<'_>,
        targets: &[&Target],
        member_subnet: &str,
    ) -> Result<(), Failure> {
        if !self.config.manage_security_groups {
            return self.remove_security_group();
        }
        let group = match self.security_groups()?.into_iter().next() {
            Some(group) => group,
            None => self.create_security_group()?,
        };
        let from = if self.ovn {
            // OVN keeps the client's address.
            allowed_cidrs(self.service).map_err(Failure::invalid)?
        } else {
            let subnet = self.subnet(member_subnet)?;
            let gone = || Failure::not_found(format!("the members' subnet {member_subnet} does not exist"));
            vec![subnet.ok_or_else(gone)?.cidr]
        };
        let health_port = wanted
            .ports
            .iter()
            .flat_map(|port| &port.members)
            .find_map(|member| member.monitor_port);
        for change in rule_changes(&group, &rules(self.service, health_port, &from)) {
            self.change_rule(change)?;
        }
        self.ensure_server_ports(&group.id, wanted, targets)
    }

    /// Takes the group off all ports and deletes it.
    pub(crate) fn remove_security_group(&self) -> Result<(), Failure> {
        for group in self.security_groups()? {
            for port in self.server_ports("security_groups", &[&group.id])? {
                self.change(port.without(&group.id))?;
            }
            let path = format!("security-groups/{}", group.id);
            self.change(Change::network("DELETE", &path, None, "deleting the security group"))?;
        }
        Ok(())
    }

    fn ensure_server_ports(&self, group: &str, wanted: &Wanted<'_>, targets: &[&Target]) -> Result<(), Failure> {
        let addresses = member_addresses(wanted);
        let there = self.server_ports("security_groups", &[group])?;
        let is_member = |port: &ServerPort| port.ips.iter().any(|ip| addresses.binary_search(&ip.as_str()).is_ok());
        for port in there.iter().filter(|port| !is_member(port)) {
            self.change(port.without(group))?;
        }
        let open = |address: &&&str| !there.iter().any(|port| port.ips.iter().any(|ip| ip == *address));
        let missing: Vec<String> = addresses
            .iter()
            .filter(open)
            .map(|ip| format!("ip_address={ip}"))
            .collect();
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        let servers: Vec<&str> = targets.iter().filter_map(|target| server_id(&target.node)).collect();
        for port in self.server_ports("fixed_ips", &missing)? {
            // The same address can be in several networks of the project.
            if servers.contains(&port.device_id.as_str())
                && let Some(change) = port.with(group)
            {
                self.change(change)?;
            }
        }
        Ok(())
    }

    fn security_groups(&self) -> Result<Vec<Group>, Failure> {
        let call = self
            .api
            .get(Endpoint::Network, "/v2.0/security-groups")
            .query("name", &group_name(self.service));
        self.api.list(call, "security_groups", Group::read)
    }

    fn create_security_group(&self) -> Result<Group, Failure> {
        let Service { namespace, name, .. } = self.service;
        let description = format!(
            "Security Group for {namespace}/{name} Service LoadBalancer in cluster {}",
            self.cluster
        );
        let body = Object::new()
            .text("name", &group_name(self.service))
            .text("description", &description);
        let call = self.api.post(Endpoint::Network, "/v2.0/security-groups");
        let call = call.body(Object::new().object("security_group", body));
        call.read(|json| Group::read(json.need_field("security_group")?))
            .map_err(|failure| failure.context("making the security group"))
    }

    /// A rule that exists already is as good as made.
    fn change_rule(&self, change: Change) -> Result<(), Failure> {
        match self.change(change) {
            Err(Failure {
                kind: FailureKind::Conflict,
                ..
            }) => Ok(()),
            result => result,
        }
    }

    pub(crate) fn server_ports(&self, key: &str, values: &[&str]) -> Result<Vec<ServerPort>, Failure> {
        let mut ports = Vec::new();
        for values in values.chunks(ADDRESSES) {
            let call = self.api.get(Endpoint::Network, "/v2.0/ports");
            let call = values.iter().fold(call, |call, value| call.query(key, value));
            ports.extend(self.api.list(call, "ports", ServerPort::read)?);
        }
        Ok(ports)
    }
}
