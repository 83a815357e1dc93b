//! One Service's load balancer: reads the cloud and returns the next change.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use cloudwit_guest_sdk::reconcile;
use cloudwit_guest_sdk::state::Keep;

use super::address::{self, Choice};
use super::annotations::associated;
use super::inventory::Inventory;
use super::seen::{Address, Identified, Named, Network, Opening, Rule, SERVICE_TAG};
use super::wanted::Wanted;
use super::work::Change;
use super::{openings, rules};
use crate::CloudStack;
use crate::api::Call;

/// Since when the networks of a rule can be changed.
const RENEWS_NETWORKS: (u32, u32) = (4, 22);

/// How long a network's services and ACL are cached. They hardly ever change.
const NETWORK_KEPT: Keep = Keep::at_most(Duration::from_secs(60));

/// What comes next.
pub type Next<T> = reconcile::Next<T, Change>;

/// These calls; done where there are none.
pub fn calls_or<T>(calls: Vec<Call>, done: T) -> Next<T> {
    Next::changes_or(calls.into_iter().map(Change::Call).collect(), done)
}

/// One call for a Service.
pub struct Task<'a> {
    cloud: &'a CloudStack,
    service: &'a Service,
    /// How the names of its rules begin.
    pub name: String,
    machines: &'a Inventory<'a>,
}

impl<'a> Task<'a> {
    pub fn new(cloud: &'a CloudStack, service: &'a Service, machines: &'a Inventory<'a>) -> Self {
        Self {
            cloud,
            service,
            name: default_balancer_name(service),
            machines,
        }
    }

    /// Its rules.
    pub fn rules(&self) -> Result<Vec<Rule>, Failure> {
        // The keyword finds parts of names.
        let call = self.cloud.api.all("listLoadBalancerRules").field("keyword", &self.name);
        let found = self.cloud.api.list(call, "loadbalancerrule")?;
        Ok(rules::of_balancer(found, &self.name))
    }

    /// Addresses that are marked as the Service's, those of its rules, and the one that it names.
    pub fn addresses(&self, rules: &[Rule], ip: Option<&str>) -> Result<Vec<Address>, Failure> {
        let marked = self
            .list_addresses()
            .field("tags[0].key", SERVICE_TAG)
            .field("tags[0].value", &self.service.uid);
        let mut found: Vec<Address> = self.cloud.api.list(marked, "publicipaddress")?;
        for rule in rules {
            if !found.iter().any(|address| address.id == rule.publicipid) {
                let call = self.list_addresses().field("id", &rule.publicipid);
                found.extend(self.cloud.api.list(call, "publicipaddress")?);
            }
        }
        if let Some(ip) = ip.filter(|ip| found.iter().all(|address| address.ipaddress != *ip)) {
            let call = self
                .list_addresses()
                .field("ipaddress", ip)
                .field("allocatedonly", "false");
            found.extend(self.cloud.api.list(call, "publicipaddress")?);
        }
        Ok(found)
    }

    fn list_addresses(&self) -> Call {
        self.cloud.api.all("listPublicIpAddresses")
    }

    fn network(&self, id: &str) -> Result<Network, Failure> {
        let state = self.cloud.context.state();
        state.get_or_make(&format!("network/{id}"), NETWORK_KEPT, Duration::from_secs(5), || {
            let call = self.cloud.api.all("listNetworks").field("id", id);
            let found: Vec<Network> = self.cloud.api.list(call, "network")?;
            let missing = || Failure::not_found(format!("the network {id} is not seen in this project"));
            found.into_iter().next().ok_or_else(missing)
        })
    }

