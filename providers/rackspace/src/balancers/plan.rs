//! The changes between the observed load balancers and the desired ones. Pure.
//!
//! ```text
//!   ports, settings + what is there -> anchor (whose address all share) -> a load balancer for each port
//!                                      -> per load balancer the next change; at last those that are not desired
//! ```
//!
//! After a change a load balancer takes no other one for a while, so there is at most one of each in a plan.

use std::fmt;
use std::net::IpAddr;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile;
use serde_json::{Value, json};

use super::access::{self, Next};
use super::clb::{Clb, Listed, Phase};
use super::wanted::{Settings, Source, WantedPort, addresses, kind};

/// Nodes that are deleted in one request (CLB's limit `BATCH_DELETE_LIMIT`), and added in one.
const BATCH: usize = 10;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// `POST`, `PUT` or `DELETE`.
    pub method: &'static str,
    /// From `/loadbalancers` on.
    pub path: String,
    /// JSON.
    pub body: Option<Value>,
}

impl Change {
    fn new(method: &'static str, clb: &Clb, below: &str, body: Option<Value>) -> Self {
        Self {
            method,
            path: format!("/loadbalancers/{}{below}", clb.id),
            body,
        }
    }

    /// Deletes one with everything below it.
    pub fn delete(id: u64) -> Self {
        Self {
            method: "DELETE",
            path: format!("/loadbalancers/{id}"),
            body: None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        match &self.body {
            Some(body) => write!(f, " {body}"),
            None => Ok(()),
        }
    }
}

/// What to do now.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Requests that can be made now, of different load balancers each.
    pub changes: Vec<Change>,
    /// What the cloud is still busy with.
    pub waiting: Option<String>,
    /// What an operator has to decide; reported after the changes.
    pub broken: Option<Failure>,
    /// The Service's addresses, as soon as one of its load balancers works.
    pub addresses: Vec<IpAddr>,
}

/// Everything for a Service: load balancers, their settings and their nodes.
pub fn whole(ports: &[WantedPort], settings: &Settings, found: &[Clb], node_limit: usize) -> Plan {
    let mut plan = Plan::default();
    let anchor = anchor(settings, found);
    if let Some(anchor) = anchor.filter(|anchor| anchor.phase() == Phase::Active) {
        plan.addresses = match &settings.source {
            Source::Existing(vip) => vec![vip.address],
            Source::New { .. } => addresses(&anchor.virtual_ips, &settings.families),
        };
    }
    let shares = |clb: &Clb| anchor.is_some_and(|anchor| anchor.vip_ids() == clb.vip_ids());
    let mut kept: Vec<u64> = Vec::new();
    let mut created = false;
    for port in ports {
        let own = || found.iter().filter(|clb| port.is(clb) && shares(clb));
        let current = own()
            .filter(|clb| !matches!(clb.phase(), Phase::Deleting | Phase::Deleted))
            .min_by_key(|clb| (clb.phase() == Phase::Error, clb.id));
        let Some(current) = current else {
            if let Some(leaving) = own().find(|clb| clb.phase() == Phase::Deleting) {
                plan.wait(leaving.id, &leaving.status);
            } else if let Some(anchor) = anchor.filter(|anchor| anchor.phase() != Phase::Active) {
                plan.wait(anchor.id, &anchor.status);
            } else if anchor.is_some() || !created {
                // Without an anchor the first one gets the address that the others share.
                created = true;
                plan.changes.push(create(port, settings, anchor));
            }
            continue;
        };
        kept.push(current.id);
        match current.phase() {
            Phase::Active => plan.changes.extend(next_of(current, port, settings, node_limit)),
            Phase::Error if settings.shows(current) => {
                plan.broken = Some(Failure::unavailable(format!(
                    "load balancer {} is in ERROR and cannot be changed; Rackspace's support repairs it, and after it is deleted another one is made",
                    current.id
                )));
            }
            // It never worked.
            Phase::Error => plan.changes.push(Change::delete(current.id)),
            Phase::Suspended => {
                let text = format!("load balancer {} is SUSPENDED; ask Rackspace's support", current.id);
                plan.broken = Some(Failure::unavailable(text));
            }
            Phase::Busy | Phase::Deleting | Phase::Deleted => plan.wait(current.id, &current.status),
        }
    }
    // What is not desired is deleted last: the address stays as long as one has it.
    if plan.changes.is_empty() && plan.waiting.is_none() {
        for surplus in found.iter().filter(|clb| !kept.contains(&clb.id)) {
            match surplus.phase() {
                Phase::Deleted => {}
                Phase::Busy | Phase::Deleting => plan.wait(surplus.id, &surplus.status),
                Phase::Active | Phase::Error | Phase::Suspended => plan.changes.push(Change::delete(surplus.id)),
            }
        }
    }
    plan
}

