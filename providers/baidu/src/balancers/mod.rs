//! Load balancers: a BLB with a listener for each port, its machines, and an EIP, under the names of Baidu's own controller.
//!
//! ```text
//!   annotations.rs -> wanted.rs       what the Service requests
//!   task.rs                           reads (seen.rs, names.rs), and returns the next change:
//!     inventory.rs                      machines and their subnet
//!     listeners.rs                      ports
//!     backends.rs                       machines behind it
//!     addresses.rs                      public address
//!   mod.rs                            makes it: the only place that writes. A BLB takes one change at a time, so calls end with `pending`
//! ```
//!
//! Nothing is cached: each call reads what is there.

mod addresses;
pub mod annotations;
mod backends;
mod inventory;
mod listeners;
mod names;
mod seen;
mod task;
pub mod wanted;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{Apply, Change, Rounds};

use crate::Baidu;
use crate::api::{Call, errors::UNFINISHED};
use annotations::{ADDED, ADDED_EIP, FORMER, TABLE};
use inventory::Inventory;
use task::{Balanced, Task};
use wanted::Wanted;

impl LoadBalancers for Baidu {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let inventory = Inventory::new(self);
        Ok(Task::new(self, service, &inventory).seen()?.map(Balancer::at))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let wanted = Wanted::new(service, annotations::read(service)?, targets)?;
        if token.is_none() {
            self.warn(service, &wanted);
        }
        let inventory = Inventory::new(self);
        let task = Task::new(self, service, &inventory);
        let balanced = self.rounds(service, token)?.run(|| task.next(&wanted))?;
        let mut balancer = Balancer::at(vec![Ingress::ip(&balanced.ip)]);
        balancer.annotations = written(service, &wanted, &balanced);
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

    /// Load balancers and machines are listed once for all.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let inventory = Inventory::new(self);
        Ok(one_by_one(updates, |update| {
            self.give_machines(&update.service, targets, update.token(), &inventory)
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let inventory = Inventory::new(self);
        let task = Task::new(self, service, &inventory);
        self.rounds(service, token)?.run(|| task.next_deletion())?;
        let written = [ADDED, FORMER, ADDED_EIP]
            .into_iter()
            .filter(|key| annotations::value(service, key).is_some());
        Ok(written.map(|key| AnnotationChange::remove(TABLE.key(key))).collect())
    }
}

impl Baidu {
    fn warn(&self, service: &Service, wanted: &Wanted<'_>) {
        TABLE.warn_unknown(service, &self.context);
        let event = |text: &str| {
            self.context
                .service_event(EventKind::Warning, "UnsupportedAnnotation", text)
        };
        wanted.asked.warnings.iter().for_each(|text| event(text));
        let (all, most) = (wanted.machines.len(), wanted.asked.most_machines);
        if service.traffic_policy == TrafficPolicy::Local && all > most {
            let text = format!(
                "{most} of {all} machines are behind the BLB: with externalTrafficPolicy Local those with Pods may not be among them"
            );
            self.context.service_event(EventKind::Warning, "TooManyMachines", &text);
        }
    }

    fn rounds(&self, service: &Service, token: Option<&str>) -> Result<Rounds<'_, Self>, Failure> {
        let id = format!("the load balancer of {}/{}", service.namespace, service.name);
        Rounds::new(self, &id, token)
    }

    /// Brings only the machines behind the Service's load balancer up to date.
    fn give_machines(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        inventory: &Inventory<'_>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let mut rounds = self.rounds(service, token)?;
        let calls = Task::new(self, service, inventory).target_changes(targets, &rounds)?;
        let mut calls = calls.iter();
        if let Some(call) = calls.next() {
            rounds.make(call)?;
        }
        match calls.next() {
            None => Ok(Vec::new()),
            Some(_) => Err(rounds.pending("a BLB takes one change at a time")),
        }
    }
}

impl Apply for Baidu {
    type Change = Call;

    fn text(call: &Call) -> String {
        call.text()
    }

    fn codes(text: &str) -> Change<'_> {
        Change::new(text)
            .busy_by(&[UNFINISHED])
            .done_by(&["ListenerAlreadyExist", "BackendServerAlreadyExist"])
    }

    /// Or unbinds.
    fn deletes(call: &Call) -> bool {
        call.method != "POST"
    }

    fn apply(&self, _: &str, call: &Call) -> Result<Vec<String>, Failure> {
        self.api.change(call).map(|()| Vec::new())
    }
}

/// What Baidu's controller writes into the Service, where it differs. A BLB of the user's is named by the user.
fn written(service: &Service, wanted: &Wanted<'_>, balanced: &Balanced) -> Vec<AnnotationChange> {
    let added = annotations::exist_id(service)
        .is_none()
        .then_some(balanced.blb.as_str());
    let eip = (!wanted.asked.internal).then_some(balanced.ip.as_str());
    let mut changes = Vec::new();
    for (key, value) in [(ADDED, added), (ADDED_EIP, eip)] {
        match (value, annotations::value(service, key)) {
            (Some(value), there) if there != Some(value) => changes.push(AnnotationChange::set(TABLE.key(key), value)),
            (None, Some(_)) => changes.push(AnnotationChange::remove(TABLE.key(key))),
            _ => {}
        }
    }
    changes
}

#[cfg(test)]
mod tests;
