//! Load balancers of Services by Cloud Load Balancers (CLB).
//!
//! ```text
//!   annotations.rs, access.rs -> wanted.rs    what the Service wants
//!   clb.rs                                    what the cloud shows
//!         both -> plan.rs                     the changes between
//!         this file                           makes them; while the cloud is busy the call ends with `pending`
//! ```
//!
//! Nothing is remembered: all load balancers of a Service have the name that follows from its uid, and are found by it.

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use cloudwit_guest_sdk::reconcile::{self, Steps};

use crate::Rackspace;
use crate::identity::{Product, success};
use annotations::TABLE;
use clb::{Clb, Listed, Phase};
use plan::{Change, Plan};
use wanted::{Settings, Source};

mod access;
pub mod annotations;
pub mod clb;
pub mod plan;
pub mod wanted;

/// CLB refuses changes of one that is busy with 422 (`immutableEntity`, `unprocessableEntity`).
const BUSY: &[&str] = &["422"];

/// What a change was for is gone: found out by looking again.
const GONE: &[&str] = &["404", "410"];

impl LoadBalancers for Rackspace {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        self.balancers_enabled()?;
        let own = living(self.balancers()?, service);
        if own.is_empty() {
            return Ok(None);
        }
        let works = own.iter().filter(|one| Phase::of(&one.status) == Phase::Active);
        let addresses = works.map(|one| wanted::addresses(&one.virtual_ips, &wanted::families(service)));
        let addresses = addresses.min_by_key(Vec::is_empty).unwrap_or_default();
        Ok(Some(balancer(&addresses)))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        self.balancers_enabled()?;
        let (config, asked) = (&self.config.loadbalancer, annotations::read(service)?);
        let wanted = wanted::ports(service, targets, config.node_limit())?;
        if token.is_none() {
            TABLE.warn_unknown(service, &self.context);
            self.warn_left_out(wanted.left_out);
        }
        let mut addresses = Vec::new();
        let ended = self.converge(service, token, |found, listed| {
            let source = Source::new(service, asked.internal, listed)?;
            let settings = Settings::new(service, &self.context.cluster(), asked, config, source)?;
            let plan = plan::whole(&wanted.ports, &settings, found, config.node_limit());
            addresses.clone_from(&plan.addresses);
            Ok(plan)
        });
        match ended {
            Err(failure) if addresses.is_empty() => Err(failure),
            Err(failure) => balancer(&addresses).despite(failure),
            Ok(()) if addresses.is_empty() => Err(Failure::unavailable("the load balancer has no address")),
            Ok(()) => Ok(balancer(&addresses)),
        }
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        self.balancers_enabled()?;
        let limit = self.config.loadbalancer.node_limit();
        let wanted = wanted::ports(service, targets, limit)?;
        self.converge(service, token, |found, _| plan::nodes_only(&wanted.ports, found, limit))?;
        Ok(Vec::new())
    }

    /// All load balancers are listed together.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        self.balancers_enabled()?;
        let (listed, limit) = (self.balancers()?, self.config.loadbalancer.node_limit());
        Ok(one_by_one(updates, |update| {
            let (service, token) = (&update.service, update.token.as_deref());
            let wanted = wanted::ports(service, targets, limit)?;
            let own = living(listed.clone(), service);
            self.converge_from(
                service,
                token,
                || Ok(own.clone()),
                |found, _| plan::nodes_only(&wanted.ports, found, limit),
            )?;
            Ok(Vec::new())
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        self.balancers_enabled()?;
        let mut steps = steps(service, token);
        loop {
            let own = living(self.balancers()?, service);
            let mut waiting = None;
            let mut changes = Vec::new();
            for one in &own {
                match Phase::of(&one.status) {
                    Phase::Active | Phase::Error | Phase::Suspended => changes.push(Change::delete(one.id)),
                    _ => waiting = Some(format!("load balancer {} is {}", one.id, one.status)),
                }
            }
            for change in &changes {
                self.make(change, &mut steps)?;
            }
            match waiting {
                Some(state) if changes.is_empty() => return Err(steps.pending(state)),
                _ if changes.is_empty() => return Ok(Vec::new()),
                _ => {}
            }
        }
    }
}

impl Rackspace {
    /// Makes changes until the plan has none.
    fn converge(
        &self,
        service: &Service,
        token: Option<&str>,
        plan: impl FnMut(&[Clb], &[Listed]) -> Result<Plan, Failure>,
    ) -> Result<(), Failure> {
        self.converge_from(service, token, || self.balancers(), plan)
    }

    /// The same from what `list` gives.
    fn converge_from(
        &self,
        service: &Service,
        token: Option<&str>,
        list: impl Fn() -> Result<Vec<Listed>, Failure>,
        mut plan: impl FnMut(&[Clb], &[Listed]) -> Result<Plan, Failure>,
    ) -> Result<(), Failure> {
        let mut steps = steps(service, token);
        loop {
            let listed = list()?;
            let mut found = Vec::new();
            for one in living(listed.clone(), service) {
                found.extend(self.balancer(one.id)?);
            }
            let plan = plan(&found, &listed)?;
            for change in &plan.changes {
                self.make(change, &mut steps)?;
            }
            if plan.changes.is_empty() {
                return match (plan.broken, plan.waiting) {
                    (Some(failure), _) => Err(failure),
                    (None, Some(state)) => Err(steps.pending(state)),
                    (None, None) => Ok(()),
                };
            }
        }
    }

    fn make(&self, change: &Change, steps: &mut Steps) -> Result<(), Failure> {
        let text = change.to_string();
        let step = reconcile::Change::new(&text).busy_by(BUSY).done_by(GONE);
        steps.make(&self.context, &step, || {
            let (method, path) = (change.method, change.path.as_str());
            success(
                self.identity
                    .send(Product::LoadBalancers, method, path, change.body.as_ref())?,
            )
        })?;
        Ok(())
    }

    fn warn_left_out(&self, left_out: usize) {
        if left_out > 0 {
            let limit = self.config.loadbalancer.node_limit();
            let text = format!(
                "{left_out} Nodes are left out: a load balancer has at most {limit}; where the account's limit was raised, raise [LoadBalancer] node-limit"
            );
            self.context
                .service_event(EventKind::Warning, "NodeLimitReached", &text);
        }
    }

    fn balancers_enabled(&self) -> Result<(), Failure> {
        match self.config.loadbalancer.is_enabled() {
            true => Ok(()),
            false => {
                let text = "load balancers are switched off in the cloud config: [LoadBalancer] enabled = false";
                Err(Failure::implemented_elsewhere(text))
            }
        }
    }
}

fn steps(service: &Service, token: Option<&str>) -> Steps {
    Steps::continued(token.and_then(Steps::read).as_ref(), &default_balancer_name(service))
}

/// Those of the Service that are not over.
fn living(listed: Vec<Listed>, service: &Service) -> Vec<Listed> {
    let name = default_balancer_name(service);
    let mut own = listed;
    own.retain(|one| one.name == name && Phase::of(&one.status) != Phase::Deleted);
    own
}

fn balancer(addresses: &[std::net::IpAddr]) -> Balancer {
    Balancer::at(
        addresses
            .iter()
            .map(|address| Ingress::ip(address.to_string()))
            .collect(),
    )
}

#[cfg(test)]
mod tests;
