//! Load balancers: one Standard load balancer for all external Services of the cluster, one for all internal ones, under upstream's names.
//!
//! ```text
//!   annotations.rs -> wanted.rs       what the Service requests; rules.rs: its rules and probes
//!   plan.rs                           reads, and returns the next change:
//!     address.rs                        public address
//!     balancer.rs                       frontends, pools, probes, rules
//!     security.rs                       rules of the network security group
//!     private_link.rs                   a private link service at the frontend
//!   work.rs                           makes that change: the only place that writes; what takes time is `pending`
//! ```
//!
//! What is decided is a function of what was read (`json.rs`). All resources are written back as wholes, on condition that they are as they were read (ETag).

mod address;
pub mod annotations;
mod balancer;
mod json;
mod plan;
mod private_link;
mod rules;
mod security;
pub mod wanted;
mod work;

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

use crate::Azure;
use crate::config::given;
use plan::{Next, Task};
use wanted::Wanted;
use work::{Change, Turn};

/// Poll interval of a running operation.
const SOON: Duration = Duration::from_secs(2);

/// Most changes of a call: a plan that never ends is a mistake.
const CHANGES: usize = 16;

impl LoadBalancers for Azure {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let base = default_balancer_name(service);
        let task = Task::new(self, service, annotations::read(service)?.address_group);
        let mut parts = Vec::new();
        let balancers = task.balancers()?;
        for found in balancers.iter().flatten() {
            parts.extend(balancer::fronts(found, &base));
        }
        let addresses = task.addresses()?;
        if parts.is_empty() {
            let half = !address::named_by(&addresses, &wanted::tag(service), &task.cluster).is_empty();
            return Ok(half.then(|| Balancer::at(Vec::new())));
        }
        let ips = parts.iter().filter_map(|front| plan::ip_of(front, &addresses));
        Ok(Some(Balancer::at(ips.map(Ingress::ip).collect())))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let cluster = self.cluster_name();
        let asked = annotations::read(service)?;
        let task = Task::new(self, service, asked.address_group);
        let wanted = Wanted::new(service, asked, targets, &self.config, &cluster)?;
        if token.is_none() {
            annotations::TABLE.warn_unknown(service, &self.context);
        }
        let turn = self.begin(token, wanted.nodes())?;
        let ips = self.until_done(turn, |group_done| task.next(&wanted, group_done))?;
        Ok(Balancer::at(ips.into_iter().map(Ingress::ip).collect()))
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let update = TargetUpdate {
            service: service.clone(),
            token: token.map(str::to_owned),
        };
        let mut results = self.update_targets_of(&[update], targets)?;
        results.pop().unwrap_or_else(|| Ok(Vec::new()))
    }

    /// The pools belong to all Services: one list, and one change of a load balancer at most. Services whose security rules name the Nodes follow.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let names_nodes = |update: &TargetUpdate| {
            let service = &update.service;
            annotations::read(service)
                .is_ok_and(|asked| asked.with_rules && wanted::is_for_nodes(&asked, wanted::has_v6(service)))
        };
        let of_pools: Vec<&TargetUpdate> = updates.iter().filter(|update| !names_nodes(update)).collect();
        let mut in_pools = self.update_pools(&of_pools, targets)?.into_iter();
        let result = |update: &TargetUpdate| {
            let found = if names_nodes(update) { None } else { in_pools.next() };
            found.unwrap_or_else(|| {
                let ensured = self.ensure(&update.service, targets, update.token.as_deref());
                ensured.map(|_| Vec::new())
            })
        };
        Ok(updates.iter().map(result).collect())
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        // With wrong annotations too.
        let group = service.annotation(&annotations::TABLE.key("load-balancer-resource-group"));
        let task = Task::new(
            self,
            service,
            group.map(str::trim_ascii).filter(|group| !group.is_empty()),
        );
        let turn = self.begin(token, 0)?;
        self.until_done(turn, |group_done| task.next_deletion(group_done))
            .map(|_| Vec::new())
    }
}

impl Azure {
    /// Changes the Nodes of these Services in the pools alone: a result for each.
    fn update_pools(
        &self,
        updates: &[&TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let Some(first) = updates.first() else {
            return Ok(Vec::new());
        };
        let token = updates.iter().find_map(|update| update.token.as_deref());
        let task = Task::new(self, &first.service, None);
        let turn = match self.begin(token, 0) {
            Ok(turn) => turn,
            Err(failure) => return Ok(updates.iter().map(|_| Err(failure.clone())).collect()),
        };
        let found = task.balancers()?;
        let bases: Vec<String> = updates
            .iter()
            .map(|update| default_balancer_name(&update.service))
            .collect();
        let serves = |found: &serde_json::Value, base: &String| !balancer::fronts(found, base).is_empty();
        let mut outcomes = [Ok(()), Ok(())];
        for (outcome, found) in outcomes.iter_mut().zip(&found) {
            let serves_some = |found: &&serde_json::Value| bases.iter().any(|base| serves(found, base));
            if let Some(found) = found.as_ref().filter(serves_some) {
                *outcome = task.fill_pools(found, targets, &turn);
            }
        }
        let result = |base: &String| {
            let mut outcomes = outcomes.iter().zip(&found);
            let mine = outcomes.find(|(_, found)| found.as_ref().is_some_and(|found| serves(found, base)));
            match mine {
                Some((outcome, _)) => outcome.clone().map(|()| Vec::new()),
                None => Err(Failure::not_found("the Service has no load balancer")),
            }
        };
        Ok(bases.iter().map(result).collect())
    }

    /// Whose the load balancers are.
    pub(crate) fn cluster_name(&self) -> String {
        self.context.cluster().name
    }

    /// Name of the load balancer, external or internal.
    fn balancer_name(&self, internal: bool) -> String {
        let name = given(&self.config.load_balancer_name).map_or_else(|| self.cluster_name(), str::to_owned);
        if internal { format!("{name}-internal") } else { name }
    }

    fn until_done(&self, turn: Turn, next: impl Fn(bool) -> Result<Next, Failure>) -> Result<Vec<String>, Failure> {
        if let Some(done) = turn.last {
            return Ok(done);
        }
        for _ in 0..CHANGES {
            match next(turn.group_done)? {
                Next::Done(done) => return Ok(done),
                Next::Change(change) => self.make(change, &turn, None)?,
                Next::Last(change, done) => {
                    self.make(change, &turn, Some(done.clone()))?;
                    return Ok(done);
                }
            }
        }
        Err(Failure::conflict(
            "something else changes the load balancer back each time",
        ))
    }
}

#[cfg(test)]
mod tests;
