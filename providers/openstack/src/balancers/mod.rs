//! Load balancers by Octavia.
//!
//! ```text
//!   annotations/ -> wanted.rs               what the Service requests
//!   task.rs -> octavia/                     what the cloud shows
//!         both -> plan.rs                   the next change
//!         change.rs                         makes it; then Octavia works, and the call ends with `pending`
//!   floating_ips/, security_groups/         what is in Neutron, when the load balancer is right
//! ```
//!
//! Nothing is cached: each call reads what is there and makes all changes that are possible.

pub mod annotations;
pub mod change;
pub mod config;
mod creation;
mod deletion;
mod floating_ips;
pub mod members;
pub mod names;
pub mod octavia;
pub mod plan;
mod security_groups;
pub mod sharing;
mod task;
pub mod wanted;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Steps;

use crate::OpenStack;
use crate::balancers::annotations::Asked;
use crate::balancers::annotations::table::{BALANCER_ADDRESS, BALANCER_ID, TABLE};
use crate::balancers::floating_ips::recorded_address;
use crate::balancers::members::selected;
use crate::balancers::octavia::{Found, LoadBalancer, Octavia, Phase};
use crate::balancers::plan::Plan;
use crate::balancers::task::BalancerTask;
use crate::balancers::wanted::{Inputs, Wanted};
use crate::config::given;

