//! Internal load balancers: a forwarding rule to a backend service of instance groups.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};

use super::parts::collection;
use super::wanted::Wanted;
use super::{Task, is_internal, names};
use crate::config::given;
use crate::resource::{is_right, text};
use crate::work::Work;

/// A rule names so many ports; with more it takes all, and the firewall rule has them.
const PORTS: usize = 5;

impl Task<'_> {
    /// Goes a step on. Gives the address when all is right.
    pub(super) fn internal(&self, wanted: &Wanted<'_>, work: &mut Work<'_>) -> Result<Option<String>, Failure> {
        let rule = work.find(&self.rule_path())?;
        if rule.as_ref().is_some_and(|rule| !is_internal(rule)) {
            self.delete_all(work)?;
            return Ok(None);
        }
        // Left by an external load balancer of this Service.
        if rule.is_none() && self.remove(work, &self.place.regional("targetPools", &self.name))? {
            return Ok(None);
        }
        let body = self.rule_body(wanted);
        let rule_right = rule
            .as_ref()
            .is_some_and(|seen| is_right(&self.compared(wanted, &body), seen));
        let held = self.held(work)?;
        let ip = match (&rule, rule_right) {
            (Some(rule), true) => Some(text(rule, "IPAddress").to_owned()),
            // The rule will have one.
            (None, _) if wanted.ip.is_none() && held.is_none() => None,
            _ => match self.hold_internal(wanted, work, rule.as_ref(), held.as_ref())? {
                Some(ip) => Some(ip),
                None => return Ok(None),
            },
        };
        let mut changed = self.around(wanted, work, ip.as_deref())?;
        let (groups, made) = self.groups(wanted, work)?;
        changed |= made;
        // A backend service that a rule of another protocol uses cannot be changed.
        if rule.is_some() && !rule_right {
            work.change("DELETE", &self.rule_path(), None)?;
            changed = true;
        }
        if changed || self.backend(wanted, work, &groups)? {
            return Ok(None);
        }
        if rule.is_none() {
            if self.remove_checks(work, wanted, "healthChecks")? {
                return Ok(None);
            }
            let mut body = body;
            if let Some(ip) = ip {
                body["IPAddress"] = ip.into();
            }
            work.create(collection(&self.rule_path()), &body)?;
            return Ok(None);
        }
        if let Some(held) = &held {
            work.delete_seen(&self.held_path(), held)?;
        }
        Ok(ip)
    }

    /// Only what follows from the targets.
    pub(super) fn update_internal(
        &self,
        wanted: &Wanted<'_>,
        work: &mut Work<'_>,
        rule: &Value,
    ) -> Result<bool, Failure> {
        let mut changed = false;
        if self.gce.config.global.node_tags.is_empty() {
            changed |= self.around(wanted, work, Some(text(rule, "IPAddress")))?;
        }
        let (groups, made) = self.groups(wanted, work)?;
        // A group that is being made cannot be a backend yet.
        Ok(changed | made || self.backend(wanted, work, &groups)?)
    }

    /// Health check, and firewall rules once there is an address.
    fn around(&self, wanted: &Wanted<'_>, work: &mut Work<'_>, ip: Option<&str>) -> Result<bool, Failure> {
        let (check, port, path) = wanted.check(&self.cluster_id);
        let mut changed = self.check(work, "healthChecks", (&check, port, path))?;
        if let Some(ip) = ip {
            changed |= self.firewall(work, wanted, ip)?;
            changed |= self.check_firewall(work, wanted, &names::internal_check_firewall(&check), port)?;
        }
        Ok(changed)
    }

    pub(super) fn backend_name(&self, wanted: &Wanted<'_>) -> String {
        if !wanted.asked.share_backend {
            return self.name.clone();
        }
        let affinity = wanted.service.session_affinity_seconds.is_some();
        names::shared_backend(&self.cluster_id, wanted.protocol, affinity, self.gce.context.keys())
    }

    fn backend(&self, wanted: &Wanted<'_>, work: &mut Work<'_>, groups: &[String]) -> Result<bool, Failure> {
        let (check, ..) = wanted.check(&self.cluster_id);
        let backends: Vec<Value> = groups
            .iter()
            .map(|group| json!({ "group": self.link(group), "balancingMode": "CONNECTION" }))
            .collect();
        let mut body = json!({
            "name": self.backend_name(wanted), "protocol": wanted.protocol, "sessionAffinity": wanted.affinity(),
            "loadBalancingScheme": "INTERNAL", "backends": backends,
            "healthChecks": [self.link(&self.place.global("healthChecks", &check))],
        });
        if !wanted.asked.share_backend {
            body["description"] = names::description(self.service, None).into();
        }
        let path = self.place.regional("backendServices", &self.backend_name(wanted));
        // The answer's fingerprint goes along, so that no concurrent change is lost.
        self.put(work, &path, &body, "PUT")
    }

    fn subnetwork(&self, wanted: &Wanted<'_>) -> String {
        match wanted.asked.subnetwork {
            Some(name) => self.place.subnetwork_named(name),
            None => self.place.subnetwork.clone(),
        }
    }

    fn rule_body(&self, wanted: &Wanted<'_>) -> Value {
        let backend = self.place.regional("backendServices", &self.backend_name(wanted));
        let mut body = json!({
            "name": self.name, "description": names::description(self.service, None), "IPProtocol": wanted.protocol,
            "loadBalancingScheme": "INTERNAL", "backendService": self.link(&backend), "network": self.link(&self.place.network),
            "subnetwork": self.link(&self.subnetwork(wanted)), "allowGlobalAccess": wanted.asked.global_access,
        });
        if wanted.ports.len() > PORTS {
            body["allPorts"] = true.into();
        } else {
            body["ports"] = wanted.ports.iter().map(ToString::to_string).collect::<Vec<_>>().into();
        }
        if let Some(ip) = wanted.ip {
            body["IPAddress"] = ip.into();
        }
        body
    }

    /// A subnetwork that is not configured is not a reason to recreate the rule.
    fn compared(&self, wanted: &Wanted<'_>, body: &Value) -> Value {
        let mut compared = body.clone();
        let named = wanted.asked.subnetwork.is_some() || given(&self.gce.config.global.subnetwork_name).is_some();
        if !named && let Some(fields) = compared.as_object_mut() {
            fields.remove("subnetwork");
        }
        compared
    }

    /// The address for a rule that is to be made. None while it is being reserved.
    fn hold_internal(
        &self,
        wanted: &Wanted<'_>,
        work: &mut Work<'_>,
        rule: Option<&Value>,
        held: Option<&Value>,
    ) -> Result<Option<String>, Failure> {
        if let Some(ip) = wanted.ip {
            return Ok(Some(ip.into()));
        }
        let subnetwork = self.link(&self.subnetwork(wanted));
        if let Some(address) = held {
            let place = json!({ "addressType": "INTERNAL", "subnetwork": subnetwork });
            if is_right(&place, address) {
                return Ok(Some(text(address, "address").into()));
            }
            // Of another subnetwork, or left by an external load balancer.
            if rule.is_some() {
                work.change("DELETE", &self.rule_path(), None)?;
            }
            work.delete_seen(&self.held_path(), address)?;
            return Ok(None);
        }
        let place = json!({ "subnetwork": subnetwork });
        let known = rule
            .filter(|rule| is_right(&place, rule))
            .map(|rule| text(rule, "IPAddress"));
        let mut body = json!({
            "name": self.name, "description": names::description(self.service, None), "addressType": "INTERNAL", "subnetwork": subnetwork,
        });
        if let Some(ip) = known.filter(|ip| !ip.is_empty()) {
            if self.reserved(ip)?.is_some() {
                return Ok(Some(ip.into()));
            }
            body["address"] = ip.into();
        }
        work.create(collection(&self.held_path()), &body)?;
        Ok(None)
    }
}
