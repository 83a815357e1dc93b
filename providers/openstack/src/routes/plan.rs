//! Which of a router's routes are the cluster's, and which route a Node gets. Pure.

use std::net::IpAddr;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use ipnet::IpNet;

use crate::routes::routers::Hop;

/// The separator of destination and next hop in the id of a route: Neutron gives routes none.
const VIA: &str = " via ";

/// A route of the cluster, and the Node that it leads to.
pub type Owned<'a> = (&'a Hop, Option<&'a str>);

/// The routes that lie in the cluster's ranges, each with the Node that has the address of its next hop.
pub fn owned<'a>(hops: &'a [Hop], ranges: &[IpNet], nodes: &'a [ClusterNode]) -> Vec<Owned<'a>> {
    let within = |hop: &&Hop| {
        cidr::parse(&hop.destination).is_ok_and(|network| ranges.iter().any(|range| range.contains(&network)))
    };
    let owner = |hop: &Hop| {
        let ip: Option<IpAddr> = hop.nexthop.parse().ok();
        let has = |node: &&ClusterNode| {
            let mut addresses = node.ref_.addresses.iter();
            addresses.any(|address| address.value.parse().ok() == ip && ip.is_some())
        };
        nodes.iter().find(has).map(|node| node.ref_.name.as_str())
    };
    hops.iter().filter(within).map(|hop| (hop, owner(hop))).collect()
}

/// What is reported to the controller of a route. One whose next hop is no Node's leads nowhere.
pub fn route((hop, node): &Owned<'_>) -> Route {
    Route {
        id: format!("{}{VIA}{}", hop.destination, hop.nexthop),
        destination: hop.destination.clone(),
        node: node.map(String::from),
        next_hops: vec![Address::new(AddressKind::InternalIp, hop.nexthop.as_str())],
        blackhole: node.is_none(),
    }
}

/// The route of an id that [`route`] gave.
///
/// # Errors
/// `invalid` when it is none.
pub fn hop(route: &Route) -> Result<Hop, Failure> {
    match route.id.split_once(VIA) {
        Some((destination, nexthop)) => Ok(Hop {
            destination: destination.into(),
            nexthop: nexthop.into(),
        }),
        None => Err(Failure::invalid(format!("\"{}\" is no id of a route", route.id))),
    }
}

/// The route that a Node gets: by its first internal address of the destination's family.
///
/// # Errors
/// `invalid` when it has none, or the destination is no CIDR.
pub fn wanted(route: &NewRoute) -> Result<Hop, Failure> {
    let destination = cidr::parse(&route.destination)?;
    let mut addresses = route.node.addresses.iter();
    let nexthop = addresses.find(|address| {
        let ip: Option<IpAddr> = address.value.parse().ok();
        address.kind == AddressKind::InternalIp && ip.is_some_and(|ip| ip.is_ipv4() == destination.addr().is_ipv4())
    });
    let family = if destination.addr().is_ipv4() { "IPv4" } else { "IPv6" };
    match nexthop {
        Some(nexthop) => Ok(Hop {
            destination: destination.to_string(),
            nexthop: nexthop.value.clone(),
        }),
        None => Err(Failure::invalid(format!(
            "Node {} has no internal {family} address",
            route.node.name
        ))),
    }
}
