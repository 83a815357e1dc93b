//! What comes next for a Service: reads the cloud and returns one change, until there is none.

mod group;
mod links;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::provider::default_balancer_name;
use serde_json::Value;

use super::address::{self, Address};
use super::annotations;
use super::balancer::{self, Place};
use super::json::{etag, id, items, name, reference, text};
use super::security;
use super::wanted::{self, Wanted};
use super::work::{Change, Turn};
use crate::Azure;
use crate::arm::NETWORK;
use crate::config::given;

/// What comes next.
pub enum Next {
    Change(Change),
    /// With this change all is done; the Service's addresses.
    Last(Change, Vec<String>),
    /// All is done; the Service's addresses.
    Done(Vec<String>),
}

/// One Service's load balancer.
pub struct Task<'a> {
    azure: &'a Azure,
    service: &'a Service,
    base: String,
    pub cluster: String,
    /// Path of the load balancers.
    balancers: String,
    /// Path of the public addresses.
    addresses: String,
    /// Path of the private link services.
    links: String,
}

/// The address of a frontend; none while it has none.
pub fn ip_of<'a>(front: &'a Value, addresses: &'a [Value]) -> Option<&'a str> {
    let public = reference(front, "publicIPAddress");
    let found = addresses.iter().find(|one| id(one).eq_ignore_ascii_case(public));
    let ip = found.map_or(text(front, "privateIPAddress"), |found| text(found, "ipAddress"));
    Some(ip).filter(|ip| !ip.is_empty())
}

/// Whether its last change failed: it is as it was written, but does not work so. Writing it again is what Azure advises.
fn has_failed(resource: &Value) -> bool {
    text(resource, "provisioningState").eq_ignore_ascii_case("Failed")
}

/// What is being changed, by a process that ended or by others, counts when that has ended.
fn settled(resource: &Value) -> Result<(), Failure> {
    if text(resource, "provisioningState").eq_ignore_ascii_case("Updating") {
        let text = format!("{} is being changed", name(resource));
        return Err(Failure::pending(super::SOON, "", text));
    }
    Ok(())
}

impl<'a> Task<'a> {
    pub fn new(azure: &'a Azure, service: &'a Service, address_group: Option<&str>) -> Self {
        let config = &azure.config;
        let own = given(&config.load_balancer_resource_group);
        let network = "providers/Microsoft.Network";
        // Also where other annotations are wrong.
        let link_group = service
            .annotation(&annotations::TABLE.key("pls-resource-group"))
            .map(str::trim_ascii);
        let link_group = link_group.filter(|group| !group.is_empty());
        let link_group = link_group.or(given(&config.private_link_service_resource_group));
        Self {
            base: default_balancer_name(service),
            cluster: azure.cluster_name(),
            balancers: format!("{}/{network}/loadBalancers", config.network_group(own)),
            addresses: format!(
                "{}/{network}/publicIPAddresses",
                config.network_group(address_group.or(own))
            ),
            links: format!("{}/{network}/privateLinkServices", config.network_group(link_group)),
            azure,
            service,
        }
    }

