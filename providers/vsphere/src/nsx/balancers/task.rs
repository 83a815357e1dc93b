//! One Service's load balancer.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use serde_json::{Value, json};

use super::address::{self, Place};
use super::bodies::{CLASS, Owner, POOL, service_name};
use super::seen::{MONITORS, POOLS, SERVERS, Seen, of_port};
use super::wanted::Port;
use super::work::{Work, path};
use super::{lb_service, names};
use crate::nsx::api::Nsx;
use crate::nsx::object::{merged, tag, text};
use crate::nsx::realized::Realized;
use crate::nsx::settings::{BalancerSettings, Class};

/// One call for a Service.
pub struct Task<'a> {
    nsx: &'a Nsx<'a>,
    settings: &'a BalancerSettings,
    service: &'a Service,
    cluster: String,
    /// Namespace and name.
    name: String,
    /// How the ids of its objects begin.
    id: String,
}

impl<'a> Task<'a> {
    pub fn new(nsx: &'a Nsx<'a>, settings: &'a BalancerSettings, cluster: String, service: &'a Service) -> Self {
        Self {
            nsx,
            settings,
            service,
            cluster,
            name: service_name(service),
            id: default_balancer_name(service),
        }
    }

    fn owner(&self) -> Owner<'_> {
        Owner {
            settings: self.settings,
            cluster: &self.cluster,
            service: &self.name,
        }
    }

    /// What there is.
    pub fn seen(&self) -> Result<Seen, Failure> {
        Seen::read(self.nsx, &self.owner())
    }

    /// Makes it, or brings it in line: its address, and the paths of its virtual servers.
    pub fn ensure(
        &self,
        work: &mut Work<'_>,
        class: &Class,
        ports: &[Port],
        members: &BTreeMap<String, String>,
    ) -> Result<(String, Vec<String>), Failure> {
        let (seen, owner) = (self.seen()?, self.owner());
        let first = seen.servers.first();
        let class_tag = first.and_then(|server| tag(server, CLASS)).unwrap_or(&class.name);
        let pool_id = match first.and_then(|server| tag(server, POOL)) {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => names::pool_id(self.nsx, &class.pool)?,
        };
        let used = first
            .map(|server| text(server, "ip_address"))
            .filter(|ip| !ip.is_empty());
        let place = Place {
            pool: &pool_id,
            id: &self.id,
            owner: &owner,
            used,
            asked: self.service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty()),
        };
        let address = place.address(work)?;
        if !work.changed {
            self.warn_of_what_stays(class, class_tag, &address);
        }
        let mut servers = Vec::new();
        let mut service_path = None;
        for port in ports {
            let monitors = self.monitor(work, port, &seen)?;
            let pool = self.pool(work, port, seen.pool(port), members, &monitors)?;
            let profile = match port.protocol {
                Protocol::Udp => &class.udp,
                _ => &class.tcp,
            };
            let profile = names::profile_path(self.nsx, port.protocol, profile)?;
            let mut wanted = owner.server_fields(port, &address, &profile, path(&pool));
            let server = seen.server(port);
            if server.is_none_or(|server| text(server, "lb_service_path").is_empty()) {
                let known = match service_path.take() {
                    Some(known) => known,
                    None => lb_service::ensured(work, &owner)?,
                };
                wanted = match server {
                    Some(_) => merged(&wanted, &json!({ "lb_service_path": known })),
                    None => merged(&owner.server(port, class_tag, &pool_id, &known), &wanted),
                };
                service_path = Some(known);
            }
            let own = format!("{SERVERS}/{}-{}", self.id, port.id());
            let made = work.put(server.map_or(own.as_str(), path), &wanted, server)?;
            servers.push(path(&made).to_owned());
        }
        self.remove(work, &seen, ports)?;
        Ok((address, servers))
    }

    /// The paths of a port's monitors: one for TCP, none for UDP.
    fn monitor(&self, work: &mut Work<'_>, port: &Port, seen: &Seen) -> Result<Value, Failure> {
        if port.protocol != Protocol::Tcp {
            return Ok(json!([]));
        }
        let own = format!("{MONITORS}/{}-{}", self.id, port.id());
        let made = match seen.monitor(port) {
            Some(seen) => work.put(path(seen), &json!({ "monitor_port": port.node_port }), Some(seen))?,
            None => work.put(&own, &self.owner().monitor(port), None)?,
        };
        Ok(json!([path(&made)]))
    }

    fn pool(
        &self,
        work: &mut Work<'_>,
        port: &Port,
        seen: Option<&Value>,
        members: &BTreeMap<String, String>,
        monitors: &Value,
    ) -> Result<Value, Failure> {
        let owner = self.owner();
        match seen {
            Some(seen) => {
                let wanted = json!({ "members": owner.members(seen, members), "active_monitor_paths": monitors });
                work.put(path(seen), &wanted, Some(seen))
            }
            None => {
                let own = format!("{POOLS}/{}-{}", self.id, port.id());
                let members = owner.members(&Value::Null, members);
                work.put(&own, &owner.pool(port, members, monitors), None)
            }
        }
    }

    /// Brings the members of these pools up to date.
    pub fn update_members(
        &self,
        work: &mut Work<'_>,
        ports: &[Port],
        pools: &[Value],
        members: &BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        for port in ports {
            if let Some(pool) = of_port(pools, port) {
                let wanted = json!({ "members": self.owner().members(pool, members) });
                work.put(path(pool), &wanted, Some(pool))?;
            }
        }
        Ok(())
    }

    /// Removes what none of these ports needs: virtual servers first, since nothing goes that something refers to.
    fn remove(&self, work: &mut Work<'_>, seen: &Seen, ports: &[Port]) -> Result<(), Failure> {
        let paths = |of: for<'s> fn(&'s Seen, &Port) -> Option<&'s Value>| -> Vec<&str> {
            ports.iter().filter_map(|port| of(seen, port)).map(path).collect()
        };
        for (all, kept) in [
            (&seen.servers, paths(Seen::server)),
            (&seen.pools, paths(Seen::pool)),
            (&seen.monitors, paths(Seen::monitor)),
        ] {
            for one in all.iter().filter(|one| !kept.contains(&path(one))) {
                work.delete(path(one))?;
            }
        }
        Ok(())
    }

    /// Deletes all of it, and what is only there for it.
    pub fn delete(&self, work: &mut Work<'_>) -> Result<(), Failure> {
        let seen = self.seen()?;
        let allocations = self.allocations(&seen)?;
        self.remove(work, &seen, &[])?;
        for allocation in &allocations {
            work.delete(path(allocation))?;
        }
        lb_service::removed_if_unused(work, &self.owner())
    }

    /// Its addresses, in whatever pool they may be.
    pub fn allocations(&self, seen: &Seen) -> Result<Vec<Value>, Failure> {
        let mut pools: Vec<String> = seen
            .servers
            .iter()
            .filter_map(|server| tag(server, POOL))
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect();
        for class in self.settings.classes.values() {
            match names::pool_id(self.nsx, &class.pool) {
                Ok(id) => pools.push(id),
                // Nothing can be in a pool that does not exist.
                Err(failure) if failure.kind == FailureKind::FailedPrecondition => {}
                Err(failure) => return Err(failure),
            }
        }
        pools.sort_unstable();
        pools.dedup();
        let mut all = Vec::new();
        for pool in &pools {
            match address::allocations(self.nsx, pool, &self.owner()) {
                Err(failure) if failure.is_not_found() => {}
                found => all.extend(found?),
            }
        }
        Ok(all)
    }

    /// Whether NSX has realized the virtual servers.
    ///
    /// # Errors
    /// `pending` while it has not; why it cannot.
    pub fn realized(&self, work: &Work<'_>, servers: &[String]) -> Result<(), Failure> {
        for server in servers {
            match Realized::look(self.nsx, server)? {
                Realized::Done => {}
                Realized::Waiting => return Err(work.pending("NSX is realizing the virtual servers")),
                Realized::Failed(why) => {
                    return Err(Failure::other(format!(
                        "NSX cannot realize the virtual server {server}: {why}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// What counted when it was made, and is requested otherwise now.
    fn warn_of_what_stays(&self, class: &Class, class_tag: &str, address: &str) {
        let context = &self.nsx.context;
        if class_tag != class.name {
            let text = format!(
                "it was made in the class {class_tag:?} and keeps its address; for the class {:?} delete the Service and create it anew",
                class.name
            );
            context.service_event(EventKind::Warning, "LoadBalancerClassKept", &text);
        }
        let asked = self.service.load_balancer_ip.as_deref().filter(|ip| !ip.is_empty());
        if let Some(asked) = asked.filter(|asked| *asked != address) {
            let text = format!("it keeps the address {address}; for {asked} delete the Service and create it anew");
            context.service_event(EventKind::Warning, "LoadBalancerIPKept", &text);
        }
    }
}
