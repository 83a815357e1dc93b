//! What to change next so that a load balancer becomes the desired one. Pure.
//!
//! While Octavia works on one change, a load balancer takes no other, so there is one at a time; what comes after it follows from what the
//! cloud shows then. So it continues after a crash. The order:
//!
//! ```text
//!   our tag -> for each port: a listener in the way goes -> listener -> pool -> members -> monitor -> what is left of ours goes -> names
//! ```

use crate::api::wire::Object;
use crate::balancers::change::Change;
use crate::balancers::octavia::bodies::{self, FORWARDED_FOR};
use crate::balancers::octavia::{Listener, LoadBalancer, Monitor, Pool, TIMEOUTS, Tree};
use crate::balancers::sharing::{Claim, transport};
use crate::balancers::wanted::{Wanted, WantedPort};

/// What the plan goes by.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    /// As it shall be.
    pub wanted: &'a Wanted<'a>,
    /// Whose it is.
    pub claim: &'a Claim,
    /// Whether members come and go one by one.
    pub serial: bool,
    /// Whether Octavia has tags.
    pub tags: bool,
    /// Everything, or only the members of what is there.
    pub whole: bool,
}

impl Plan<'_> {
    /// The next change; none when all is right.
    pub fn next(&self, balancer: &LoadBalancer, tree: &Tree) -> Option<Change> {
        if !self.whole {
            return self.next_members(tree);
        }
        // Before anything else is made, so that a deletion of the load balancer finds it shared.
        if self.tags && !balancer.tags.contains(&self.claim.name) && self.claim.former.is_none() {
            return self.tag(balancer);
        }
        self.wanted
            .ports
            .iter()
            .find_map(|port| self.port(balancer, tree, port))
            .or_else(|| self.left_over(tree))
            .or_else(|| self.rename(balancer, tree))
    }

    /// Only the members of ports that are there; none when all are right.
    fn next_members(&self, tree: &Tree) -> Option<Change> {
        self.wanted.ports.iter().find_map(|port| {
            let listener = self.listener(tree, port)?;
            self.members(tree.pool_of(listener)?, port)
        })
    }

    /// The pools whose members and monitors matter.
    pub fn pools(&self, tree: &Tree) -> Vec<String> {
        let pools = self
            .wanted
            .ports
            .iter()
            .filter_map(|port| tree.pool_of(self.listener(tree, port)?));
        pools.map(|pool| pool.id.clone()).collect()
    }

    /// The Service's listener of a port.
    pub fn listener<'t>(&self, tree: &'t Tree, port: &WantedPort<'_>) -> Option<&'t Listener> {
        tree.listeners.iter().find(|listener| {
            listener.port == port.port
                && transport(&listener.protocol) == transport(port.protocol)
                && self.claim.holds(&listener.tags)
        })
    }

    fn tag(&self, balancer: &LoadBalancer) -> Option<Change> {
        let tags = self.claim.with_tag(&balancer.tags)?;
        let body = Object::new().texts("tags", tags.iter().map(String::as_str));
        Some(Change::update(
            "loadbalancers",
            &balancer.id,
            "loadbalancer",
            body,
            "tagging the load balancer",
        ))
    }

    fn port(&self, balancer: &LoadBalancer, tree: &Tree, port: &WantedPort<'_>) -> Option<Change> {
        let Some(listener) = self.listener(tree, port) else {
            let body = bodies::listener(port, self.wanted.name).text("loadbalancer_id", &balancer.id);
            return Some(Change::create("listeners", "listener", body, "making a listener"));
        };
        let pool = tree.pool_of(listener);
        if listener.protocol != port.protocol {
            // A protocol cannot be changed, and the port is taken until the listener is gone.
            return Some(remove(listener, pool));
        }
        if let Some(change) = self.listener_fields(listener, port) {
            return Some(change);
        }
        let Some(pool) = pool else {
            let body = bodies::pool(port, self.wanted.name).text("listener_id", &listener.id);
            return Some(Change::create("pools", "pool", body, "making a pool"));
        };
        if pool.protocol != port.pool_protocol {
            return Some(Change::delete("pools", &pool.id, "removing a pool of another protocol"));
        }
        pool_fields(pool, port)
            .or_else(|| self.members(pool, port))
            .or_else(|| monitor(pool, port.monitor.as_ref()))
    }

    /// Only what differs, so that what others set stays.
    fn listener_fields(&self, listener: &Listener, port: &WantedPort<'_>) -> Option<Change> {
        let empty = Object::new();
        let mut body = Object::new();
        if let Some(tags) = self.claim.with_tag(&listener.tags).filter(|_| port.tagged) {
            body = body.texts("tags", tags.iter().map(String::as_str));
        }
        if listener.connection_limit != port.connection_limit {
            body = body.number("connection_limit", port.connection_limit);
        }
        let adds = |(name, value): &(String, String)| name == FORWARDED_FOR && value == "true";
        if listener.insert_headers.iter().any(adds) != port.forwarded_for {
            let others = listener.insert_headers.iter().filter(|(name, _)| name != FORWARDED_FOR);
            let headers = others.fold(Object::new(), |headers, (name, value)| headers.text(name, value));
            let headers = if port.forwarded_for {
                headers.text(FORWARDED_FOR, "true")
            } else {
                headers
            };
            body = body.object("insert_headers", headers);
        }
        if listener.tls_container != port.tls_container {
            body = body.text("default_tls_container_ref", port.tls_container);
        }
        for (index, wanted) in port.timeouts.into_iter().flatten().enumerate() {
            if listener.timeouts[index] != wanted {
                body = body.number(TIMEOUTS[index], wanted);
            }
        }
        if let Some(wanted) = &port.allowed_cidrs {
            let there = &listener.allowed_cidrs;
            if there.len() != wanted.len() || wanted.iter().any(|wanted| !there.contains(wanted)) {
                body = body.texts("allowed_cidrs", wanted.iter().map(String::as_str));
            }
        }
        (body != empty).then(|| Change::update("listeners", &listener.id, "listener", body, "changing a listener"))
    }

    fn members(&self, pool: &Pool, port: &WantedPort<'_>) -> Option<Change> {
        let path = format!("pools/{}/members", pool.id);
        let missing = port
            .members
            .iter()
            .find(|wanted| !pool.members.iter().any(|there| there.same(wanted)));
        let extra = pool
            .members
            .iter()
            .find(|there| !port.members.iter().any(|wanted| wanted.same(there)));
        if missing.is_none() && extra.is_none() {
            return None;
        }
        if !self.serial {
            let body = Object::new().objects("members", bodies::members(&port.members, self.wanted));
            return Some(Change::replace(&path, body, "replacing the members"));
        }
        // What goes first may have the address and port of what comes.
        Some(match (extra, missing) {
            (Some(extra), _) => Change::delete(&path, &extra.id, "removing a member"),
            (None, missing) => Change::create(
                &path,
                "member",
                bodies::member(missing?, self.wanted),
                "adding a member",
            ),
        })
    }

    /// Listeners of ports that the Service does not have any more.
    fn left_over(&self, tree: &Tree) -> Option<Change> {
        let wanted = |listener: &Listener| {
            self.wanted
                .ports
                .iter()
                .any(|port| self.listener(tree, port).is_some_and(|own| own.id == listener.id))
        };
        let left = tree
            .listeners
            .iter()
            .find(|listener| self.claim.holds(&listener.tags) && !wanted(listener))?;
        Some(remove(left, tree.pool_of(left)))
    }

    /// Names with the cluster's former name in them. The load balancer itself comes last: its name shows whether something is left.
    fn rename(&self, balancer: &LoadBalancer, tree: &Tree) -> Option<Change> {
        self.claim.former.as_ref()?;
        let name = |part: &str| self.claim.renamed(part).map(|name| Object::new().text("name", &name));
        for listener in tree
            .listeners
            .iter()
            .filter(|listener| self.claim.holds(&listener.tags))
        {
            let pool = tree.pool_of(listener);
            if let Some(monitor) = pool.and_then(|pool| pool.monitor.as_ref())
                && let Some(body) = name(&monitor.name)
            {
                return Some(Change::update(
                    "healthmonitors",
                    &monitor.id,
                    "healthmonitor",
                    body,
                    "renaming a monitor",
                ));
            }
            if let Some(pool) = pool
                && let Some(body) = name(&pool.name)
            {
                return Some(Change::update("pools", &pool.id, "pool", body, "renaming a pool"));
            }
            if let Some(body) = name(&listener.name) {
                return Some(Change::update(
                    "listeners",
                    &listener.id,
                    "listener",
                    body,
                    "renaming a listener",
                ));
            }
        }
        let mut body = name(&balancer.name).unwrap_or_default();
        if let Some(tags) = self.claim.with_tag(&balancer.tags).filter(|_| self.tags) {
            body = body.texts("tags", tags.iter().map(String::as_str));
        }
        Some(Change::update(
            "loadbalancers",
            &balancer.id,
            "loadbalancer",
            body,
            "renaming the load balancer",
        ))
    }
}