impl LoadBalancers for OpenStack {
    fn name(cluster: &ClusterInfo, service: &Service) -> String {
        names::balancer(&cluster.name, service)
    }

    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        self.balancers_enabled()?;
        let asked = self.asked(service).unwrap_or_else(|_| self.asked_leniently(service));
        let task = BalancerTask::new(self, service, asked)?;
        let Some(balancer) = task.find(None)? else {
            return Ok(None);
        };
        let claim = task.claim(&balancer);
        let here = claim.owner && claim.others(&balancer.tags).is_empty();
        if !here && !balancer.tags.contains(&task.name) && claim.former.is_none() {
            return Ok(None);
        }
        Ok(Some(Balancer::at(task.shown_ingress(&balancer)?)))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        self.balancers_enabled()?;
        let task = BalancerTask::new(self, service, self.asked(service)?)?;
        task.ensure(targets, token.and_then(Steps::read))
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        self.balancers_enabled()?;
        self.give_members(service, targets, token, &[])
    }

    /// All load balancers are listed together.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        self.balancers_enabled()?;
        let listed = Octavia(&self.api).all()?;
        Ok(one_by_one(updates, |update| {
            let token = update.token.as_deref();
            self.give_members(&update.service, targets, token, &listed)
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        self.balancers_enabled()?;
        let asked = self.asked_leniently(service);
        let task = BalancerTask::new(self, service, asked)?;
        task.delete(token.and_then(Steps::read))
    }
}

impl OpenStack {
    /// Brings the members of the Service's load balancer up to date, which may be among those that were `listed`.
    fn give_members(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        listed: &[Found],
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let (config, classes) = (&self.config.loadbalancer, &self.config.loadbalancerclass);
        let mut task = BalancerTask::new(self, service, annotations::read_for_members(service, config, classes)?)?;
        task.listed = listed;
        task.bring_about(targets, token.and_then(Steps::read), false)?;
        Ok(Vec::new())
    }

    fn asked<'a>(&'a self, service: &'a Service) -> Result<Asked<'a>, Failure> {
        annotations::read(service, &self.config.loadbalancer, &self.config.loadbalancerclass)
    }

    fn asked_leniently<'a>(&'a self, service: &'a Service) -> Asked<'a> {
        annotations::read_leniently(service, &self.config.loadbalancer)
    }

    fn balancers_enabled(&self) -> Result<(), Failure> {
        match self.config.loadbalancer.enabled {
            Some(false) => {
                let text = "load balancers are switched off in the cloud config: [LoadBalancer] enabled = false";
                Err(Failure::implemented_elsewhere(text))
            }
            _ => Ok(()),
        }
    }
}

impl BalancerTask<'_> {
    fn ensure(&self, targets: &[Target], steps: Option<Steps>) -> Result<Balancer, Failure> {
        // By hand the load balancer may have been changed for another one meanwhile.
        let steps = steps.filter(|steps| self.asked.balancer_id.is_none_or(|id| id == steps.id()));
        let (balancer, address) = self.bring_about(targets, steps, true)?;
        let mut annotations = Vec::new();
        for (key, value) in [(BALANCER_ID, &balancer.id), (BALANCER_ADDRESS, &address)] {
            let key = TABLE.key(key);
            if self.service.annotation(&key) != Some(value) {
                annotations.push(AnnotationChange::set(key, value));
            }
        }
        Ok(Balancer {
            ingress: vec![self.ingress(&address)],
            annotations,
            remaining: None,
        })
    }

    /// Goes as far as it can: with everything, or only with the members of a load balancer that is there. Gives its address where everything
    /// was brought about.
    fn bring_about(
        &self,
        targets: &[Target],
        steps: Option<Steps>,
        whole: bool,
    ) -> Result<(Box<LoadBalancer>, String), Failure> {
        let none = || Failure::not_found(format!("Service {} has no load balancer", self.service.name));
        let targets = self.members_of(targets)?;
        let Some(balancer) = self.find(steps.as_ref())? else {
            return Err(if whole { self.create(&targets) } else { none() });
        };
        let claim = self.claim(&balancer);
        if !whole && !claim.owner && !claim.holds(&balancer.tags) {
            return Err(none());
        }
        match balancer.phase() {
            Phase::Active => {}
            Phase::Error if whole => return Err(self.broken(&balancer, &claim)),
            Phase::Error => return Err(in_error(&balancer)),
            _ => return Err(waiting_on(&balancer, steps)),
        }
        if whole {
            let most = self.config.max_shared_lb.unwrap_or(2);
            sharing::check(&claim, &balancer, self.asked.internal, self.features.tags, most)?;
            TABLE.warn_unknown(self.service, &self.context);
        }
        let _lock = self.lock(&balancer)?;
        let vip_subnet = balancer.vip_subnet_id.clone();
        let wanted = self.wanted(&targets, Some(&vip_subnet))?;
        let plan = Plan {
            wanted: &wanted,
            claim: &claim,
            serial: self.config.provider_requires_serial_api_calls,
            tags: self.features.tags,
            whole,
        };
        let balancer = self.converge(balancer, &plan, steps.as_ref())?;
        let mut address = String::new();
        if whole {
            address = self.ensure_address(&balancer, &claim)?;
        }
        if whole || self.config.manage_security_groups {
            let subnet = self.asked.member_subnet_id.unwrap_or(&vip_subnet);
            self.ensure_security_group(&wanted, &targets, subnet)?;
        }
        Ok((balancer, address))
    }

    /// Makes one change after the other until the load balancer is right or Octavia needs time.
    fn converge(
        &self,
        mut balancer: Box<LoadBalancer>,
        plan: &Plan<'_>,
        former: Option<&Steps>,
    ) -> Result<Box<LoadBalancer>, Failure> {
        let mut steps = Steps::continued(former, &balancer.id);
        loop {
            let mut tree = self.octavia.tree(&balancer.id)?;
            let pools = plan.pools(&tree);
            if plan.whole {
                sharing::check_ports(plan.claim, &plan.wanted.ports, &tree.listeners)?;
            } else if pools.len() < plan.wanted.ports.len() {
                let text = ["a listener of load balancer ", &balancer.id, " is gone"];
                return Err(Failure::not_found(text.concat()));
            }
            for pool in tree.pools.iter_mut().filter(|pool| pools.contains(&pool.id)) {
                self.octavia.fill(pool)?;
            }
            if plan.next(&balancer, &tree).is_none() {
                return Ok(balancer);
            }
            self.check_certificate(&tree)?;
            // Its tags may have been changed for another Service before the lock was acquired.
            balancer = self.changeable(&steps)?;
            let Some(change) = plan.next(&balancer, &tree) else {
                return Ok(balancer);
            };
            balancer = self.step(change, &mut steps)?;
        }
    }

    /// The load balancer as the Service requests it.
    pub(crate) fn wanted<'w>(
        &'w self,
        targets: &'w [&'w Target],
        vip_subnet: Option<&'w str>,
    ) -> Result<Wanted<'w>, Failure> {
        let member_subnet_id = self.asked.member_subnet_id.or(vip_subnet);
        Wanted::new(&Inputs {
            service: self.service,
            targets,
            asked: &self.asked,
            features: self.features,
            name: &self.name,
            member_subnet_id: member_subnet_id.filter(|id| !id.is_empty()),
        })
    }

    /// The targets that the node selector takes.
    fn members_of<'t>(&self, targets: &'t [Target]) -> Result<Vec<&'t Target>, Failure> {
        if self.asked.node_selector.is_empty() {
            return Ok(targets.iter().collect());
        }
        Ok(selected(targets, &self.context.nodes()?, &self.asked.node_selector))
    }

    fn ingress(&self, address: &str) -> Ingress {
        if let Some(hostname) = self.asked.hostname {
            return Ingress::hostname(hostname);
        }
        let proxied = self.asked.proxy_protocol.is_some();
        if proxied && self.config.enable_ingress_hostname {
            let suffix = given(&self.config.ingress_hostname_suffix).unwrap_or("nip.io");
            return Ingress::hostname(format!("{address}.{suffix}"));
        }
        Ingress {
            endpoint: Endpoint::Ip((address.into(), Some(if proxied { IpMode::Proxy } else { IpMode::Vip }))),
            ports: Vec::new(),
        }
    }

    /// What is published for a load balancer in its current state: nothing while it is half built.
    fn shown_ingress(&self, balancer: &LoadBalancer) -> Result<Vec<Ingress>, Failure> {
        if balancer.phase() != Phase::Active {
            return Ok(Vec::new());
        }
        let address = self.address_of(balancer)?;
        let half_built = address == balancer.vip_address
            && !self.is_internal()
            && recorded_address(self.service) != Some(address.as_str());
        Ok(if half_built || address.is_empty() {
            Vec::new()
        } else {
            vec![self.ingress(&address)]
        })
    }
}

/// The answer while Octavia works on a load balancer.
pub(crate) fn waiting_on(balancer: &LoadBalancer, steps: Option<Steps>) -> Failure {
    let own = steps.filter(|steps| steps.id() == balancer.id);
    let steps = own.unwrap_or_else(|| Steps::new(&balancer.id));
    let mut failure = steps.pending(format!("load balancer {} is {}", balancer.id, balancer.status));
    if failure.kind == FailureKind::Unavailable {
        failure
            .message
            .push_str("; if Octavia's workers run, `openstack loadbalancer status show` may tell why");
    }
    failure
}

/// Octavia changes nothing of such a load balancer, and it may still carry traffic: an operator has to decide.
pub(crate) fn in_error(balancer: &LoadBalancer) -> Failure {
    Failure::unavailable(format!(
        "load balancer {} is in ERROR and cannot be changed: `openstack loadbalancer failover {}` repairs it",
        balancer.id, balancer.id
    ))
}

#[cfg(test)]
mod tests;
