//! Whose a load balancer and its listeners are. Several Services can share one; each is named in its tags and in those of its
//! listeners. Pure.

use cloudwit_guest_sdk::prelude::*;

use crate::balancers::names::{PREFIX, is_former};
use crate::balancers::octavia::{Listener, LoadBalancer};
use crate::balancers::wanted::WantedPort;

/// What a Service is to a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    /// The Service's name for it, and its tag.
    pub name: String,
    /// The same under the cluster's former name, when this load balancer still has that.
    pub former: Option<String>,
    /// Whether it was made for this Service, so that what has no tag is this Service's.
    pub owner: bool,
}

impl Claim {
    /// What the Service is to this load balancer. `served`: the load balancer has served this Service before, so that a former name
    /// of the same Service is its own and not that of a namesake in another cluster that shares it.
    pub fn new(name: &str, service: &Service, balancer: &LoadBalancer, served: bool) -> Self {
        let names = || std::iter::once(&balancer.name).chain(&balancer.tags);
        let former = names()
            .find(|other| is_former(other, name, service))
            .filter(|_| served)
            .cloned();
        let former = former.filter(|_| !balancer.tags.iter().any(|tag| tag == name));
        let legacy = cloudwit_guest_sdk::names::default_load_balancer_name(&service.uid);
        let owner = balancer.name == name || balancer.name == legacy || former.as_ref() == Some(&balancer.name);
        Self {
            name: name.into(),
            former,
            owner,
        }
    }

    /// Whether something with these tags is this Service's.
    pub fn holds(&self, tags: &[String]) -> bool {
        (self.owner && tags.is_empty()) || tags.iter().any(|tag| self.is_mine(tag))
    }

    /// The tags with this Service's among them; none when they are right.
    pub fn with_tag(&self, tags: &[String]) -> Option<Vec<String>> {
        if tags.contains(&self.name) {
            return None;
        }
        let mut tags = self.without_tag(tags);
        tags.push(self.name.clone());
        Some(tags)
    }

    /// The tags without this Service's.
    pub fn without_tag(&self, tags: &[String]) -> Vec<String> {
        tags.iter().filter(|tag| !self.is_mine(tag)).cloned().collect()
    }

    /// Other Services that use the load balancer.
    pub fn others<'t>(&self, tags: &'t [String]) -> Vec<&'t str> {
        tags.iter()
            .filter(|tag| tag.starts_with(PREFIX) && !self.is_mine(tag))
            .map(String::as_str)
            .collect()
    }

    /// Whether the load balancer goes with this Service: it was made for a Service, and no other one uses it.
    pub fn takes_it_along(&self, balancer: &LoadBalancer) -> bool {
        (self.owner || balancer.name.starts_with(PREFIX)) && self.others(&balancer.tags).is_empty()
    }

    /// The name of a part under the cluster's present name; none when it is right.
    pub fn renamed(&self, part: &str) -> Option<String> {
        let former = self.former.as_deref()?;
        Some(format!("{}{}", part.strip_suffix(former)?, self.name))
    }

    fn is_mine(&self, tag: &str) -> bool {
        tag == self.name || self.former.as_deref() == Some(tag)
    }
}

/// Whether the Service may use a load balancer that was made for another one.
///
/// # Errors
/// `invalid`, with the reason.
pub fn check(claim: &Claim, balancer: &LoadBalancer, internal: bool, tags: bool, most: u32) -> Result<(), Failure> {
    let others = claim.others(&balancer.tags);
    let known = claim.owner || balancer.tags.iter().any(|tag| claim.is_mine(tag));
    let why = if internal && !(known && others.is_empty()) {
        // Its floating IP is the address of the others.
        "an internal Service cannot share a load balancer; remove one of the two annotations".into()
    } else if known {
        return Ok(());
    } else if !tags {
        "this Octavia has no tags, without which load balancers cannot be shared".into()
    } else if others.len() >= most as usize {
        let (count, most) = (others.len().to_string(), most.to_string());
        format!(
            "it is shared by {count} Services already ({}) and max-shared-lb is {most}",
            others.join(", ")
        )
    } else {
        return Ok(());
    };
    Err(Failure::invalid(format!(
        "load balancer {} cannot be used: {why}",
        balancer.id
    )))
}

/// Ports of the Service that collide with listeners of others, all in one message.
///
/// # Errors
/// `invalid`, naming ports and owners.
pub fn check_ports(claim: &Claim, wanted: &[WantedPort<'_>], listeners: &[Listener]) -> Result<(), Failure> {
    let mut taken = Vec::new();
    for listener in listeners.iter().filter(|listener| !claim.holds(&listener.tags)) {
        let hit = |port: &WantedPort<'_>| {
            port.port == listener.port && transport(port.protocol) == transport(&listener.protocol)
        };
        if wanted.iter().any(hit) {
            let owner = listener
                .tags
                .iter()
                .find(|tag| tag.starts_with(PREFIX))
                .map_or("somebody else", String::as_str);
            taken.push(format!(
                "{} port {} is listener {} of {owner}",
                listener.protocol, listener.port, listener.id
            ));
        }
    }
    if taken.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "the load balancer's ports are taken: {}",
        taken.join("; ")
    )))
}

/// What a port number is unique for.
pub fn transport(protocol: &str) -> &str {
    match protocol {
        "UDP" | "SCTP" => protocol,
        _ => "TCP",
    }
}

#[cfg(test)]
mod tests;
