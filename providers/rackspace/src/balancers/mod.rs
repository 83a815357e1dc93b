//! Load balancers of Services by Cloud Load Balancers (CLB).
//!
//! ```text
//!   annotations.rs, access.rs -> wanted.rs    what the Service requests
//!   clb.rs                                    what the cloud shows
//!         both -> plan.rs                     the changes between
//!         this file                           makes them; while the cloud is busy the call ends with `pending`
//! ```
//!
//! Nothing is cached: all load balancers of a Service have the name that follows from its uid, and are found by it.

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use cloudwit_guest_sdk::reconcile::{self, Apply, Rounds};

use crate::Rackspace;
use crate::identity::{BALANCERS, success};
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
        let ended = self.converge(
            service,
            token,
            || self.balancers(),
            |found, listed| {
                let source = Source::new(service, asked.internal, listed)?;
                let settings = Settings::new(service, &self.context.cluster(), asked, config, source)?;
                let plan = plan::whole(&wanted.ports, &settings, found, config.node_limit());
                addresses.clone_from(&plan.addresses);
                Ok(plan)
            },
        );
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
        self.give_nodes(service, targets, token, || self.balancers())
    }

    /// All load balancers are listed together.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        self.balancers_enabled()?;
        let listed = self.balancers()?;
        Ok(one_by_one(updates, |update| {
            self.give_nodes(&update.service, targets, update.token(), || Ok(listed.clone()))
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        self.balancers_enabled()?;
        self.rounds(service, token)?.run(|| {
            let own = living(self.balancers()?, service);
            plan::deletion(&own).next()
        })?;
        Ok(Vec::new())
    }
}

impl Apply for Rackspace {
    type Change = Change;

    fn text(change: &Change) -> String {
        change.to_string()
    }

    fn codes(text: &str) -> reconcile::Change<'_> {
        reconcile::Change::new(text).busy_by(BUSY).done_by(GONE)
    }

    fn deletes(change: &Change) -> bool {
        change.method == "DELETE"
    }

    fn apply(&self, _: &str, change: &Change) -> Result<Vec<String>, Failure> {
        let (method, path, body) = (change.method, change.path.as_str(), change.body.as_ref());
        let response = self.identity.send(BALANCERS, method, path, body)?;
        success(response).map(|_| Vec::new())
    }
}

impl Rackspace {
    fn rounds(&self, service: &Service, token: Option<&str>) -> Result<Rounds<'_, Self>, Failure> {
        Rounds::new(self, &default_balancer_name(service), token)
    }

    /// Makes changes until the plan has none, of the load balancers that `list` gives.
    fn converge(
        &self,
        service: &Service,
        token: Option<&str>,
        list: impl Fn() -> Result<Vec<Listed>, Failure>,
        mut plan: impl FnMut(&[Clb], &[Listed]) -> Result<Plan, Failure>,
    ) -> Result<(), Failure> {
        self.rounds(service, token)?.run(|| {
            let listed = list()?;
            let mut found = Vec::new();
            for one in living(listed.clone(), service) {
                found.extend(self.balancer(one.id)?);
            }
            plan(&found, &listed)?.next()
        })
    }

    /// Brings only the nodes behind the Service's load balancers up to date.
    fn give_nodes(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        list: impl Fn() -> Result<Vec<Listed>, Failure>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let limit = self.config.loadbalancer.node_limit();
        let wanted = wanted::ports(service, targets, limit)?;
        let plan = |found: &[Clb], _: &[Listed]| plan::nodes_only(&wanted.ports, found, limit);
        self.converge(service, token, list, plan)?;
        Ok(Vec::new())
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

/// Those of the Service that are not over.
fn living(listed: Vec<Listed>, service: &Service) -> Vec<Listed> {
    let name = default_balancer_name(service);
    let mut own = listed;
    own.retain(|one| one.name == name && Phase::of(&one.status) != Phase::Deleted);
    own
}

fn balancer(addresses: &[std::net::IpAddr]) -> Balancer {
    let ingress = addresses.iter().map(|address| Ingress::ip(address.to_string()));
    Balancer::at(ingress.collect())
}

#[cfg(test)]
mod tests;
