//! Public addresses: which one a load balancer gets, and whose it is. Pure.

use cloudwit_guest_sdk::prelude::*;

use super::seen::{Address, NAMED_TAG, Network, Rule, SERVICE_TAG};
use crate::api::Call;

/// Where the load balancer's address comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// It is there.
    Use(&'a Address),
    /// It has to be associated: this one that is free, or any.
    Associate(Option<&'a str>),
}

/// The address for a Service.
///
/// # Errors
/// `invalid` for one that the cloud does not have, or that is no load balancer's.
pub fn choose<'a>(
    ip: Option<&'a str>,
    uid: &str,
    rules: &[Rule],
    addresses: &'a [Address],
) -> Result<Choice<'a>, Failure> {
    if let Some(ip) = ip {
        let Some(address) = addresses.iter().find(|address| address.ipaddress == ip) else {
            return Err(Failure::invalid(format!(
                "spec.loadBalancerIP is {ip}, which is no public address of the cloud for this project"
            )));
        };
        if address.isstaticnat {
            return Err(Failure::invalid(format!(
                "spec.loadBalancerIP is {ip}, which is used for static NAT"
            )));
        }
        return Ok(match address.is_allocated() {
            true => Choice::Use(address),
            false => Choice::Associate(Some(ip)),
        });
    }
    let of_rule = rules
        .iter()
        .find_map(|rule| addresses.iter().find(|address| address.id == rule.publicipid));
    let own = of_rule.or_else(|| {
        addresses
            .iter()
            .find(|address| address.is_for(uid) && address.is_allocated())
    });
    Ok(own.map_or(Choice::Associate(None), Choice::Use))
}

/// Whether the address is released with the Service: by the annotation, else as upstream has it: one that the Service named is the user's, unless it was
/// free, and others are its own. That of another Service never is.
pub fn is_own(address: &Address, uid: &str, ip: Option<&str>, associated: Option<bool>) -> bool {
    if address.issourcenat || (address.is_marked() && !address.is_for(uid)) {
        return false;
    }
    let named = ip == Some(address.ipaddress.as_str());
    associated.unwrap_or(!named || address.was_named())
}

/// The annotation's value for the address, where it has none yet: only those that the Service named need it.
pub fn association(address: &Address, uid: &str, ip: Option<&str>) -> Option<bool> {
    (ip == Some(address.ipaddress.as_str())).then(|| address.is_for(uid) && address.was_named())
}

/// Associates one.
pub fn associate(network: &Network, ip: Option<&str>, project: Option<&str>) -> Call {
    let call = Call::new("associateIpAddress");
    // An address of a VPC belongs to all of its networks.
    let call = match network.vpcid.as_deref().filter(|id| !id.is_empty()) {
        Some(vpc) => call.field("vpcid", vpc),
        None => call.field("networkid", &network.id),
    };
    call.opt("ipaddress", ip).opt("projectid", project)
}

/// Marks one as the Service's, so that it is found when there is no rule for it.
pub fn mark(address: &str, uid: &str, named: bool) -> Call {
    let call = Call::new("createTags")
        .field("resourceids", address)
        .field("resourcetype", "PublicIpAddress")
        .field("tags[0].key", SERVICE_TAG)
        .field("tags[0].value", uid);
    match named {
        true => call.field("tags[1].key", NAMED_TAG).field("tags[1].value", "named"),
        false => call,
    }
}
