//! What internal and external load balancers both have: firewall rules, health checks, an address that is held while the forwarding rule is changed.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};

use super::wanted::{PROBES, Wanted};
use super::{Task, names};
use crate::resource::{is_right, merged, text};
use crate::work::Work;

/// Of every firewall rule.
const PRIORITY: u32 = 1000;

/// What load balancers of one kind are made of.
pub(super) struct Kind {
    /// Collection of what the forwarding rule leads to.
    pub target: &'static str,
    /// Collection of health checks.
    pub check: &'static str,
    /// Name of the firewall rule that lets the probes of a check in.
    pub firewall: fn(&str) -> String,
}

/// External ones, internal ones.
pub(super) const KINDS: [Kind; 2] = [
    Kind {
        target: "targetPools",
        check: "httpHealthChecks",
        firewall: names::external_check_firewall,
    },
    Kind {
        target: "backendServices",
        check: "healthChecks",
        firewall: names::internal_check_firewall,
    },
];

/// Seconds between probes, seconds until one fails, good and bad ones in a row. Larger values that were set by hand are kept.
const NUMBERS: [(&str, u64); 4] = [
    ("checkIntervalSec", 8),
    ("timeoutSec", 1),
    ("healthyThreshold", 1),
    ("unhealthyThreshold", 3),
];