/// Only the nodes behind load balancers that are there.
///
/// # Errors
/// `not-found` when a port has none.
pub fn nodes_only(ports: &[WantedPort], found: &[Clb], node_limit: usize) -> Result<Plan, Failure> {
    let mut plan = Plan::default();
    for port in ports {
        let lives = |clb: &&Clb| port.is(clb) && !matches!(clb.phase(), Phase::Deleting | Phase::Deleted);
        let current = found
            .iter()
            .filter(lives)
            .min_by_key(|clb| (clb.phase() == Phase::Error, clb.id));
        let Some(current) = current else {
            let text = format!("there is no load balancer for port {} ({})", port.port, port.protocol);
            return Err(Failure::not_found(text));
        };
        match current.phase() {
            Phase::Active => plan.changes.extend(next_of_nodes(current, port, node_limit)),
            Phase::Busy => plan.wait(current.id, &current.status),
            _ => {
                let text = format!(
                    "load balancer {} is {} and cannot be changed",
                    current.id, current.status
                );
                plan.broken = Some(Failure::unavailable(text));
            }
        }
    }
    Ok(plan)
}

/// Everything goes.
pub fn deletion(own: &[Listed]) -> Plan {
    let mut plan = Plan::default();
    for one in own {
        match Phase::of(&one.status) {
            Phase::Active | Phase::Error | Phase::Suspended => plan.changes.push(Change::delete(one.id)),
            Phase::Busy | Phase::Deleting | Phase::Deleted => plan.wait(one.id, &one.status),
        }
    }
    plan
}

impl Plan {
    fn wait(&mut self, id: u64, status: &str) {
        self.waiting = Some(format!("load balancer {id} is {status}"));
    }

    /// What comes next.
    ///
    /// # Errors
    /// What an operator has to decide, when nothing else is left.
    pub fn next(self) -> Result<reconcile::Next<(), Change>, Failure> {
        match (self.broken, self.waiting) {
            _ if !self.changes.is_empty() => Ok(reconcile::Next::Changes(self.changes)),
            (Some(failure), _) => Err(failure),
            (None, Some(state)) => Ok(reconcile::Next::Wait(state)),
            (None, None) => Ok(reconcile::Next::Done(())),
        }
    }
}

/// The one whose virtual IPs all share: with addresses that the Service shows already if there is one, else the oldest that works.
fn anchor<'a>(settings: &Settings, found: &'a [Clb]) -> Option<&'a Clb> {
    let fits = |clb: &&Clb| {
        !matches!(clb.phase(), Phase::Deleting | Phase::Deleted)
            && settings.source.fits(&clb.virtual_ips, &settings.families)
    };
    let fitting = found.iter().filter(fits);
    fitting.min_by_key(|clb| (!settings.shows(clb), clb.phase() != Phase::Active, clb.id))
}

