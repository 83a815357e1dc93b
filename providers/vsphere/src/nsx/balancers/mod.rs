//! Load balancers: what upstream's controller makes, under its names and tags.
//!
//! ```text
//!   annotations.rs, wanted.rs     what the Service requests
//!   seen.rs                       what there is
//!   task.rs                       address.rs -> monitor -> pool -> lb_service.rs -> virtual server, for each port; and the other way round
//!   bodies.rs                     what is sent
//!   work.rs                       sends it: the only place that writes
//! ```
//!
//! Nothing is cached: each call reads what is there.

mod address;
pub mod annotations;
mod bodies;
mod lb_service;
pub mod names;
mod seen;
mod task;
mod wanted;
mod work;

use cloudwit_guest_sdk::one_by_one;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use serde_json::Value;

use super::api::Nsx;
use super::object::text;
use super::settings::BalancerSettings;
use crate::Vsphere;
use bodies::{balancer_name, service_name};
use task::Task;
use work::Work;

impl LoadBalancers for Vsphere {
    fn name(cluster: &ClusterInfo, service: &Service) -> String {
        let name = balancer_name(&cluster.name, &service_name(service));
        // At most 255 bytes, and a cluster's name may be anything.
        let end = (0..=name.len().min(255)).rev().find(|end| name.is_char_boundary(*end));
        name.get(..end.unwrap_or_default()).unwrap_or_default().into()
    }

    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let (nsx, settings) = self.balancers()?;
        let task = Task::new(&nsx, settings, self.context.cluster().name, service);
        let seen = task.seen()?;
        if let Some(server) = seen.servers.first() {
            return Ok(Some(Balancer::at(vec![Ingress::ip(text(server, "ip_address"))])));
        }
        // Half built, or half deleted.
        let is_there = !seen.is_empty() || !task.allocations(&seen)?.is_empty();
        Ok(is_there.then(|| Balancer::at(Vec::new())))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let (nsx, settings) = self.balancers()?;
        let ports = wanted::ports(service)?;
        let class = annotations::class(service, settings)?;
        if token.is_none() {
            annotations::warn(service, &self.context);
        }
        let task = Task::new(&nsx, settings, self.context.cluster().name, service);
        let mut work = Work::continued(&nsx, &default_balancer_name(service), token);
        let (address, servers) = task.ensure(&mut work, class, &ports, &wanted::members(service, targets))?;
        let balancer = Balancer::at(vec![Ingress::ip(address)]);
        match work.changed.then(|| task.realized(&work, &servers)) {
            Some(Err(failure)) => balancer.despite(failure),
            _ => Ok(balancer),
        }
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let (nsx, settings) = self.balancers()?;
        let pools = seen::pools(&nsx, &settings.owner, &self.context.cluster().name)?;
        self.give_members(&nsx, settings, service, targets, token, &pools)
    }

    /// Pools are listed once for all.
    fn update_targets_of(
        &self,
        updates: &[TargetUpdate],
        targets: &[Target],
    ) -> Result<Vec<Result<Vec<AnnotationChange>, Failure>>, Failure> {
        let (nsx, settings) = self.balancers()?;
        let pools = seen::pools(&nsx, &settings.owner, &self.context.cluster().name)?;
        Ok(one_by_one(updates, |update| {
            let token = update.token.as_deref().filter(|token| !token.is_empty());
            self.give_members(&nsx, settings, &update.service, targets, token, &pools)
        }))
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let (nsx, settings) = self.balancers()?;
        let task = Task::new(&nsx, settings, self.context.cluster().name, service);
        let mut work = Work::continued(&nsx, &default_balancer_name(service), token);
        task.delete(&mut work)?;
        Ok(Vec::new())
    }
}

impl Vsphere {
    fn balancers(&self) -> Result<(Nsx<'_>, &BalancerSettings), Failure> {
        self.nsx(|settings| settings.balancers.as_ref(), "loadBalancer")
    }

    /// Brings only the members of the Service's pools up to date, which are among those that were `listed`.
    fn give_members(
        &self,
        nsx: &Nsx<'_>,
        settings: &BalancerSettings,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
        listed: &[Value],
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let task = Task::new(nsx, settings, self.context.cluster().name, service);
        let pools = seen::of_service(listed, &service_name(service));
        if pools.is_empty() {
            let text = format!("Service {} has no load balancer", service.name);
            return Err(Failure::not_found(text));
        }
        let mut work = Work::continued(nsx, &default_balancer_name(service), token);
        let ports = wanted::ports(service)?;
        task.update_members(&mut work, &ports, &pools, &wanted::members(service, targets))?;
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
