//! Cloud Servers: what is read of a server, and the requests that list them.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::openstack::{denies, next_page};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde::Deserialize;
use serde_json::Value;

use crate::Rackspace;
use crate::identity::success;

/// Servers in a page; the cloud gives at most 1,000.
const PAGE: usize = 1000;

/// What is read of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Id, mostly a UUID.
    pub id: String,
    /// Name.
    pub name: String,
    /// `ACTIVE`, `SHUTOFF` and so on.
    pub status: String,
    /// Its flavor, such as `general1-1`.
    #[serde(default)]
    pub flavor: Flavor,
    /// Addresses by network: `public`, `private` (ServiceNet) and the account's own.
    #[serde(default)]
    pub addresses: BTreeMap<String, Vec<Place>>,
}

/// A flavor, as far as a server names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    /// Its id, which describes it.
    #[serde(default)]
    pub id: String,
}

/// An address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// IPv4 or IPv6.
    pub addr: String,
}

#[derive(Deserialize)]
struct One {
    server: Server,
}

impl Rackspace {
    /// The server of this id; none only when Cloud Servers itself reports it as not found. A 404 of anything else, such as a proxy, is a failure.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn server(&self, id: &str) -> Result<Option<Server>, Failure> {
        let response = self.identity.get(&format!("/servers/{}", percent_encode(id)))?;
        if denies(&response) {
            return Ok(None);
        }
        match success(response) {
            Err(failure) if failure.is_not_found() => Err(Failure::unavailable(format!(
                "something answers 404 that is not Cloud Servers: {}",
                failure.message()
            ))),
            response => Ok(Some(response?.json::<One>()?.server)),
        }
    }

    /// Hands on the servers of the account, in this region; those whose name has this in it. A server that cannot be read is left out.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn servers(&self, name: Option<&str>, each: &mut dyn FnMut(Server)) -> Result<(), Failure> {
        let name = name.map(|name| format!("&name={}", percent_encode(name)));
        let first = format!("limit={PAGE}{}", name.unwrap_or_default());
        each_page(|query| {
            let query = query.unwrap_or(&first);
            let mut page: Value = success(self.identity.get(&format!("/servers/detail?{query}"))?)?.json()?;
            let next = next_page(&page, "servers");
            let Value::Array(servers) = page["servers"].take() else {
                return Err(Failure::unavailable("Cloud Servers' answer has no list of servers"));
            };
            for server in servers {
                match serde_json::from_value(server) {
                    Ok(server) => each(server),
                    Err(error) => warn!("a server is left out of the list, it cannot be read: {error}"),
                }
            }
            Ok(next)
        })
    }

    /// Whether there is any server, by a small request.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn any_server(&self) -> Result<bool, Failure> {
        let page: Value = success(self.identity.get("/servers?limit=1")?)?.json()?;
        Ok(page["servers"].as_array().is_some_and(|servers| !servers.is_empty()))
    }
}

#[cfg(test)]
mod tests;
