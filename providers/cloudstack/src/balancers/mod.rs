//! Load balancers: a public address, a rule for each port, and what lets traffic in, under upstream's names.
//!
//! ```text
//!   annotations.rs -> wanted.rs       what the Service requests
//!   task.rs                           reads (seen.rs), and returns the next change:
//!     inventory.rs                      machines and their networks
//!     address.rs                        public address
//!     rules.rs                          load balancer rules and their machines
//!     openings.rs                       firewall or network ACL
//!   work.rs                           makes it: the only place that writes
//! ```
//!
//! Nothing is cached but the jobs that were begun: each call reads what is there.

mod address;
pub mod annotations;
mod inventory;
mod openings;
mod rules;
mod seen;
mod task;
pub mod wanted;
mod work;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Rounds;

use crate::CloudStack;
use annotations::{ASSOCIATED, TABLE};
use inventory::Inventory;
use seen::Rule;
use task::{Task, calls_or};
use wanted::Wanted;

impl LoadBalancers for CloudStack {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let machines = Inventory::new(self);
        let task = Task::new(self, service, &machines);
        let rules = task.rules()?;
        if let Some(rule) = rules.first() {
            return Ok(Some(Balancer::at(vec![ingress(
                service,
                &rule.publicip,
                is_proxied(rule),
            )])));
        }
        let half = task.addresses(&[], None)?;
        Ok((!half.is_empty()).then(|| Balancer::at(Vec::new())))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let wanted = Wanted::new(service, annotations::read(service)?, targets)?;
        if token.is_none() {
            TABLE.warn_unknown(service, &self.context);
        }
        let machines = Inventory::new(self);
        let task = Task::new(self, service, &machines);
        let address = Rounds::new(self, &task.name, token)?.run(|| task.next(&wanted))?;
        let mut balancer = Balancer::at(vec![ingress(service, &address.ipaddress, wanted.asked.proxy)]);
        if annotations::associated(service, &address).is_none()
            && let Some(own) = address::association(&address, &service.uid, service.fixed_ip())
        {
            let change = AnnotationChange::set(TABLE.key(ASSOCIATED), own.to_string());
            balancer.annotations.push(change);
        }
        Ok(balancer)
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        self.give_machines(service, targets, token, &Inventory::new(self))
    }

    /// Machines are listed once for all.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let machines = Inventory::new(self);
        Ok(one_by_one(updates, |update| {
            self.give_machines(&update.service, targets, update.token(), &machines)
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let machines = Inventory::new(self);
        let task = Task::new(self, service, &machines);
        Rounds::new(self, &task.name, token)?.run(|| task.next_deletion())?;
        Ok(Vec::new())
    }
}

impl CloudStack {
    /// Brings only the machines of the Service's rules up to date.
    fn give_machines(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        machines: &Inventory<'_>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let task = Task::new(self, service, machines);
        let wanted = wanted::machines(targets);
        Rounds::new(self, &task.name, token)?.run(|| {
            let seen = task.rules()?;
            if seen.is_empty() {
                return Err(Failure::not_found(format!(
                    "Service {} has no load balancer",
                    service.name
                )));
            }
            let rules: Vec<&Rule> = seen.iter().filter(|rule| rule.state != "Revoke").collect();
            Ok(calls_or(task.members(&rules, &wanted)?, ()))
        })?;
        Ok(Vec::new())
    }
}

fn is_proxied(rule: &Rule) -> bool {
    rule.protocol == "tcp-proxy"
}

/// Where it is reached. Connections with the PROXY protocol must not be cut short inside the cluster.
fn ingress(service: &Service, ip: &str, proxied: bool) -> Ingress {
    if let Some(name) = annotations::hostname(service) {
        return Ingress::hostname(name);
    }
    Ingress::ip(ip).proxied(proxied)
}

#[cfg(test)]
mod tests;
