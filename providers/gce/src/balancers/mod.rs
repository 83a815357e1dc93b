//! Load balancers: what upstream's controller makes, under its names.
//!
//! ```text
//!   annotations.rs -> wanted.rs       what the Service requests
//!   external.rs                       health check -> target pool -> forwarding rule -> firewall rules
//!   internal.rs, groups.rs            health check, instance groups -> backend service -> forwarding rule -> firewall rules
//!   parts.rs, tags.rs                 what both have
//!   deletion.rs                       the other way round
//! ```
//!
//! Each reads the cloud, makes the changes that need no others before them, and runs again when their operations are done (`work.rs`). The
//! address comes with the forwarding rule, and firewall rules name it. A rule that is recreated keeps its address, so there they come before it. When deleted,
//! the rule goes first.

pub mod annotations;
mod deletion;
mod external;
mod groups;
mod internal;
pub mod names;
mod parts;
mod tags;
pub mod wanted;

use std::time::Duration;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use cloudwit_guest_sdk::serde_json::Value;

use crate::Gce;
use crate::place::Place;
use crate::resource::text;
use crate::work::Work;
use wanted::Wanted;

/// Poll interval of running operations.
const SOON: Duration = Duration::from_secs(1);

impl LoadBalancers for Gce {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let task = Task::new(self, service)?;
        if let Some(rule) = self.api.find(&task.rule_path())? {
            let ours = !is_of_backend_controller(&rule);
            return Ok(ours.then(|| Balancer::at(vec![Ingress::ip(text(&rule, "IPAddress"))])));
        }
        // Half built, or half deleted.
        let place = &task.place;
        for path in [
            place.regional("targetPools", &task.name),
            place.regional("backendServices", &task.name),
            place.regional("addresses", &task.name),
        ] {
            if self.api.find(&path)?.is_some() {
                return Ok(Some(Balancer::at(Vec::new())));
            }
        }
        Ok(None)
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let wanted = Wanted::new(service, annotations::read(service)?, targets)?;
        let task = Task::new(self, service)?;
        let mut work = Work::continued(&self.api, self.context, &task.name, token)?;
        if token.is_none() {
            annotations::warn(service, &self.context);
        }
        loop {
            let done = if wanted.asked.internal {
                task.internal(&wanted, &mut work)?
            } else {
                task.external(&wanted, &mut work)?
            };
            if let Some(ip) = done {
                let balancer = Balancer::at(vec![Ingress::ip(ip)]);
                return Ok(match work.is_running() {
                    true => balancer.remaining(SOON, work.token(), "targets are being changed"),
                    false => balancer,
                });
            }
            work.settle()?;
        }
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let wanted = Wanted::new(service, annotations::read(service)?, targets)?;
        let task = Task::new(self, service)?;
        let mut work = Work::continued(&self.api, self.context, &task.name, token)?;
        loop {
            let Some(rule) = work
                .find(&task.rule_path())?
                .filter(|rule| !is_of_backend_controller(rule))
            else {
                return Err(Failure::not_found(format!(
                    "Service {} has no load balancer",
                    service.name
                )));
            };
            let changed = if is_internal(&rule) {
                task.update_internal(&wanted, &mut work, &rule)?
            } else {
                task.update_external(&wanted, &mut work, &rule)?
            };
            if !changed {
                return Ok(Vec::new());
            }
            work.settle()?;
        }
    }

    /// What all of them have is listed once.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let regional = |collection: &str| format!("projects/{}/regions/{}/{collection}", place.project, place.region);
        self.api.remember(&regional("forwardingRules"))?;
        let internal = |update: &TargetUpdate| annotations::read(&update.service).is_ok_and(|asked| asked.internal);
        if updates.iter().any(internal) {
            self.api.remember(&regional("backendServices"))?;
        }
        if !updates.iter().all(internal) {
            self.api.remember(&regional("targetPools"))?;
        }
        if self.config.global.node_tags.is_empty() {
            self.api
                .remember(&format!("projects/{}/global/firewalls", place.network_project))?;
        }
        Ok(one_by_one(updates, |update| {
            self.update_targets(&update.service, targets, update.token.as_deref())
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let task = Task::new(self, service)?;
        let mut work = Work::continued(&self.api, self.context, &task.name, token)?;
        if let Some(rule) = work.find(&task.rule_path())? {
            if is_of_backend_controller(&rule) {
                return Ok(Vec::new());
            }
            work.set_internal(Some(is_internal(&rule)));
        }
        while task.delete_all(&mut work)? {
            work.settle()?;
        }
        Ok(Vec::new())
    }
}

/// One Service's load balancer.
pub(crate) struct Task<'a> {
    gce: &'a Gce,
    service: &'a Service,
    place: Place,
    cluster_id: String,
    /// Of the load balancer, and most that belongs to it.
    name: String,
}

impl<'a> Task<'a> {
    fn new(gce: &'a Gce, service: &'a Service) -> Result<Self, Failure> {
        let global = &gce.config.global;
        let place = Place::of(global, gce.context)?;
        let cluster_id = names::cluster_id(global, &place, &gce.context.cluster().name, gce.context.keys());
        Ok(Self {
            gce,
            service,
            cluster_id,
            place,
            name: default_balancer_name(service),
        })
    }

    fn rule_path(&self) -> String {
        self.place.regional("forwardingRules", &self.name)
    }

    /// A whole URL, as bodies of requests name things.
    fn link(&self, path: &str) -> String {
        self.gce.api.link(path)
    }
}

fn is_internal(rule: &Value) -> bool {
    text(rule, "loadBalancingScheme") == "INTERNAL"
}

/// External rules with a backend service are made by GKE's other controller.
fn is_of_backend_controller(rule: &Value) -> bool {
    !is_internal(rule) && !text(rule, "backendService").is_empty()
}

#[cfg(test)]
mod tests;
