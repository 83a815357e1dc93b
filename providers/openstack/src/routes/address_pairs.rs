//! Allowed address pairs: a port drops what comes from an address that is not its own, so a Node's port needs the Pods' range.
//!
//! A port's pairs are a list that is replaced as a whole. A revision keeps what others put there meanwhile.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde_json::Value;

use crate::api::wire::{Fields, Object, Read};
use crate::api::{Api, Endpoint};
use crate::instances::ports::named;
use crate::routes::routers::{ATTEMPTS, Extensions, if_match, same_network};

/// Addresses in one filter.
const VALUES: usize = 50;

/// Ports in a page; Neutron may give fewer.
const PAGE: &str = "1000";

/// What is read of a port.
const FIELDS: [&str; 5] = [
    "id",
    "fixed_ips",
    "port_security_enabled",
    "allowed_address_pairs",
    "revision_number",
];

/// An address, or a network, that a port lets through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    ip: String,
    mac: Option<String>,
}

/// A port that traffic to Pods goes through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardedPort {
    id: String,
    ips: Vec<String>,
    guarded: bool,
    pairs: Vec<Pair>,
    revision: Option<i64>,
}

impl GuardedPort {
    fn read(json: &Value) -> Read<Self> {
        let pairs = json.each("allowed_address_pairs", |pair| {
            Ok(Pair {
                ip: pair.need("ip_address")?,
                mac: pair.text("mac_address").map(String::from),
            })
        });
        Ok(Self {
            id: json.need("id")?,
            ips: json
                .items("fixed_ips")
                .iter()
                .filter_map(|ip| ip.text("ip_address").map(String::from))
                .collect(),
            // Without the extension `port-security` every port is guarded.
            guarded: json.field("port_security_enabled").is_none() || json.flag("port_security_enabled"),
            pairs: pairs?,
            revision: json.number("revision_number"),
        })
    }

    /// Whether this is the port of the address.
    pub fn has_address(&self, ip: &str) -> bool {
        self.ips.iter().any(|own| own == ip)
    }

    /// Whether traffic of this network goes through.
    pub fn lets_through(&self, network: &str) -> bool {
        !self.guarded || self.pairs.iter().any(|pair| same_network(&pair.ip, network))
    }

    /// The pairs with or without this network; none when they are so already, or the port is not guarded.
    fn changed(&self, network: &str, allowed: bool) -> Option<Vec<Pair>> {
        let has = self.pairs.iter().any(|pair| same_network(&pair.ip, network));
        if !self.guarded || has == allowed {
            return None;
        }
        let mut pairs = self.pairs.clone();
        if allowed {
            pairs.push(Pair {
                ip: network.into(),
                mac: None,
            });
        } else {
            pairs.retain(|pair| !same_network(&pair.ip, network));
        }
        Some(pairs)
    }
}

/// The ports of these addresses in these networks. Many addresses are not named one by one.
pub fn ports(api: &Api, networks: &[String], ips: &[&str]) -> Result<Vec<GuardedPort>, Failure> {
    if ips.is_empty() || networks.is_empty() {
        return Ok(Vec::new());
    }
    let networks: Vec<&str> = networks.iter().map(String::as_str).collect();
    let call = named(api.get(Endpoint::Network, "/v2.0/ports"), "network_id", &networks);
    let mut call = FIELDS
        .iter()
        .fold(call, |call, field| call.query("fields", field))
        .query("limit", PAGE);
    if ips.len() <= VALUES {
        for ip in ips {
            call = call.query("fixed_ips", &format!("ip_address={ip}"));
        }
    }
    let mut ports = Vec::new();
    api.pages(call, "ports", &mut |json| {
        let port = GuardedPort::read(json)?;
        if ips.iter().any(|ip| port.has_address(ip)) {
            ports.push(port);
        }
        Ok(())
    })?;
    Ok(ports)
}

/// Lets a network through a port, or not any more. The port is brought up to date. One that is gone lets nothing through.
pub fn set(
    api: &Api,
    extensions: &Extensions,
    port: &mut GuardedPort,
    network: &str,
    allowed: bool,
) -> Result<(), Failure> {
    let path = format!("/v2.0/ports/{}", percent_encode(&port.id));
    let read = |json: &Value| GuardedPort::read(json.need_field("port")?);
    let mut outcome = Ok(());
    for _ in 0..ATTEMPTS {
        let Some(pairs) = port.changed(network, allowed) else {
            return Ok(());
        };
        let pairs = pairs.iter().map(|pair| {
            Object::new()
                .text("ip_address", &pair.ip)
                .text_opt("mac_address", pair.mac.as_deref())
        });
        let body = Object::new().object("port", Object::new().objects("allowed_address_pairs", pairs));
        let call = if_match(api.put(Endpoint::Network, &path), extensions, port.revision);
        match call.body(body).read(read) {
            Ok(changed) => {
                *port = changed;
                return Ok(());
            }
            Err(Failure {
                kind: FailureKind::NotFound,
                ..
            }) if !allowed => return Ok(()),
            Err(
                failure @ Failure {
                    kind: FailureKind::Conflict,
                    ..
                },
            ) => outcome = Err(failure),
            Err(failure) => return Err(failure),
        }
        match api.get(Endpoint::Network, &path).read_optional(read)? {
            Some(fresh) => *port = fresh,
            None if !allowed => return Ok(()),
            None => return Err(Failure::not_found(format!("port {} is gone", port.id))),
        }
    }
    outcome
}
