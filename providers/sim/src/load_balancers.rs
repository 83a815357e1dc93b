//! Load balancers for Services: find, adopt, create, and wait without sleeping.
//!
//! The owner mark (the Service's uid) is what makes a load balancer Cloudwit's; it is found by it wherever it came from. One that
//! has the right name and no owner is adopted, so that a cluster can move here without new addresses; the cloud keeps names
//! unique, so a new one is made without a look-up of its name first. The cloud builds for a while: `ensure` answers `pending`
//! with the id as token, and continues from there when it is called again.

use std::collections::BTreeSet;
use std::time::Duration;

use cloudwit_guest_sdk::lookup::{Machines, batches};
use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;

use crate::Sim;
use crate::api::{BalancerPort, BalancerSpec, BalancerState, LoadBalancer, PortProtocol, Scheme};

/// Annotation: who can reach the load balancer, `public` (the default) or `internal`.
pub const SCHEME: &str = "sim.cloudwit.dev/scheme";

/// How long to wait before looking again at what the cloud builds.
const BUILD_POLL: Duration = Duration::from_secs(1);

impl LoadBalancers for Sim {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        Ok(self
            .find_balancer(service)?
            .map(|existing| Balancer::at(ingress(&existing))))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let wanted = self.spec(service, targets)?;
        // The token only saves the search: if its load balancer is gone, everything starts again.
        let existing = match token {
            Some(id) => self.api.load_balancer(id)?,
            None => None,
        };
        let existing = match existing {
            Some(existing) => Some(existing),
            None => self.owned(service)?,
        };
        let balancer = match self.bring_about(existing.as_ref(), &wanted) {
            Err(Failure {
                kind: FailureKind::Conflict,
                message: why,
                ..
            }) if existing.is_none() => match self.named(service)? {
                Some(named) if named.spec.owner.is_none() => self.bring_about(Some(&named), &wanted)?,
                Some(foreign) => return Err(foreign_name(service, &foreign)),
                // It is not about the name.
                None => return Err(Failure::conflict(why)),
            },
            result => result?,
        };
        match balancer.state {
            BalancerState::Active => Ok(Balancer::at(ingress(&balancer))),
            BalancerState::Building => Err(Failure::pending(
                BUILD_POLL,
                &balancer.id,
                format!("the cloud builds load balancer {}", balancer.id),
            )),
        }
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        _token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let owned = self.owned(service)?;
        self.give_targets(service, owned, &mut machine_ids(&self.prefix, targets))
    }

    /// Those that the Services own are found together.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let uids: Vec<&str> = updates.iter().map(|update| update.service.uid.as_str()).collect();
        let (mut found, batch) = (Vec::new(), self.batch());
        for part in batches(&uids, batch.ids, batch.bytes) {
            found.append(&mut self.api.load_balancers(&self.cluster, "owners", &part.join(","))?);
        }
        let mut wanted = machine_ids(&self.prefix, targets);
        Ok(one_by_one(updates, |update| {
            let service = &update.service;
            let is_own = |balancer: &LoadBalancer| balancer.spec.owner.as_deref() == Some(service.uid.as_str());
            let owned = only(service, found.extract_if(.., |balancer| is_own(balancer)).collect())?;
            self.give_targets(service, owned, &mut wanted)
        }))
    }

    fn delete(&self, service: &Service, _token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        if let Some(existing) = self.find_balancer(service)? {
            self.api.delete_load_balancer(&existing.id)?;
        }
        Ok(Vec::new())
    }
}

impl Sim {
    /// The Service's load balancer: the one it owns, else one of its name without an owner.
    fn find_balancer(&self, service: &Service) -> Result<Option<LoadBalancer>, Failure> {
        match self.owned(service)? {
            Some(owned) => Ok(Some(owned)),
            None => self.nobodys(service),
        }
    }

    fn owned(&self, service: &Service) -> Result<Option<LoadBalancer>, Failure> {
        only(service, self.api.load_balancers(&self.cluster, "owner", &service.uid)?)
    }

    /// Gives the load balancer that the Service owns, else the one of its name without an owner, these targets. Machines that are found to be gone
    /// are taken out of `wanted`.
    fn give_targets(
        &self,
        service: &Service,
        owned: Option<LoadBalancer>,
        wanted: &mut Vec<String>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let existing = match owned {
            Some(owned) => owned,
            None => self
                .nobodys(service)?
                .ok_or_else(|| Failure::not_found(format!("Service {} has no load balancer", service.name)))?,
        };
        match self.bring_targets(&existing, wanted) {
            Err(Failure {
                kind: FailureKind::Invalid,
                message: why,
                ..
            }) => {
                *wanted = self.without_gone(wanted, why)?;
                self.bring_targets(&existing, wanted)?;
            }
            result => result?,
        }
        Ok(Vec::new())
    }

    fn nobodys(&self, service: &Service) -> Result<Option<LoadBalancer>, Failure> {
        Ok(self.named(service)?.filter(|named| named.spec.owner.is_none()))
    }

    /// The one of the Service's name, of any owner. Names are unique in a cluster.
    fn named(&self, service: &Service) -> Result<Option<LoadBalancer>, Failure> {
        let name = cloudwit_guest_sdk::provider::default_balancer_name(service);
        Ok(self.api.load_balancers(&self.cluster, "name", &name)?.pop())
    }