/// What has to go next so that nothing of this Service is left on a load balancer that others use, or that has to be emptied.
/// `all`: of any owner.
pub fn next_removal(claim: &Claim, balancer: &LoadBalancer, tree: &Tree, all: bool) -> Option<Change> {
    let listener = tree
        .listeners
        .iter()
        .find(|listener| all || claim.holds(&listener.tags));
    if let Some(listener) = listener {
        return Some(remove(listener, tree.pool_of(listener)));
    }
    if all {
        return tree
            .pools
            .first()
            .map(|pool| Change::delete("pools", &pool.id, "removing a pool"));
    }
    let tags = claim.without_tag(&balancer.tags);
    (tags.len() < balancer.tags.len()).then(|| {
        let body = Object::new().texts("tags", tags.iter().map(String::as_str));
        Change::update(
            "loadbalancers",
            &balancer.id,
            "loadbalancer",
            body,
            "taking the tag off the load balancer",
        )
    })
}

/// A listener's pool, or the listener when it has none: the pool would stay behind.
fn remove(listener: &Listener, pool: Option<&Pool>) -> Change {
    match pool {
        Some(pool) if pool.listeners.iter().all(|id| *id == listener.id) => {
            Change::delete("pools", &pool.id, "removing a listener's pool")
        }
        _ => Change::delete("listeners", &listener.id, "removing a listener"),
    }
}