    /// The next change towards the desired load balancer; its address when there is none.
    pub fn next(&self, wanted: &Wanted<'_>) -> Result<Next<Address>, Failure> {
        let seen = self.rules()?;
        let addresses = self.addresses(&seen, wanted.ip)?;
        let network = match seen.first().filter(|rule| !rule.networkid.is_empty()) {
            Some(rule) => rule.networkid.clone(),
            None => self.machines.network(&wanted.machines)?,
        };
        let network = self.network(&network)?;
        if !wanted.sources.is_empty() && !network.has("Firewall") && !network.has("NetworkACL") {
            let key = super::annotations::TABLE.key("source-cidrs");
            return Err(Failure::invalid(format!(
                "loadBalancerSourceRanges needs a firewall or ACL, and the network has neither; use the annotation {key}"
            )));
        }
        let address = match address::choose(wanted.ip, wanted.uid, &seen, &addresses)? {
            Choice::Use(address) => address,
            Choice::Associate(ip) => {
                return Ok(Next::change(Change::Associate {
                    call: address::associate(&network, ip, self.cloud.api.project()),
                    uid: wanted.uid.to_owned(),
                    named: ip.is_some(),
                }));
            }
        };
        let rounds = [
            self.unmarked(&addresses, wanted.ip),
            self.changes(wanted, &seen, &address.id, &network)?,
            self.released(&addresses, Some(&address.id))?,
        ];
        let round = rounds.into_iter().find(|round| !round.is_empty());
        Ok(calls_or(round.unwrap_or_default(), address.clone()))
    }

    /// Marks own addresses without a mark: what upstream associated.
    fn unmarked(&self, addresses: &[Address], ip: Option<&str>) -> Vec<Call> {
        let own = |address: &&Address| {
            address.is_allocated() && !address.is_for(&self.service.uid) && self.is_own(address, ip)
        };
        let mark = |address: &Address| {
            let named = ip == Some(address.ipaddress.as_str());
            address::mark(&address.id, &self.service.uid, named)
        };
        addresses.iter().filter(own).map(mark).collect()
    }

    fn is_own(&self, address: &Address, ip: Option<&str>) -> bool {
        address::is_own(address, &self.service.uid, ip, associated(self.service, address))
    }

    /// The first round of changes to rules, machines, and what lets traffic in.
    fn changes(
        &self,
        wanted: &Wanted<'_>,
        seen: &[Rule],
        address: &str,
        network: &Network,
    ) -> Result<Vec<Call>, Failure> {
        let any_other = seen.iter().any(|rule| rules::other_networks(rule, wanted));
        let renews = any_other && self.cloud.api.version()? >= RENEWS_NETWORKS;
        let found = rules::compare(wanted, seen, address, renews);
        let round = self.closed(&found.delete, Some((wanted, address)))?;
        if !round.is_empty() {
            return Ok(round);
        }
        if !found.delete.is_empty() {
            return Ok(found.delete.into_iter().map(rules::delete).collect());
        }
        let create = |port| rules::create(wanted, port, address, &network.id);
        let mut round: Vec<Call> = found.create.into_iter().map(create).collect();
        round.extend(found.update.into_iter().map(|rule| rules::update(wanted, rule, renews)));
        round.extend(self.opened(wanted, address, network)?);
        if round.is_empty() {
            round = self.members(&found.keep, &wanted.machines)?;
        }
        Ok(round)
    }

    /// Machines that have to be added and removed.
    pub fn members(&self, rules: &[&Rule], wanted: &[String]) -> Result<Vec<Call>, Failure> {
        let mut calls = Vec::new();
        for rule in rules {
            let call = Call::new("listLoadBalancerRuleInstances").field("id", &rule.id);
            let there: Vec<Identified> = self.cloud.api.list(call, "loadbalancerruleinstance")?;
            let mut there: Vec<String> = there.into_iter().map(|one| one.id.to_ascii_lowercase()).collect();
            there.sort_unstable();
            if there == wanted {
                continue;
            }
            // A machine that does not exist any more would spoil the whole call.
            let wanted = self.machines.in_network(wanted, &rule.networkid)?;
            calls.extend(rules::members(rule, &there, &wanted));
        }
        Ok(calls)
    }

    fn opened(&self, wanted: &Wanted<'_>, address: &str, network: &Network) -> Result<Vec<Call>, Failure> {
        if network.has("Firewall") {
            return Ok(openings::firewall(wanted, &self.firewall(address)?, address));
        }
        match self.acl(network)? {
            Some(acl) => Ok(openings::acl(wanted, &self.acl_rules(acl)?, acl, &network.id)),
            None => Ok(Vec::new()),
        }
    }

