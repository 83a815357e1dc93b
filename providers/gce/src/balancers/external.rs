//! External load balancers: a forwarding rule to a target pool.
//!
//! The address comes with the rule. Neither can be edited, so a change deletes the rule and recreates it. Meanwhile its address is held by a static one under
//! the load balancer's name, which is released when the rule has it: static addresses are few (7 in a region by default).

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};

use super::parts::collection;
use super::wanted::Wanted;
use super::{Task, is_internal, is_of_backend_controller, names};
use crate::links;
use crate::resource::{is_right, text, texts};
use crate::work::Work;

/// Machines that a target pool takes when it is made, and in one change later.
const FIRST: usize = 200;
const MEMBERS: usize = 1000;

impl Task<'_> {
    /// Goes a step on. Gives the address when all is right, but for members that are being changed.
    pub(super) fn external(&self, wanted: &Wanted<'_>, work: &mut Work<'_>) -> Result<Option<String>, Failure> {
        let rule = work.find(&self.rule_path())?;
        if let Some(rule) = &rule {
            if is_of_backend_controller(rule) {
                let text = format!(
                    "the forwarding rule {} is of the controller for backend services (ingress-gce)",
                    self.name
                );
                return Err(Failure::implemented_elsewhere(text));
            }
            if is_internal(rule) {
                self.delete_all(work)?;
                return Ok(None);
            }
        }
        // Left by an internal load balancer of this Service.
        if rule.is_none() && self.remove(work, &self.place.regional("backendServices", &self.name))? {
            return Ok(None);
        }
        let (check, port, path) = wanted.check(&self.cluster_id);
        let pool_path = self.place.regional("targetPools", &self.name);
        let pool = work.find(&pool_path)?;
        let pool_body = json!({
            "name": self.name, "description": names::description(self.service, None), "sessionAffinity": wanted.affinity(),
            "healthChecks": [self.link(&self.place.global("httpHealthChecks", &check))],
        });
        let mut rule_body = json!({
            "name": self.name, "description": names::description(self.service, None), "IPProtocol": wanted.protocol,
            "portRange": wanted.port_range(), "target": self.link(&pool_path), "networkTier": wanted.asked.tier,
        });
        if let Some(ip) = wanted.ip {
            rule_body["IPAddress"] = ip.into();
        }
        let pool_right = pool.as_ref().is_some_and(|seen| is_pool_right(&pool_body, seen));
        let complete = pool_right && rule.as_ref().is_some_and(|seen| is_right(&rule_body, seen));
        let held = self.held(work)?;
        let ip = match (&rule, complete) {
            (Some(rule), true) => Some(text(rule, "IPAddress").to_owned()),
            // The rule will have one.
            (None, _) if wanted.ip.is_none() && held.is_none() => None,
            _ => match self.hold(wanted, work, rule.as_ref(), held.as_ref())? {
                Some(ip) => Some(ip),
                None => return Ok(None),
            },
        };
        let mut changed = self.check(work, "httpHealthChecks", (&check, port, path))?;
        if let Some(ip) = &ip {
            changed |= self.firewall(work, wanted, ip)?;
            changed |= self.check_firewall(work, wanted, &names::external_check_firewall(&check), port)?;
        }
        if rule.is_some() && !complete {
            work.change("DELETE", &self.rule_path(), None)?;
            changed = true;
        }
        if changed {
            return Ok(None);
        }
        let Some(pool) = pool else {
            let mut body = pool_body;
            let first = wanted
                .machines
                .iter()
                .take(FIRST)
                .map(|machine| self.link(&machine.path()));
            body["instances"] = first.collect::<Vec<_>>().into();
            work.create(collection(&pool_path), &body)?;
            return Ok(None);
        };
        if !pool_right {
            work.change("DELETE", &pool_path, None)?;
            return Ok(None);
        }
        if rule.is_none() {
            if self.remove_checks(work, wanted, "httpHealthChecks")? {
                return Ok(None);
            }
            if let Some(ip) = ip {
                rule_body["IPAddress"] = ip.into();
            }
            work.create(collection(&self.rule_path()), &rule_body)?;
            return Ok(None);
        }
        self.members(wanted, work, &pool)?;
        if let Some(held) = &held {
            // The address stays the rule's, as an ephemeral one.
            work.delete_seen(&self.held_path(), held)?;
        }
        Ok(ip)
    }

    /// The address for a rule that is to be made: reserved, so that it cannot get lost. None while that is being done.
    fn hold(
        &self,
        wanted: &Wanted<'_>,
        work: &mut Work<'_>,
        rule: Option<&Value>,
        held: Option<&Value>,
    ) -> Result<Option<String>, Failure> {
        let tier = wanted.asked.tier;
        let known = rule
            .filter(|rule| text(rule, "networkTier") == tier)
            .map(|rule| text(rule, "IPAddress"));
        if let Some(ip) = wanted.ip {
            match self.reserved(ip)? {
                Some(address) if text(&address, "networkTier") == tier => return Ok(Some(ip.into())),
                Some(address) => {
                    let is = text(&address, "networkTier");
                    let text = format!("the address {ip} has the network tier {is}, and the Service asks for {tier}");
                    return Err(Failure::invalid(text));
                }
                // It came with the rule and is not reserved: below it is reserved.
                None if known == Some(ip) => {}
                None => {
                    let region = &self.place.region;
                    let text = format!(
                        "loadBalancerIP {ip} is no static external address of the region {region}; reserve it, or remove the field"
                    );
                    return Err(Failure::invalid(text));
                }
            }
        } else if let Some(address) = held {
            if text(address, "addressType") == "EXTERNAL" && text(address, "networkTier") == tier {
                return Ok(Some(text(address, "address").into()));
            }
            // Of another tier, or left by an internal load balancer.
            if rule.is_some() {
                work.change("DELETE", &self.rule_path(), None)?;
            }
            work.delete_seen(&self.held_path(), address)?;
            return Ok(None);
        } else if let Some(ip) = known.filter(|ip| !ip.is_empty())
            && self.reserved(ip)?.is_some()
        {
            return Ok(Some(ip.into()));
        }
        let mut body =
            json!({ "name": self.name, "description": names::description(self.service, None), "networkTier": tier });
        if let Some(ip) = known {
            body["address"] = ip.into();
        }
        work.create(collection(&self.held_path()), &body)?;
        Ok(None)
    }

    /// Only what follows from the targets.
    pub(super) fn update_external(
        &self,
        wanted: &Wanted<'_>,
        work: &mut Work<'_>,
        rule: &Value,
    ) -> Result<bool, Failure> {
        let path = self.place.regional("targetPools", &self.name);
        let Some(pool) = work.find(&path)? else {
            return Err(Failure::not_found(format!("the target pool {} is gone", self.name)));
        };
        let mut changed = false;
        // With configured tags no rule depends on the machines.
        if self.gce.config.global.node_tags.is_empty() {
            let (check, port, _) = wanted.check(&self.cluster_id);
            changed |= self.firewall(work, wanted, text(rule, "IPAddress"))?;
            changed |= self.check_firewall(work, wanted, &names::external_check_firewall(&check), port)?;
        }
        Ok(changed | self.members(wanted, work, &pool)?)
    }

    /// Adds and removes machines of the pool.
    fn members(&self, wanted: &Wanted<'_>, work: &mut Work<'_>, pool: &Value) -> Result<bool, Failure> {
        let path = self.place.regional("targetPools", &self.name);
        let seen: Vec<&str> = texts(pool, "instances").map(links::tail).collect();
        let wished: Vec<String> = wanted.machines.iter().map(|machine| machine.path()).collect();
        let add: Vec<&str> = wished
            .iter()
            .map(String::as_str)
            .filter(|path| !seen.contains(path))
            .collect();
        let remove: Vec<&str> = seen
            .iter()
            .copied()
            .filter(|path| !wished.iter().any(|wished| wished == path))
            .collect();
        for (what, paths) in [("addInstance", &add), ("removeInstance", &remove)] {
            for part in paths.chunks(MEMBERS) {
                let instances: Vec<Value> = part.iter().map(|path| json!({ "instance": self.link(path) })).collect();
                work.change(
                    "POST",
                    &format!("{path}/{what}"),
                    Some(&json!({ "instances": instances })),
                )?;
            }
        }
        Ok(!add.is_empty() || !remove.is_empty())
    }
}

/// A pool that was made without an affinity has none.
fn is_pool_right(wanted: &Value, seen: &Value) -> bool {
    let mut seen = seen.clone();
    if text(&seen, "sessionAffinity").is_empty() {
        seen["sessionAffinity"] = "NONE".into();
    }
    is_right(wanted, &seen)
}
