//! What is listed at most once in a call: machines, and for many Services load balancers.

use std::cell::OnceCell;

use cloudwit_guest_sdk::prelude::*;

use super::seen::Blb;
use crate::Baidu;
use crate::api::Call;
use crate::config::{Product, given};
use crate::instances::machine::Machine;
use crate::instances::machines;

/// Lists, made when they are needed.
pub struct Inventory<'a> {
    cloud: &'a Baidu,
    machines: OnceCell<Vec<Machine>>,
    blbs: OnceCell<Vec<Blb>>,
}

impl<'a> Inventory<'a> {
    pub fn new(cloud: &'a Baidu) -> Self {
        Self {
            cloud,
            machines: OnceCell::new(),
            blbs: OnceCell::new(),
        }
    }

    /// All load balancers, as of the first request.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn blbs(&self) -> Result<&[Blb], Failure> {
        if let Some(blbs) = self.blbs.get() {
            return Ok(blbs);
        }
        let blbs = self.cloud.blbs()?;
        Ok(self.blbs.get_or_init(|| blbs))
    }

    fn machines(&self) -> Result<&[Machine], Failure> {
        if let Some(machines) = self.machines.get() {
            return Ok(machines);
        }
        let found = self.cloud.api.list(&machines(), "instances")?;
        Ok(self.machines.get_or_init(|| found))
    }

    /// Those of these ids that exist and are in the VPC: another one would spoil the whole call.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn existing(&self, ids: &[String]) -> Result<Vec<String>, Failure> {
        let here = |machine: &&Machine| machine.vpc_id.as_deref() == Some(self.cloud.vpc()) && !machine.is_deleted();
        let there: Vec<&str> = self
            .machines()?
            .iter()
            .filter(here)
            .map(|machine| machine.id.as_str())
            .collect();
        Ok(ids.iter().filter(|id| there.contains(&id.as_str())).cloned().collect())
    }

    /// The subnet for a load balancer before these machines: the config's, or that of the first machine.
    ///
    /// # Errors
    /// `failed-precondition` when there is none; the cloud's error.
    pub fn subnet(&self, ids: &[String]) -> Result<String, Failure> {
        if let Some(subnet) = given(&self.cloud.config.subnet_id) {
            return Ok(subnet.to_owned());
        }
        let machines = self.machines()?;
        let of = |id: &String| machines.iter().find(|machine| machine.id == *id)?.subnet_id.clone();
        ids.iter().find_map(of).filter(|subnet| !subnet.is_empty()).ok_or_else(|| {
            let text = "there is no Node with a machine yet whose subnet the load balancer could be in; write SubnetId into the cloud config";
            Failure::failed_precondition(text)
        })
    }
}

impl Baidu {
    /// All load balancers of the account.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn blbs(&self) -> Result<Vec<Blb>, Failure> {
        self.api.list(&Call::get(Product::Blb, "/v1/blb"), "blbList")
    }
}