    /// What let traffic in to these rules and is not needed any more: `wanted` is what stays, on this address.
    fn closed(&self, rules: &[&Rule], wanted: Option<(&Wanted<'_>, &str)>) -> Result<Vec<Call>, Failure> {
        let mut calls = Vec::new();
        let mut places: Vec<(&str, &str)> = rules
            .iter()
            .map(|rule| (rule.networkid.as_str(), rule.publicipid.as_str()))
            .collect();
        places.sort_unstable();
        places.dedup();
        for (network, address) in places {
            let network = self.network(network)?;
            let here: Vec<&Rule> = rules
                .iter()
                .copied()
                .filter(|rule| rule.publicipid == address)
                .collect();
            let stays = wanted.filter(|(_, stays)| *stays == address).map(|(wanted, _)| wanted);
            if network.has("Firewall") {
                calls.extend(openings::left_in_firewall(&here, &self.firewall(address)?, stays));
            } else if let Some(acl) = self.acl(&network)? {
                let there = self.acl_rules(acl)?;
                let shared = match openings::has_upstreams(&here, &there) {
                    true => self.others_in(&network.id)?,
                    false => Vec::new(),
                };
                // An ACL is for the network, whatever the address.
                let stays = wanted.map(|(wanted, _)| wanted);
                calls.extend(openings::left_in_acl(&self.name, &here, &there, stays, &shared));
            }
        }
        Ok(calls)
    }

    /// Rules of other load balancers in a network.
    fn others_in(&self, network: &str) -> Result<Vec<Rule>, Failure> {
        let call = self.cloud.api.all("listLoadBalancerRules").field("networkid", network);
        let mut found: Vec<Rule> = self.cloud.api.list(call, "loadbalancerrule")?;
        let own = format!("{}-", self.name);
        found.retain(|rule| !rule.name.starts_with(&own));
        Ok(found)
    }

    fn firewall(&self, address: &str) -> Result<Vec<Opening>, Failure> {
        let call = self.cloud.api.all("listFirewallRules").field("ipaddressid", address);
        self.cloud.api.list(call, "firewallrule")
    }

    /// The ACL of a network, unless it is one that cannot be changed.
    fn acl<'n>(&self, network: &'n Network) -> Result<Option<&'n str>, Failure> {
        let Some(acl) = network.aclid.as_deref().filter(|_| network.has("NetworkACL")) else {
            return Ok(None);
        };
        let call = self.cloud.api.all("listNetworkACLLists").field("id", acl);
        let found: Vec<Named> = self.cloud.api.list(call, "networkacllist")?;
        let fixed = found
            .iter()
            .any(|list| openings::DEFAULT_ACLS.contains(&list.name.as_str()));
        Ok((!fixed && !found.is_empty()).then_some(acl))
    }

    fn acl_rules(&self, acl: &str) -> Result<Vec<Opening>, Failure> {
        let call = self.cloud.api.all("listNetworkACLs").field("aclid", acl);
        self.cloud.api.list(call, "networkacl")
    }

    /// Releases addresses that are marked as the Service's, but for one and those that others use.
    fn released(&self, addresses: &[Address], but: Option<&str>) -> Result<Vec<Call>, Failure> {
        let mut calls = Vec::new();
        for address in addresses {
            let goes = address.is_for(&self.service.uid)
                && address.is_allocated()
                && Some(address.id.as_str()) != but
                && self.is_own(address, self.service.fixed_ip());
            if goes && !address.isstaticnat && !self.is_used(address)? {
                calls.push(Call::new("disassociateIpAddress").field("id", &address.id));
            }
        }
        Ok(calls)
    }

    fn is_used(&self, address: &Address) -> Result<bool, Failure> {
        let call = self
            .cloud
            .api
            .all("listLoadBalancerRules")
            .field("publicipid", &address.id);
        let found: Vec<Identified> = self.cloud.api.list(call, "loadbalancerrule")?;
        Ok(address.hasrules || !found.is_empty())
    }

    /// What comes next until nothing is left.
    pub fn next_deletion(&self) -> Result<Next<()>, Failure> {
        let seen = self.rules()?;
        let addresses = self.addresses(&seen, None)?;
        let every: Vec<&Rule> = seen.iter().collect();
        let marks = self.unmarked(&addresses, self.service.fixed_ip());
        if !marks.is_empty() {
            return Ok(calls_or(marks, ()));
        }
        let closed = self.closed(&every, None)?;
        if !closed.is_empty() {
            return Ok(calls_or(closed, ()));
        }
        if !every.is_empty() {
            return Ok(calls_or(every.into_iter().map(rules::delete).collect(), ()));
        }
        Ok(calls_or(self.released(&addresses, None)?, ()))
    }
}
