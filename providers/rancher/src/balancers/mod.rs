//! Load balancers: a service of the type `loadBalancerService`, and an external service for each Node, under upstream's names.
//!
//! ```text
//!   wanted.rs     what the Service requests
//!   seen.rs       what Rancher shows
//!   plan.rs       which changes come next: external services, rules, what is not needed any more
//!   task.rs       reads what that needs, and returns the next change
//!   work.rs       makes it: the only place that writes
//! ```
//!
//! Nothing is cached: each call reads what is there.

mod plan;
mod seen;
mod task;
mod wanted;
mod work;

use std::time::Duration;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;

use crate::Rancher;
use task::{Inventory, Task};
use wanted::Wanted;

/// Poll interval of an external service that could not be started; traffic goes to the others.
const LAG: Duration = Duration::from_secs(10);

/// The name of a Service's load balancer, which MUST NOT CHANGE: upstream's are found by it.
fn balancer_name(service: &Service) -> String {
    format!("lb-{}", default_balancer_name(service))
}

impl LoadBalancers for Rancher {
    fn name(_: &ClusterInfo, service: &Service) -> String {
        balancer_name(service)
    }

    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let inventory = Inventory::new(self);
        let found = Task::new(&inventory, service).balancer()?;
        Ok(found.map(|found| Balancer::at(found.ingress())))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let wanted = Wanted::new(service, targets)?;
        let inventory = Inventory::new(self);
        let task = Task::new(&inventory, service);
        let (ingress, lagging) = self.until_done(&task, token, || task.next(&wanted))?;
        let balancer = Balancer::at(ingress);
        Ok(match lagging {
            Some(what) => balancer.remaining(LAG, String::new(), what),
            None => balancer,
        })
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        self.give_targets(service, targets, token, &Inventory::new(self))
    }

    /// External services are listed once for all, unless one of them changes.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let inventory = Inventory::new(self);
        Ok(one_by_one(updates, |update| {
            self.give_targets(&update.service, targets, update.token(), &inventory)
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let inventory = Inventory::new(self);
        let task = Task::new(&inventory, service);
        self.until_done(&task, token, || task.next_deletion())?;
        Ok(Vec::new())
    }
}

impl Rancher {
    /// Brings only the rules of a load balancer that is there up to date.
    fn give_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        inventory: &Inventory<'_>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let wanted = Wanted::new(service, targets)?;
        let task = Task::new(inventory, service);
        self.until_done(&task, token, || task.next_of_targets(&wanted))?;
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