fn create(port: &WantedPort, settings: &Settings, anchor: Option<&Clb>) -> Change {
    let vips: Vec<Value> = match (anchor, &settings.source) {
        (Some(anchor), _) => anchor.vip_ids().iter().map(|id| json!({ "id": id })).collect(),
        (None, Source::Existing(vip)) => vec![json!({ "id": vip.id })],
        (None, Source::New { internal }) => {
            let version = |family: &IpFamily| match family {
                IpFamily::Ipv4 => "IPV4",
                IpFamily::Ipv6 => "IPV6",
            };
            match settings.families.as_slice() {
                [one] => vec![json!({ "type": kind(*internal), "ipVersion": version(one) })],
                // Without a version there is one of each.
                _ => vec![json!({ "type": kind(*internal) })],
            }
        }
    };
    let mut body = json!({
        "name": settings.name,
        "port": port.port,
        "protocol": port.protocol,
        "algorithm": settings.algorithm,
        "timeout": settings.timeout,
        "virtualIps": vips,
        "nodes": port.nodes.iter().map(node).collect::<Vec<_>>(),
        "metadata": [
            { "key": "kubernetes-service", "value": settings.service },
            { "key": "kubernetes-cluster", "value": settings.cluster },
        ],
    });
    if settings.sticky {
        body["sessionPersistence"] = persistence();
    }
    if !settings.access.is_empty() {
        body["accessList"] = settings.access.iter().map(access::Rule::body).collect();
    }
    if let Some(monitor) = settings.monitor_of(port) {
        body["healthMonitor"] = json!(monitor);
    }
    Change {
        method: "POST",
        path: "/loadbalancers".into(),
        body: Some(json!({ "loadBalancer": body })),
    }
}

/// What is next for one that works: who may connect first, then everything else.
fn next_of(clb: &Clb, port: &WantedPort, settings: &Settings, node_limit: usize) -> Option<Change> {
    let post = |below, body| Some(Change::new("POST", clb, below, Some(body)));
    let put = |below, body| Some(Change::new("PUT", clb, below, Some(body)));
    let delete = |below| Some(Change::new("DELETE", clb, below, None));
    match access::next(&settings.access, &clb.access_list) {
        Some(Next::Add(items)) => return post("/accesslist", json!({ "accessList": items })),
        Some(Next::Delete(ids)) => return delete(&format!("/accesslist{}", query(&ids))),
        Some(Next::Clear) => return delete("/accesslist"),
        None => {}
    }
    let sticky = clb
        .session_persistence
        .as_ref()
        .map(|one| one.persistence_type.as_str());
    if settings.sticky && sticky != Some("SOURCE_IP") {
        return put("/sessionpersistence", json!({ "sessionPersistence": persistence() }));
    }
    if !settings.sticky && sticky.is_some() {
        return delete("/sessionpersistence");
    }
    if clb.algorithm != settings.algorithm || clb.timeout != settings.timeout {
        let body = json!({ "algorithm": settings.algorithm, "timeout": settings.timeout });
        return put("", json!({ "loadBalancer": body }));
    }
    let monitor = settings.monitor_of(port);
    if monitor != clb.health_monitor.as_ref() {
        return match monitor {
            Some(monitor) => put("/healthmonitor", json!({ "healthMonitor": monitor })),
            None => delete("/healthmonitor"),
        };
    }
    next_of_nodes(clb, port, node_limit)
}

/// What is next for the nodes behind one: new ones first where there is room.
fn next_of_nodes(clb: &Clb, port: &WantedPort, limit: usize) -> Option<Change> {
    let is = |wanted: &(String, u16), found: &super::clb::Node| found.address == wanted.0 && found.port == wanted.1;
    let differ = reconcile::diff(&port.nodes, &clb.nodes, is, |_, found| found.condition == "ENABLED");
    let room = limit.saturating_sub(clb.nodes.len()).min(BATCH);
    let add: Vec<Value> = differ.create.iter().take(room).map(|wanted| node(wanted)).collect();
    if !add.is_empty() {
        return Some(Change::new("POST", clb, "/nodes", Some(json!({ "nodes": add }))));
    }
    let delete: Vec<u64> = differ.delete.iter().take(BATCH).map(|found| found.id).collect();
    if !delete.is_empty() {
        return Some(Change::new("DELETE", clb, &format!("/nodes{}", query(&delete)), None));
    }
    let (_, disabled) = differ.change.first()?;
    let body = json!({ "node": { "condition": "ENABLED" } });
    Some(Change::new("PUT", clb, &format!("/nodes/{}", disabled.id), Some(body)))
}

fn node((address, port): &(String, u16)) -> Value {
    json!({ "address": address, "port": port, "condition": "ENABLED" })
}

fn persistence() -> Value {
    json!({ "persistenceType": "SOURCE_IP" })
}

/// `?id=1&id=2`.
fn query(ids: &[u64]) -> String {
    let pairs: Vec<String> = ids.iter().map(|id| format!("id={id}")).collect();
    format!("?{}", pairs.join("&"))
}

#[cfg(test)]
mod tests;
