//! A route table as the cloud returns it. It is written back as a whole, so fields that are not known here are kept.

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use ipnet::IpNet;
use serde_json::{Value, json};

/// Between a Node's name and its Pod range where a Node has routes of both families, as upstream writes it.
const SEPARATOR: &str = "____";

/// The type of next hops that are addresses.
const BY_ADDRESS: &str = "VirtualAppliance";

/// A route table.
pub struct Table {
    /// All but the routes.
    rest: Value,
    routes: Vec<Value>,
}

fn text<'a>(route: &'a Value, key: &str) -> &'a str {
    let value = route.pointer("/properties").and_then(|properties| properties.get(key));
    value.and_then(Value::as_str).unwrap_or_default()
}

fn name(route: &Value) -> &str {
    route.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn is_by_address(route: &Value) -> bool {
    text(route, "nextHopType").eq_ignore_ascii_case(BY_ADDRESS)
}

impl Table {
    /// Of an answer, or a new one.
    pub fn new(mut value: Value) -> Self {
        let routes = value.pointer_mut("/properties/routes").map(Value::take);
        let routes = match routes {
            Some(Value::Array(routes)) => routes,
            _ => Vec::new(),
        };
        Self { rest: value, routes }
    }

    /// Its version.
    pub fn etag(&self) -> Option<String> {
        self.rest.get("etag").and_then(Value::as_str).map(str::to_owned)
    }

    /// As it is to be.
    pub fn into_value(mut self) -> Value {
        if let Some(table) = self.rest.as_object_mut() {
            let properties = table.entry("properties").or_insert_with(|| json!({}));
            if let Some(properties) = properties.as_object_mut() {
                properties.insert("routes".into(), self.routes.into());
            }
        }
        self.rest
    }

    /// The cluster's routes: those to addresses, into one of its ranges.
    pub fn owned(&self, ranges: &[IpNet], nodes: &[ClusterNode]) -> Vec<Route> {
        let ours = self.routes.iter().filter(|route| {
            let to = cidr::parse(text(route, "addressPrefix"));
            is_by_address(route) && to.is_ok_and(|to| ranges.iter().any(|range| range.contains(&to)))
        });
        ours.map(|route| shown(route, nodes)).collect()
    }

    /// Takes a route out; false where it is not there.
    pub fn remove(&mut self, gone: &Route) -> bool {
        let routes = &mut self.routes;
        let before = routes.len();
        let is_gone = |route: &Value| {
            name(route).eq_ignore_ascii_case(&gone.id) && same(text(route, "addressPrefix"), &gone.destination)
        };
        routes.retain(|route| !is_gone(route));
        routes.len() != before
    }

    /// Puts a route in; false where it is there.
    ///
    /// # Errors
    /// `failed-precondition` where the Node has no address of the family, `already-exists` where a foreign route leads the range elsewhere.
    pub fn add(&mut self, wanted: &NewRoute, dual_stack: bool) -> Result<bool, Failure> {
        let is_v6 = wanted.destination.contains(':');
        let internal = wanted
            .node
            .addresses
            .iter()
            .filter(|address| address.kind == AddressKind::InternalIp);
        let Some(hop) = internal
            .map(|address| address.value.as_str())
            .find(|ip| ip.contains(':') == is_v6)
        else {
            let (node, family) = (&wanted.node.name, if is_v6 { "IPv6" } else { "IPv4" });
            return Err(Failure::failed_precondition(format!(
                "Node {node} has no internal {family} address yet"
            )));
        };
        let name_of_it = route_name(&wanted.node.name, &wanted.destination, dual_stack);
        let routes = &mut self.routes;
        let same_range = |route: &&Value| same(text(route, "addressPrefix"), &wanted.destination);
        if let Some(route) = routes.iter().find(same_range) {
            if !is_by_address(route) {
                let (name, kind) = (name(route), text(route, "nextHopType"));
                return Err(Failure::already_exists(format!(
                    "the route {name} leads {} to {kind}; remove it from the route table",
                    wanted.destination
                )));
            }
            if text(route, "nextHopIpAddress") == hop {
                return Ok(false);
            }
        }
        // A former address of this Node, or a former Node of this range.
        routes.retain(|route| {
            !same(text(route, "addressPrefix"), &wanted.destination) && !name(route).eq_ignore_ascii_case(&name_of_it)
        });
        let properties =
            json!({ "addressPrefix": wanted.destination, "nextHopType": BY_ADDRESS, "nextHopIpAddress": hop });
        routes.push(json!({ "name": name_of_it, "properties": properties }));
        Ok(true)
    }
}

fn same(one: &str, other: &str) -> bool {
    match (cidr::parse(one), cidr::parse(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn route_name(node: &str, destination: &str, dual_stack: bool) -> String {
    if !dual_stack {
        return node.into();
    }
    format!("{node}{SEPARATOR}{}", destination.replace([':', '.', '/'], ""))
}

/// Whose it is follows from its name, as upstream gives it; else from its next hop.
fn shown(route: &Value, nodes: &[ClusterNode]) -> Route {
    let (name, hop) = (name(route), text(route, "nextHopIpAddress"));
    let of_name = name.split(SEPARATOR).next().unwrap_or(name);
    let named = nodes.iter().find(|node| node.ref_.name.eq_ignore_ascii_case(of_name));
    let has_hop = |node: &&ClusterNode| node.ref_.addresses.iter().any(|address| address.value == hop);
    let node = named.or_else(|| nodes.iter().find(has_hop));
    Route {
        id: name.into(),
        destination: text(route, "addressPrefix").into(),
        node: node.map(|node| node.ref_.name.clone()),
        next_hops: ip_address(AddressKind::InternalIp, hop).into_iter().collect(),
        blackhole: false,
    }
}