impl Task<'_> {
    /// Makes a resource, or changes it by PATCH or PUT where it is not as desired. Returns whether something was done.
    pub(super) fn put(
        &self,
        work: &mut Work<'_>,
        path: &str,
        body: &Value,
        how: &'static str,
    ) -> Result<bool, Failure> {
        let seen = work.find(path)?;
        self.put_known(work, path, seen.as_ref(), body, how)
    }

    fn put_known(
        &self,
        work: &mut Work<'_>,
        path: &str,
        seen: Option<&Value>,
        body: &Value,
        how: &'static str,
    ) -> Result<bool, Failure> {
        match seen {
            Some(seen) if is_right(body, seen) => return Ok(false),
            Some(seen) if how == "PUT" => work.change(how, path, Some(&merged(seen, body)))?,
            Some(_) => work.change(how, path, Some(body))?,
            None => work.create(collection(path), body)?,
        };
        Ok(true)
    }

    /// Deletes a resource. Returns whether there was one.
    pub(super) fn remove(&self, work: &mut Work<'_>, path: &str) -> Result<bool, Failure> {
        let there = work.find(path)?.is_some();
        if there {
            work.change("DELETE", path, None)?;
        }
        Ok(there)
    }

    /// Lets clients in, to the Service's ports at this address.
    pub(super) fn firewall(&self, work: &mut Work<'_>, wanted: &Wanted<'_>, ip: &str) -> Result<bool, Failure> {
        let rule = |ports: Vec<String>| {
            json!({
                "name": names::firewall(&self.name), "description": names::description(self.service, Some(ip)),
                "sourceRanges": wanted.sources, "destinationRanges": [ip],
                "allowed": [{ "IPProtocol": wanted.protocol.to_ascii_lowercase(), "ports": ports }],
            })
        };
        // Upstream once wrote each port by itself; such a rule is right too.
        let each = rule(wanted.ports.iter().map(ToString::to_string).collect());
        self.firewall_rule(work, wanted, rule(wanted.ranges()), Some(each))
    }

    /// Lets probes in; to every address, whatever a rule of upstream's for one Service allowed.
    pub(super) fn check_firewall(
        &self,
        work: &mut Work<'_>,
        wanted: &Wanted<'_>,
        name: &str,
        port: u16,
    ) -> Result<bool, Failure> {
        let body = json!({
            "name": name, "description": format!(r#"{{"kubernetes.io/cluster-id":"{}"}}"#, self.cluster_id),
            "sourceRanges": PROBES, "destinationRanges": [],
            "allowed": [{ "IPProtocol": "tcp", "ports": [port.to_string()] }],
        });
        self.firewall_rule(work, wanted, body, None)
    }

    /// `other` would be right as well.
    fn firewall_rule(
        &self,
        work: &mut Work<'_>,
        wanted: &Wanted<'_>,
        body: Value,
        other: Option<Value>,
    ) -> Result<bool, Failure> {
        // Without tags a rule would open all machines of the network, so it waits for the first Node.
        let Some(tags) = self.tags(&wanted.machines)? else {
            return Ok(false);
        };
        let whole = |mut body: Value| {
            body["targetTags"] = json!(tags);
            body["priority"] = PRIORITY.into();
            body["network"] = self.link(&self.place.network).into();
            body
        };
        let body = whole(body);
        let path = self.place.of_network("firewalls", text(&body, "name"));
        let put = |work: &mut Work<'_>| {
            let seen = work.find(&path)?;
            if let (Some(seen), Some(other)) = (&seen, other)
                && is_right(&whole(other), seen)
            {
                return Ok(false);
            }
            self.put_known(work, &path, seen.as_ref(), &body, "PATCH")
        };
        match put(work) {
            Err(failure) if failure.kind == FailureKind::Denied && self.is_shared_vpc() => {
                self.ask_administrator(&body);
                Ok(false)
            }
            result => result,
        }
    }

    pub(super) fn is_shared_vpc(&self) -> bool {
        self.place.network_project != self.place.project
    }

    /// In a shared VPC the network administrators often own the rules: they get the command in an Event, and the rest proceeds.
    fn ask_administrator(&self, rule: &Value) {
        let list = |field: &str| crate::resource::texts(rule, field).collect::<Vec<_>>().join(",");
        let allowed = &rule["allowed"][0];
        let ports =
            crate::resource::texts(allowed, "ports").map(|port| format!("{}:{port}", text(allowed, "IPProtocol")));
        let mut command = format!(
            "gcloud compute firewall-rules create {} --network {} --allow {} --source-ranges {} --target-tags {} --project {}",
            text(rule, "name"),
            crate::links::name(&self.place.network),
            ports.collect::<Vec<_>>().join(","),
            list("sourceRanges"),
            list("targetTags"),
            self.place.network_project,
        );
        if rule.get("destinationRanges").is_some() {
            command.push_str(&format!(" --destination-ranges {}", list("destinationRanges")));
        }
        let text = format!("Firewall change required by network admin: `{command}`");
        self.gce
            .context
            .service_event(EventKind::Normal, "LoadBalancerManualChange", &text);
    }

    /// A health check: `httpHealthChecks` (of target pools) or `healthChecks` (of backend services).
    pub(super) fn check(
        &self,
        work: &mut Work<'_>,
        collection: &str,
        (name, port, path): (&str, u16, &str),
    ) -> Result<bool, Failure> {
        let resource = self.place.global(collection, name);
        let known = work.find(&resource)?;
        let probe = json!({ "port": port, "requestPath": path });
        let mut body = match collection {
            "healthChecks" => json!({ "type": "HTTP", "httpHealthCheck": probe }),
            _ => probe,
        };
        body["name"] = name.into();
        for (field, least) in NUMBERS {
            let larger = known.as_ref().and_then(|seen| seen.get(field)?.as_u64());
            body[field] = larger.unwrap_or_default().max(least).into();
        }
        if name == self.name {
            body["description"] = names::description(self.service, None).into();
        }
        if known.is_none() {
            self.gce.context.state().remove(&names::deleted_check(collection));
        }
        self.put_known(work, &resource, known.as_ref(), &body, "PUT")
    }

    /// Deletes checks of the Service's own that it does not need, of this kind or the other. Returns whether there was one.
    pub(super) fn remove_checks(&self, work: &mut Work<'_>, wanted: &Wanted<'_>, kind: &str) -> Result<bool, Failure> {
        let mut gone = false;
        for one in &KINDS {
            if one.check != kind || wanted.own_check().is_none() {
                gone |= self.remove_check(work, one)?;
            }
        }
        Ok(gone)
    }

    /// Deletes the Service's own check with its firewall rule, which is looked up where there is a check, so it is deleted first.
    pub(super) fn remove_check(&self, work: &mut Work<'_>, kind: &Kind) -> Result<bool, Failure> {
        let check = self.place.global(kind.check, &self.name);
        if work.find(&check)?.is_none() {
            return Ok(false);
        }
        Ok(self.remove_firewall(work, &(kind.firewall)(&self.name))? || self.remove(work, &check)?)
    }

    /// The address that is held under the load balancer's name while its forwarding rule is away.
    pub(super) fn held(&self, work: &mut Work<'_>) -> Result<Option<Value>, Failure> {
        work.find(&self.held_path())
    }

    pub(super) fn held_path(&self) -> String {
        self.place.regional("addresses", &self.name)
    }

    /// The resource that has reserved this address, whatever its name.
    pub(super) fn reserved(&self, ip: &str) -> Result<Option<Value>, Failure> {
        let path = format!(
            "/projects/{}/regions/{}/addresses",
            self.place.project, self.place.region
        );
        let filter = format!("address = \"{ip}\"");
        let page: crate::api::Page = self.gce.api.get(&path, &[("filter", &filter)])?;
        Ok(page.items.into_iter().next())
    }
}

/// The path without the name.
pub(super) fn collection(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(collection, _)| collection)
}
