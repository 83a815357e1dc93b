//! What comes next for the private link service of a Service.

use cloudwit_guest_sdk::prelude::*;
use serde_json::{Map, Value};

use super::Task;
use super::balancer;
use super::wanted::Wanted;
use crate::arm::NETWORK;
use crate::balancers::json::{id, name};
use crate::balancers::private_link::{self, Site};
use crate::balancers::work::Change;
use crate::config::given;

impl Task<'_> {
    /// The next change that takes private link services off the frontends that a load balancer is to lose.
    pub(super) fn unlink(&self, there: &Value, left: &Value) -> Result<Option<Change>, Failure> {
        let all = balancer::all_fronts(there).iter();
        let lost = all.filter(|front| balancer::front(left, name(front)).is_none());
        let lost: Vec<&str> = lost
            .filter(|front| balancer::may_be_linked(there, front))
            .map(id)
            .collect();
        if lost.is_empty() {
            return Ok(None);
        }
        private_link::leave(&self.all(&self.links)?, &lost, &self.cluster)
    }

    /// The next change towards the private link service that the Service requests at its IPv4 frontend: of the subnet first.
    pub(super) fn link_change(
        &self,
        wanted: &Wanted<'_>,
        fronts: &[&Value],
        tags: Map<String, Value>,
    ) -> Result<Option<Change>, Failure> {
        let mut families = wanted.fronts.iter().zip(fronts);
        let (Some(link), Some((_, front))) = (&wanted.asked.link, families.find(|(wanted, _)| !wanted.v6)) else {
            return Ok(None);
        };
        let config = &self.azure.config;
        let internal = wanted.asked.subnet.filter(|_| wanted.asked.internal);
        let subnet = link.subnet.or(internal).or(given(&config.subnet_name));
        let subnet = format!("{}/subnets/{}", self.network(), subnet.unwrap_or_default());
        let site = Site {
            path: &self.links,
            front: id(front),
            subnet: &subnet,
            location: &config.location,
            owner: &wanted.tag(),
            cluster: &self.cluster,
            tags,
        };
        let Some(change) = private_link::next(&self.all(&self.links)?, link, &site)? else {
            return Ok(None);
        };
        let subnet = self.azure.arm.get(&subnet, NETWORK, &[])?;
        Ok(Some(private_link::open(&subnet).unwrap_or(change)))
    }
}
