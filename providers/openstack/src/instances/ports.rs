//! Ports as Neutron returns them: what is read of one, and the calls that list them.
//!
//! Filters name many values at once, so the ports of many servers take few requests.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::wire::{Fields, Read};
use crate::api::{Api, Call, Endpoint};
use crate::instances::servers::{self, Place};

/// Ports in a page; Neutron may give fewer.
const PAGE: &str = "1000";

/// Values in one filter: a URL of a few kilobytes, which every proxy takes.
const VALUES: usize = 50;

/// What is read of every port.
const FIELDS: [&str; 6] = ["id", "device_id", "status", "network_id", "fixed_ips", "trunk_details"];

/// What is read of a port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Port {
    /// Id.
    pub id: String,
    /// The server it belongs to.
    pub device_id: String,
    /// The network it is in.
    pub network_id: String,
    /// Whether its status is `ACTIVE`.
    pub active: bool,
    /// Its addresses, in Neutron's order.
    pub ips: Vec<String>,
    /// Ids of the subports of its trunk.
    pub subports: Vec<String>,
}

impl Port {
    fn read(json: &Value) -> Read<Self> {
        let subports = json
            .field("trunk_details")
            .map(|trunk| trunk.items("sub_ports"))
            .unwrap_or_default();
        Ok(Self {
            id: json.need("id")?,
            device_id: json.text_or_empty("device_id"),
            network_id: json.text_or_empty("network_id"),
            active: json.text("status") == Some("ACTIVE"),
            ips: json
                .items("fixed_ips")
                .iter()
                .filter_map(|ip| ip.text("ip_address"))
                .map(String::from)
                .collect(),
            subports: subports
                .iter()
                .filter_map(|port| port.text("port_id"))
                .map(String::from)
                .collect(),
        })
    }
}

/// The ports of these servers, in Neutron's order. Many servers are not named one by one: all ports of the project are read instead.
pub fn of_servers(api: &Api, ids: &[&str]) -> Result<Vec<Port>, Failure> {
    if ids.len() <= VALUES {
        return filtered(api, "device_id", ids);
    }
    let mut wanted = ids.to_vec();
    wanted.sort();
    let mut ports = Vec::new();
    let call = fields(api.get(Endpoint::Network, "/v2.0/ports")).query("limit", PAGE);
    api.pages(call, "ports", &mut |json| {
        let device = json.text("device_id").unwrap_or_default();
        if wanted.binary_search(&device).is_ok() {
            ports.push(Port::read(json)?);
        }
        Ok(())
    })?;
    Ok(ports)
}

/// The ports with one of these values.
fn filtered(api: &Api, key: &str, values: &[&str]) -> Result<Vec<Port>, Failure> {
    let mut ports = Vec::new();
    for values in values.chunks(VALUES) {
        let call = fields(named(api.get(Endpoint::Network, "/v2.0/ports"), key, values));
        ports.extend(api.list(call.query("limit", PAGE), "ports", Port::read)?);
    }
    Ok(ports)
}

/// The addresses that a server has by subports of trunks, for each of its ports that has some.
pub fn trunk_places(api: &Api, ports: &[Port]) -> Result<Vec<(String, Place)>, Failure> {
    let wanted: Vec<&str> = ports
        .iter()
        .flat_map(|port| &port.subports)
        .map(String::as_str)
        .collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let subports = filtered(api, "id", &wanted)?;
    let mut networks: Vec<&str> = subports.iter().map(|port| port.network_id.as_str()).collect();
    networks.sort();
    networks.dedup();
    let mut names: Vec<(String, String)> = Vec::new();
    for ids in networks.chunks(VALUES) {
        let call = named(api.get(Endpoint::Network, "/v2.0/networks"), "id", ids);
        let call = call.query("fields", "id").query("fields", "name");
        names.extend(servers::named(api, call, "networks")?);
    }
    let mut places = Vec::new();
    for parent in ports {
        for id in &parent.subports {
            let Some(subport) = subports.iter().find(|port| port.id == *id) else {
                continue;
            };
            let Some((network, _)) = names.iter().find(|(_, id)| *id == subport.network_id) else {
                continue;
            };
            places.extend(subport.ips.iter().map(|ip| {
                let place = Place {
                    network: network.clone(),
                    ip: ip.clone(),
                    floating: false,
                };
                (parent.device_id.clone(), place)
            }));
        }
    }
    Ok(places)
}

fn fields(call: Call<'_>) -> Call<'_> {
    FIELDS.iter().fold(call, |call, field| call.query("fields", field))
}

/// Several values of one filter mean one or the other.
pub fn named<'a>(call: Call<'a>, key: &str, values: &[&str]) -> Call<'a> {
    values.iter().fold(call, |call, value| call.query(key, value))
}