    /// The load balancer as `wanted` describes it, with those of the targets whose machines exist.
    fn bring_about(&self, existing: Option<&LoadBalancer>, wanted: &BalancerSpec) -> Result<LoadBalancer, Failure> {
        match self.make(existing, wanted) {
            Err(Failure {
                kind: FailureKind::Invalid,
                message: why,
                ..
            }) => {
                let targets = self.without_gone(&wanted.targets, why)?;
                let wanted = BalancerSpec {
                    targets,
                    ..wanted.clone()
                };
                self.make(existing, &wanted)
            }
            result => result,
        }
    }

    /// No request when it is that already.
    fn make(&self, existing: Option<&LoadBalancer>, wanted: &BalancerSpec) -> Result<LoadBalancer, Failure> {
        match existing {
            Some(existing) if existing.spec == *wanted => Ok(existing.clone()),
            Some(existing) => self.api.update_load_balancer(&existing.id, wanted),
            None => self.api.create_load_balancer(wanted),
        }
    }

    fn bring_targets(&self, existing: &LoadBalancer, wanted: &[String]) -> Result<(), Failure> {
        if existing.spec.targets == wanted {
            return Ok(());
        }
        self.api.update_targets(&existing.id, wanted)
    }

    /// The targets whose machines exist, after the cloud refused them all together for the reason `why`. A machine goes before its
    /// Node does, and must not block all other load balancers. If none is gone, the reason was another.
    fn without_gone(&self, targets: &[String], why: String) -> Result<Vec<String>, Failure> {
        let mut left = Vec::with_capacity(targets.len());
        let batch = self.batch();
        for part in batches(targets, batch.ids, batch.bytes) {
            let machines = self.api.machines_by_id(part)?;
            let exists: BTreeSet<&str> = machines.iter().map(|machine| machine.id.as_str()).collect();
            left.extend(part.iter().filter(|id| exists.contains(id.as_str())).cloned());
        }
        if left.len() == targets.len() {
            return Err(Failure::invalid(why));
        }
        Ok(left)
    }

    /// What the Service requests. Whatever this cloud cannot do is refused here, before anything is changed.
    fn spec(&self, service: &Service, targets: &[Target]) -> Result<BalancerSpec, Failure> {
        Ok(BalancerSpec {
            name: cloudwit_guest_sdk::provider::default_balancer_name(service),
            cluster: self.cluster.clone(),
            owner: Some(service.uid.clone()),
            scheme: scheme(service)?,
            ports: service.ports.iter().map(port).collect::<Result<_, _>>()?,
            targets: machine_ids(&self.prefix, targets),
            source_ranges: service.source_ranges.clone(),
            affinity_seconds: service.session_affinity_seconds,
            health_check_port: service.health_check_node_port,
            requested_address: service.load_balancer_ip.clone(),
        })
    }
}

/// The Service's load balancer among those that it owns, which have to be one.
fn only(service: &Service, mut owned: Vec<LoadBalancer>) -> Result<Option<LoadBalancer>, Failure> {
    if owned.len() > 1 {
        let ids: Vec<&str> = owned.iter().map(|balancer| balancer.id.as_str()).collect();
        return Err(Failure::conflict(format!(
            "several load balancers are owned by Service {}: {}; delete all but one in the cloud",
            service.name,
            ids.join(", ")
        )));
    }
    Ok(owned.pop())
}

/// No retry helps until an operator has set its owner.
fn foreign_name(service: &Service, foreign: &LoadBalancer) -> Failure {
    let spec = &foreign.spec;
    Failure::invalid(format!(
        "load balancer {} has the name {} that Service {} needs, but is owned by {}; rename or delete it in the cloud, or take its \
         owner off so that it is adopted",
        foreign.id,
        spec.name,
        service.name,
        spec.owner.as_deref().unwrap_or("nobody")
    ))
}

fn scheme(service: &Service) -> Result<Scheme, Failure> {
    match service.annotation(SCHEME) {
        None | Some("public") => Ok(Scheme::Public),
        Some("internal") => Ok(Scheme::Internal),
        Some(other) => Err(Failure::invalid(format!(
            "annotation {SCHEME} is \"{other}\"; it can be public or internal"
        ))),
    }
}

fn port(port: &ServicePort) -> Result<BalancerPort, Failure> {
    let number = port.port;
    let protocol = match port.protocol {
        Protocol::Tcp => PortProtocol::Tcp,
        Protocol::Udp => PortProtocol::Udp,
        Protocol::Sctp => {
            return Err(Failure::invalid(format!(
                "port {number} is SCTP; the simulated cloud knows TCP and UDP"
            )));
        }
    };
    let Some(node_port) = port.node_port else {
        return Err(Failure::invalid(format!(
            "port {number} has no node port; the simulated cloud needs one: set allocateLoadBalancerNodePorts to true"
        )));
    };
    Ok(BalancerPort {
        protocol,
        port: number,
        node_port,
    })
}

/// The targets' machines, sorted, so that their order makes no difference. A Node that has no provider id yet comes with a later call.
fn machine_ids(prefix: &str, targets: &[Target]) -> Vec<String> {
    let mut ids: Vec<String> = targets
        .iter()
        .filter_map(|target| id_after(prefix, target.node.provider_id.as_deref()?))
        .map(Into::into)
        .collect();
    ids.sort();
    ids.dedup();
    ids
}

fn ingress(balancer: &LoadBalancer) -> Vec<Ingress> {
    balancer.address.iter().map(Ingress::ip).collect()
}

#[cfg(test)]
mod tests;