    /// The external and the internal one, where they are there.
    pub fn balancers(&self) -> Result<[Option<Value>; 2], Failure> {
        let mut found = [None, None];
        let names = [false, true].map(|internal| self.azure.balancer_name(internal));
        self.azure.arm.list(&self.balancers, NETWORK, &[], |one| {
            for (found, wanted) in found.iter_mut().zip(&names) {
                if name(&one).eq_ignore_ascii_case(wanted) {
                    *found = Some(one.clone());
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// All public addresses of the group.
    pub fn addresses(&self) -> Result<Vec<Value>, Failure> {
        self.all(&self.addresses)
    }

    fn all(&self, path: &str) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        self.azure.arm.list(path, NETWORK, &[], |one| {
            all.push(one);
            Ok(())
        })?;
        Ok(all)
    }

    fn network(&self) -> String {
        let config = &self.azure.config;
        let group = config.network_group(given(&config.vnet_resource_group));
        let name = given(&config.vnet_name).unwrap_or_default();
        format!("{group}/providers/Microsoft.Network/virtualNetworks/{name}")
    }

    /// The next change towards what the Service requests; its addresses when there is none. The security group is not read where it is right (`group_done`).
    ///
    /// # Errors
    /// The cloud's error; `failed-precondition` where something is missing that others make.
    pub fn next(&self, wanted: &Wanted<'_>, group_done: bool) -> Result<Next, Failure> {
        let (config, internal) = (&self.azure.config, wanted.asked.internal);
        let tags = config.all_tags();
        let addresses = self.addresses()?;
        let (mut ids, mut ips) = (Vec::new(), Vec::new());
        for front in wanted.fronts.iter().filter(|_| !internal) {
            match address::of(&addresses, wanted, front, &self.addresses, &config.location, &tags)? {
                Address::Change(change) => return Ok(Next::Change(change)),
                Address::There(id, ip) => {
                    ids.push(id);
                    ips.push(ip);
                }
            }
        }
        let found = self.balancers()?;
        let network = self.network();
        let subnet = wanted.asked.subnet.or(given(&config.subnet_name)).unwrap_or_default();
        let path = format!("{}/{}", self.balancers, self.azure.balancer_name(internal));
        let there = found[usize::from(internal)].as_ref();
        let mut own = there.cloned().unwrap_or_else(|| balancer::empty(&config.location));
        let place = Place {
            path: there.map_or(path.as_str(), |there| id(there)).into(),
            subnet: format!("{network}/subnets/{subnet}"),
            network,
        };
        let (served, fronts) = balancer::serve(&mut own, wanted, &ids, &place)?;
        if let Some(change) = there.map(|there| self.unlink(there, &own)).transpose()?.flatten() {
            return Ok(Next::Change(change));
        }
        if served | balancer::add_tags(&mut own, &tags) | has_failed(&own) {
            let etag = there.map(|there| etag(there).to_owned());
            let (path, body) = (place.path, own);
            return Ok(Next::Change(Change::Put { path, body, etag }));
        }
        settled(&own)?;
        let fronts: Vec<&Value> = fronts.iter().filter_map(|shown| balancer::front(&own, shown)).collect();
        if internal {
            let shown = fronts.iter().map(|front| ip_of(front, &addresses).map(str::to_owned));
            let Some(shown) = shown.collect() else {
                return Err(Failure::pending(super::SOON, "", "the frontend has no address yet"));
            };
            ips = shown;
        }
        let mut left = self.link_change(wanted, &fronts, tags)?;
        if left.is_none() {
            left = self.leave(found[usize::from(!internal)].as_ref())?;
        }
        let left = match left {
            Some(change) => Some(Next::Change(change)),
            None => self.drop_address(&addresses, &ids, &ips),
        };
        let rules = security::rules(wanted, &ips);
        if !group_done && let Some(change) = self.group_change(&found, &addresses, &rules, &ips)? {
            return Ok(match left {
                Some(_) => Next::Change(change),
                None => Next::Last(change, ips),
            });
        }
        Ok(left.unwrap_or(Next::Done(ips)))
    }

    /// The next change towards addresses of which only these name the Service, where others do.
    fn drop_address(&self, addresses: &[Value], kept: &[String], ips: &[String]) -> Option<Next> {
        let (tag, mut kept) = (wanted::tag(self.service), kept.to_vec());
        let (change, address) = address::unused(addresses, &tag, &self.cluster, &kept)?;
        kept.push(address.into());
        Some(match address::unused(addresses, &tag, &self.cluster, &kept) {
            Some(_) => Next::Change(change),
            None => Next::Last(change, ips.to_vec()),
        })
    }

    /// The next change towards nothing of the Service: the security group first, the address, which the load balancer uses, last.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn next_deletion(&self, group_done: bool) -> Result<Next, Failure> {
        let found = self.balancers()?;
        if !group_done && let Some(change) = self.group_change(&found, &self.addresses()?, &[], &[])? {
            return Ok(Next::Change(change));
        }
        for one in found.iter().flatten() {
            if let Some(change) = self.leave(Some(one))? {
                return Ok(Next::Change(change));
            }
        }
        let last = self.drop_address(&self.addresses()?, &[], &[]);
        Ok(last.unwrap_or(Next::Done(Vec::new())))
    }

    /// The change of pools of a load balancer, made at once.
    ///
    /// # Errors
    /// `pending` while it runs; the cloud's error.
    pub fn fill_pools(&self, found: &Value, targets: &[Target], turn: &Turn) -> Result<(), Failure> {
        let mut filled = found.clone();
        let mut changed = false;
        for v6 in [false, true] {
            let pool = wanted::pool(&self.cluster, v6);
            let there = items(found, "backendAddressPools").iter();
            if there.map(name).any(|one| one.eq_ignore_ascii_case(&pool)) {
                let nodes = wanted::nodes_of(targets, v6);
                changed |= balancer::fill_pool(&mut filled, &pool, &nodes, &self.network())?;
            }
        }
        if changed {
            self.azure.make(Change::put(filled), turn, None)?;
        }
        Ok(())
    }

    /// The change of a load balancer that takes the Service out; of what is at its frontends before.
    fn leave(&self, there: Option<&Value>) -> Result<Option<Change>, Failure> {
        let Some(there) = there else { return Ok(None) };
        let mut left = there.clone();
        if !balancer::leave(&mut left, &self.base) {
            return Ok(None);
        }
        if let Some(change) = self.unlink(there, &left)? {
            return Ok(Some(change));
        }
        Ok(Some(if balancer::is_bare(&mut left) {
            Change::Delete {
                path: id(&left).into(),
                etag: etag(&left).into(),
            }
        } else {
            Change::put(left)
        }))
    }
}