fn pool_fields(pool: &Pool, port: &WantedPort<'_>) -> Option<Change> {
    let mut body = Object::new();
    if pool.method != port.method {
        body = body.text("lb_algorithm", port.method);
    }
    if pool.persistence != port.persistence {
        body = match port.persistence {
            "" => body.null("session_persistence"),
            _ => body.object("session_persistence", bodies::persistence(port)),
        };
    } else if pool.method == port.method {
        return None;
    }
    Some(Change::update("pools", &pool.id, "pool", body, "changing a pool"))
}

fn monitor(pool: &Pool, wanted: Option<&Monitor>) -> Option<Change> {
    match (&pool.monitor, wanted) {
        (None, None) => None,
        (Some(there), Some(wanted)) if there.kind == wanted.kind => (there.numbers != wanted.numbers).then(|| {
            let body = bodies::monitor_numbers(Object::new(), wanted);
            Change::update("healthmonitors", &there.id, "healthmonitor", body, "changing a monitor")
        }),
        // Its type cannot be changed.
        (Some(there), _) => Some(Change::delete("healthmonitors", &there.id, "removing a monitor")),
        (None, Some(wanted)) => {
            let body = bodies::monitor(wanted).text("pool_id", &pool.id);
            Some(Change::create(
                "healthmonitors",
                "healthmonitor",
                body,
                "making a monitor",
            ))
        }
    }
}

#[cfg(test)]
mod tests;
