//! What one call for a Service's load balancer works with: what the Service requests, the ways to the cloud, and how its load balancer is
//! found there.

use std::time::Duration;

use cloudwit_guest_sdk::names::default_load_balancer_name;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::{self, Steps};
use cloudwit_guest_sdk::state::{Keep, Lock};

use crate::OpenStack;
use crate::api::Api;
use crate::balancers::annotations::{Asked, is_ovn};
use crate::balancers::change::Change;
use crate::balancers::config::BalancerConfig;
use crate::balancers::floating_ips::recorded_address;
use crate::balancers::names;
use crate::balancers::octavia::features::Features;
use crate::balancers::octavia::{Found, LoadBalancer, Octavia, Phase};
use crate::balancers::sharing::Claim;
use crate::balancers::waiting_on;

/// How long Octavia's version is cached. It changes when the cloud is upgraded.
const VERSION_KEPT: Duration = Duration::from_secs(3600);

/// One call.
#[derive(Debug)]
pub struct BalancerTask<'a> {
    pub(crate) api: &'a Api,
    pub(crate) octavia: Octavia<'a>,
    pub(crate) context: Context,
    pub(crate) config: &'a BalancerConfig,
    pub(crate) service: &'a Service,
    pub(crate) cluster: String,
    /// Of the load balancer.
    pub(crate) name: String,
    pub(crate) asked: Asked<'a>,
    pub(crate) features: Features,
    pub(crate) ovn: bool,
    /// Load balancers of the project, where they were listed for many Services.
    pub(crate) listed: &'a [Found],
}

impl<'a> BalancerTask<'a> {
    /// For this Service and what it requests.
    pub(crate) fn new(cloud: &'a OpenStack, service: &'a Service, asked: Asked<'a>) -> Result<Self, Failure> {
        let cluster = cloud.context.cluster().name;
        let config = &cloud.config.loadbalancer;
        let octavia = Octavia(&cloud.api);
        let version = cloud.context.state().get_or_make(
            "octavia-version",
            Keep::at_most(VERSION_KEPT),
            Duration::from_secs(5),
            || octavia.version().map(|(major, minor)| vec![major, minor]),
        )?;
        let version = (
            version.first().copied().unwrap_or_default(),
            version.get(1).copied().unwrap_or_default(),
        );
        Ok(Self {
            api: &cloud.api,
            octavia,
            context: cloud.context,
            config,
            service,
            name: names::balancer(&cluster, service),
            cluster,
            asked,
            features: Features::of(version, is_ovn(config)),
            ovn: is_ovn(config),
            listed: &[],
        })
    }

    /// Makes a change.
    pub(crate) fn change(&self, change: Change) -> Result<(), Failure> {
        change.make(self.api).map(drop)
    }

    /// What the Service is to this load balancer.
    pub(crate) fn claim(&self, balancer: &LoadBalancer) -> Claim {
        Claim::new(
            &self.name,
            self.service,
            balancer,
            recorded_address(self.service).is_some(),
        )
    }

    /// The load balancer that is waited for, else the one that the annotation names, else the one of the right name. One that is being
    /// deleted is found by its id only.
    pub(crate) fn find(&self, steps: Option<&Steps>) -> Result<Option<Box<LoadBalancer>>, Failure> {
        let waited_for = steps.map(Steps::id);
        for id in [waited_for, self.asked.balancer_id].into_iter().flatten() {
            let listed = self.listed.iter().find(|balancer| balancer.id == id);
            if let Some(listed) = listed {
                return Ok(Some(listed.clone()));
            }
            if let Some(found) = self.octavia.load_balancer(id)? {
                return Ok(Some(found));
            }
        }
        let mut found = self.named()?;
        found.retain(|balancer| balancer.phase() != Phase::PendingDelete);
        self.single(found)
    }

    /// All of the right name, or of the name that upstream gave long ago.
    pub(crate) fn named(&self) -> Result<Vec<Found>, Failure> {
        let listed = self.listed.iter().filter(|balancer| balancer.name == self.name);
        let listed: Vec<Found> = listed.cloned().collect();
        if !listed.is_empty() {
            return Ok(listed);
        }
        let named = self.octavia.named(&self.name)?;
        if !named.is_empty() {
            return Ok(named);
        }
        self.octavia.named(&default_load_balancer_name(&self.service.uid))
    }

    pub(crate) fn single(&self, found: Vec<Found>) -> Result<Option<Found>, Failure> {
        reconcile::single(
            found,
            &format!("load balancers of the name {}", self.name),
            |balancer| &balancer.id,
        )
    }

    /// Keeps other Services that share the load balancer from changing its tags at the same time.
    pub(crate) fn lock(&self, balancer: &LoadBalancer) -> Result<Lock, Failure> {
        let lock = self
            .context
            .state()
            .lock(&format!("load-balancer/{}", balancer.id), Duration::from_secs(10));
        lock.ok_or_else(|| {
            let text = format!("load balancer {} is being changed for another Service", balancer.id);
            Failure::pending(Duration::from_secs(1), "", text)
        })
    }

    /// Makes a change below the load balancer of these steps; gives it as it is then, if it can be changed on.
    pub(crate) fn step(&self, change: Change, steps: &mut Steps) -> Result<Box<LoadBalancer>, Failure> {
        let text = change.to_string();
        // It was changed meanwhile. The plan is made again.
        let step = reconcile::Change::new(&text).busy_when(FailureKind::FailedPrecondition);
        steps.make(&self.context, &step, || self.change(change))?;
        self.changeable(steps)
    }

    /// The load balancer of these steps, once Octavia takes changes of it.
    pub(crate) fn changeable(&self, steps: &Steps) -> Result<Box<LoadBalancer>, Failure> {
        let now = self.octavia.load_balancer(steps.id())?;
        let now = now.ok_or_else(|| Failure::unavailable(format!("load balancer {} is gone", steps.id())))?;
        match now.phase() {
            Phase::Active => Ok(now),
            _ => Err(waiting_on(&now, Some(steps.clone()))),
        }
    }
}
