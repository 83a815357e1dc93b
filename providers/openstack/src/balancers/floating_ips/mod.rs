//! Floating IPs: which one a load balancer has, where a new one comes from, and which may be deleted.

pub mod pattern;
pub mod subnet_filter;

use std::net::IpAddr;

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::Endpoint as Place;
use crate::api::wire::{Fields, Object, Read};
use crate::balancers::annotations::table::{BALANCER_ADDRESS, TABLE};
use crate::balancers::change::Change;
use crate::balancers::floating_ips::subnet_filter::{Subnet, fitting};
use crate::balancers::names::{FLOATING_IP_MARK, floating_ip as description};
use crate::balancers::octavia::LoadBalancer;
use crate::balancers::sharing::Claim;
use crate::balancers::task::BalancerTask;
use crate::balancers::wanted::family;

/// A floating IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FloatingIp {
    id: String,
    address: String,
    /// Empty while it is free.
    port_id: String,
    description: String,
}

impl FloatingIp {
    fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            address: json.need("floating_ip_address")?,
            port_id: json.text_or_empty("port_id"),
            description: json.text_or_empty("description"),
        })
    }

    /// Whether a provider made it for a Service. Others belong to users.
    fn is_ours(&self) -> bool {
        self.description.starts_with(FLOATING_IP_MARK)
    }

    fn attach(&self, port: Option<&str>, doing: &'static str) -> Change {
        let body = match port {
            Some(port) => Object::new().text("port_id", port),
            None => Object::new().null("port_id"),
        };
        Change::network(
            "PUT",
            &format!("floatingips/{}", self.id),
            Some(Object::new().object("floatingip", body)),
            doing,
        )
    }

    fn delete(&self) -> Change {
        Change::network(
            "DELETE",
            &format!("floatingips/{}", self.id),
            None,
            "deleting the floating IP",
        )
    }
}

/// Where a new floating IP comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    network_id: String,
    /// Subnets to try one after the other; none leaves it to Neutron.
    subnets: Vec<Option<String>>,
}

