//! Which routes of a table are the cluster's, and how to get a desired route. Pure.
//!
//! A table may hold much more than routes to Nodes: gateways, peerings, a NAT instance. Only routes to instances are ever listed, and
//! only such a route is ever deleted, whatever is requested.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;
use ipnet::IpNet;

use crate::tags::ec2_tags;

/// A route table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// `rtb-…`.
    pub id: String,
    /// Tags.
    pub tags: Vec<Pair>,
    /// What is in it, but for routes to prefix lists.
    pub routes: Vec<TableRoute>,
}

/// A route in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRoute {
    /// As AWS writes it, which is how AWS expects it back.
    pub destination: String,
    /// The same, to compare.
    pub network: IpNet,
    /// What it leads to.
    pub hop: Hop,
    /// Whether that is gone.
    pub blackhole: bool,
}

/// What a route leads to.
#[derive(Debug, Clone, PartialEq)]
pub enum Hop {
    /// An instance.
    Instance(String),
    /// A network interface without an instance: one that is gone, if it is a black hole.
    Interface,
    /// A gateway or anything else that no Node is.
    Other,
}

impl Table {
    /// Reads `routeTableSet/item`.
    pub fn read(table: &Element) -> Self {
        let routes = table.child("routeSet").into_iter().flat_map(|set| set.children("item"));
        Self {
            id: table.text("routeTableId").unwrap_or_default().into(),
            tags: ec2_tags(table),
            routes: routes.filter_map(TableRoute::read).collect(),
        }
    }

    /// The route to this network.
    pub fn route_to(&self, network: IpNet) -> Option<&TableRoute> {
        self.routes.iter().find(|route| route.network == network)
    }
}

impl TableRoute {
    fn read(route: &Element) -> Option<Self> {
        let text = |name| route.text(name).filter(|text| !text.is_empty());
        let destination = text("destinationCidrBlock").or_else(|| text("destinationIpv6CidrBlock"))?;
        let hop = match (text("instanceId"), text("networkInterfaceId")) {
            (Some(id), _) => Hop::Instance(id.into()),
            (None, Some(_)) => Hop::Interface,
            (None, None) => Hop::Other,
        };
        Some(Self {
            destination: destination.into(),
            network: cidr::parse(destination).ok()?,
            hop,
            blackhole: text("state") == Some("blackhole"),
        })
    }

    /// Whether it led to a machine that is gone.
    pub fn is_dead(&self) -> bool {
        self.blackhole && self.hop != Hop::Other
    }
}

/// How to get a desired route.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// It is there.
    Nothing,
    /// It has to be made.
    Create,
    /// A dead route is in the way.
    Replace(String),
}

/// What the route to this network by this instance takes. A live route to anything else is left for AWS to refuse: whose it is, is
/// decided where routes are listed.
pub fn creation(table: &Table, network: IpNet, instance: &str) -> Step {
    match table.route_to(network) {
        Some(route) if route.is_dead() => Step::Replace(route.destination.clone()),
        Some(route) if !route.blackhole && route.hop == Hop::Instance(instance.into()) => Step::Nothing,
        _ => Step::Create,
    }
}

/// The destination to delete; none when there is nothing any more.
///
/// # Errors
/// `conflict` when the route leads to something else than a machine by now.
pub fn deletion(table: &Table, network: IpNet) -> Result<Option<String>, Failure> {
    match table.route_to(network) {
        None => Ok(None),
        Some(route) if matches!(route.hop, Hop::Instance(_)) || route.is_dead() => Ok(Some(route.destination.clone())),
        Some(route) => {
            let text = [
                "the route to ",
                &route.destination,
                " in ",
                &table.id,
                " leads to no instance any more; it is left alone",
            ];
            Err(Failure::conflict(text.concat()))
        }
    }
}

#[cfg(test)]
mod tests;