impl BalancerTask<'_> {
    /// Whether the load balancer has no floating IP: the Service is internal, or its virtual IP is an IPv6 one.
    pub(crate) fn is_internal(&self) -> bool {
        self.asked.internal || family(self.service) == Some(IpFamily::Ipv6)
    }

    /// The address that clients use, which is made if it has to be.
    pub(crate) fn ensure_address(&self, balancer: &LoadBalancer, claim: &Claim) -> Result<String, Failure> {
        if family(self.service) == Some(IpFamily::Ipv6) {
            return Ok(balancer.vip_address.clone());
        }
        let there = self.floating_ip_of(balancer)?;
        if self.asked.internal {
            // It was external before. Another Service's stays.
            if let Some(there) = there.filter(|_| claim.owner) {
                self.change(self.goodbye(&there))?;
            }
            return Ok(balancer.vip_address.clone());
        }
        if let Some(there) = there {
            return Ok(there.address);
        }
        if let Some(free) = self.free_floating_ip()? {
            self.change(free.attach(Some(&balancer.vip_port_id), "attaching the floating IP"))?;
            return Ok(free.address);
        }
        let Some(origin) = self.floating_origin()? else {
            let text = "there is no external network for a floating IP, so the load balancer is internal; set floating-network-id";
            self.context
                .service_event(EventKind::Warning, "LoadBalancerForcedInternal", text);
            return Ok(balancer.vip_address.clone());
        };
        self.create_floating_ip(&origin, &balancer.vip_port_id)
    }

    /// Finds out whether there can be a floating IP, before anything is made.
    pub(crate) fn check_floating_ip(&self) -> Result<(), Failure> {
        if self.is_internal() || self.free_floating_ip()?.is_some() {
            return Ok(());
        }
        self.floating_origin().map(drop)
    }

    /// Takes the floating IP away before its load balancer goes; after that nothing would lead to it.
    pub(crate) fn remove_floating_ip(&self, balancer: &LoadBalancer) -> Result<(), Failure> {
        if self.asked.keep_floating_ip {
            return Ok(());
        }
        match self.floating_ip_of(balancer)? {
            Some(there) if there.is_ours() => self.change(there.delete()),
            _ => Ok(()),
        }
    }

    /// Removes the floating IP of a load balancer that was deleted from outside.
    pub(crate) fn remove_orphan(&self) -> Result<(), Failure> {
        if self.asked.keep_floating_ip {
            return Ok(());
        }
        match self.orphan()? {
            Some(orphan) => self.change(orphan.delete()),
            None => Ok(()),
        }
    }

    /// The floating IP of the load balancer's virtual IP.
    pub(crate) fn floating_ip_of(&self, balancer: &LoadBalancer) -> Result<Option<FloatingIp>, Failure> {
        if balancer.vip_port_id.is_empty() {
            return Ok(None);
        }
        Ok(self.floating_ips("port_id", &balancer.vip_port_id)?.into_iter().next())
    }

    /// Where clients reach a load balancer in its current state.
    pub(crate) fn address_of(&self, balancer: &LoadBalancer) -> Result<String, Failure> {
        let floating = self.floating_ip_of(balancer)?;
        Ok(floating.map_or_else(|| balancer.vip_address.clone(), |floating| floating.address))
    }

    fn floating_ips(&self, key: &str, value: &str) -> Result<Vec<FloatingIp>, Failure> {
        let call = self.api.get(Place::Network, "/v2.0/floatingips").query(key, value);
        self.api.list(call, "floatingips", FloatingIp::read)
    }

    /// Deletes Cloudwit's, unless it is to be kept; disassociates others.
    fn goodbye(&self, floating: &FloatingIp) -> Change {
        if floating.is_ours() && !self.asked.keep_floating_ip {
            floating.delete()
        } else {
            floating.attach(None, "detaching the floating IP")
        }
    }

    /// A floating IP that exists and is meant for this Service: that of spec.loadBalancerIP, or the one it had when its load balancer was
    /// deleted from outside.
    fn free_floating_ip(&self) -> Result<Option<FloatingIp>, Failure> {
        let Some(asked) = &self.service.load_balancer_ip else {
            return self.orphan();
        };
        let found = self.floating_ips("floating_ip_address", asked)?;
        if let Some(free) = found.iter().find(|floating| floating.port_id.is_empty()) {
            return Ok(Some(free.clone()));
        }
        match found.first() {
            None => Ok(None),
            Some(taken) => Err(Failure::invalid(format!(
                "spec.loadBalancerIP {asked} is a floating IP that port {} uses already; choose another",
                taken.port_id
            ))),
        }
    }

    fn orphan(&self) -> Result<Option<FloatingIp>, Failure> {
        let Some(address) = recorded_address(self.service) else {
            return Ok(None);
        };
        let description = description(&self.cluster, self.service);
        let found = self.floating_ips("floating_ip_address", address)?;
        Ok(found
            .into_iter()
            .find(|floating| floating.port_id.is_empty() && floating.description == description))
    }

    fn create_floating_ip(&self, origin: &Origin, port: &str) -> Result<String, Failure> {
        let mut last = Failure::other("there is no subnet to take a floating IP from");
        for subnet in &origin.subnets {
            let body = Object::new()
                .text("floating_network_id", &origin.network_id)
                .text("port_id", port)
                .text("description", &description(&self.cluster, self.service))
                .text_opt("subnet_id", subnet.as_deref())
                .text_opt("floating_ip_address", self.service.load_balancer_ip.as_deref());
            let body = Object::new().object("floatingip", body);
            let change = Change::network("POST", "floatingips", Some(body), "making a floating IP");
            match self.make(change) {
                Ok(address) => return Ok(address),
                // This subnet has no address left, or may not be used: there may be another one.
                Err(
                    failure @ Failure {
                        kind: FailureKind::Conflict | FailureKind::Invalid,
                        ..
                    },
                ) => last = failure,
                Err(failure) => return Err(failure),
            }
        }
        Err(last)
    }

    fn make(&self, change: Change) -> Result<String, Failure> {
        let answer = change.make(self.api)?;
        let text = answer.as_ref().map(Response::text).unwrap_or_default();
        crate::api::wire::parse(&text)
            .and_then(|json| json.need_field("floatingip")?.need("floating_ip_address"))
            .map_err(|wrong| Failure::unavailable(format!("making a floating IP: the answer cannot be read: {wrong}")))
    }

    /// Where a new floating IP would come from; none when there is no external network.
    fn floating_origin(&self) -> Result<Option<Origin>, Failure> {
        let source = &self.asked.floating;
        let network = match source.network_id {
            Some(id) => Some(id.into()),
            None => self.external_network()?,
        };
        let Some(network_id) = network else {
            return Ok(None);
        };
        if let Some(id) = source.subnet_id {
            let wrong = |why: &str| Failure::invalid(format!("floating-subnet-id: {id}{why}{network_id}"));
            let subnet = self
                .subnet(id)?
                .ok_or_else(|| wrong(" does not exist in external network "))?;
            if subnet.network_id != network_id {
                return Err(wrong(" is not a subnet of external network "));
            }
        }
        let by_hand = self.service.load_balancer_ip.is_some() || source.subnet_id.is_some();
        let subnets = if by_hand || (source.subnet.is_none() && source.subnet_tags.is_none()) {
            vec![source.subnet_id.map(String::from)]
        } else {
            let call = self
                .api
                .get(Place::Network, "/v2.0/subnets")
                .query("network_id", &network_id);
            let subnets = fitting(source, self.api.list(call, "subnets", Subnet::read)?)?;
            subnets.into_iter().map(|subnet| Some(subnet.id)).collect()
        };
        if subnets.is_empty() {
            let text = "no subnet fits floating-subnet or floating-subnet-tags in external network ";
            return Err(Failure::invalid(format!("{text}{network_id}")));
        }
        Ok(Some(Origin { network_id, subnets }))
    }

    /// The first external network with an IPv4 subnet.
    fn external_network(&self) -> Result<Option<String>, Failure> {
        let call = self
            .api
            .get(Place::Network, "/v2.0/networks")
            .query("router:external", "true");
        for network in self.api.list(call, "networks", |json| json.need("id"))? {
            let call = self
                .api
                .get(Place::Network, "/v2.0/subnets")
                .query("network_id", &network);
            if !self
                .api
                .list(call.query("ip_version", "4"), "subnets", Subnet::read)?
                .is_empty()
            {
                return Ok(Some(network));
            }
        }
        Ok(None)
    }

    /// A subnet.
    pub(crate) fn subnet(&self, id: &str) -> Result<Option<Subnet>, Failure> {
        let call = self.api.get(Place::Network, &format!("/v2.0/subnets/{id}"));
        call.read_optional(|json| Subnet::read(json.need_field("subnet")?))
    }
}

/// The address that was published for the Service.
pub fn recorded_address(service: &Service) -> Option<&str> {
    let published = service.ingress.iter().find_map(|ingress| match &ingress.endpoint {
        Endpoint::Ip((address, _)) => Some(address.as_str()),
        Endpoint::Hostname(_) => None,
    });
    let written = service
        .annotations
        .iter()
        .find(|pair| pair.key == TABLE.key(BALANCER_ADDRESS));
    written
        .map(|pair| pair.value.as_str())
        .or(published)
        .filter(|address| address.parse::<IpAddr>().is_ok())
}
