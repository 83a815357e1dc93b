//! Cloud Servers: what is read of a server, and the requests that ask for them.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::http::each_page;
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
    /// Its id, which says what it is.
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

#[derive(Deserialize)]
struct Page {
    servers: Vec<Value>,
    #[serde(default)]
    servers_links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    rel: String,
    href: String,
}

impl Rackspace {
    /// The server of this id; none only when Cloud Servers itself says that there is none. A 404 of anything else, such as a proxy, is a failure.
    ///
    /// # Errors
    /// What the cloud says.
    pub fn server(&self, id: &str) -> Result<Option<Server>, Failure> {
        let response = self.identity.get(&format!("/servers/{}", percent_encode(id)))?;
        let missing = response.status == 404
            && response
                .json::<Value>()
                .is_ok_and(|body| body.get("itemNotFound").is_some());
        if missing {
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

    /// The servers of the account, in this region, that `wanted` says, by id and name. A server that cannot be read is left out.
    ///
    /// # Errors
    /// What the cloud says.
    pub fn servers(&self, name: Option<&str>, wanted: impl Fn(&str, &str) -> bool) -> Result<Vec<Server>, Failure> {
        let mut servers: Vec<Server> = Vec::new();
        let name = name
            .map(|name| format!("&name={}", percent_encode(name)))
            .unwrap_or_default();
        let first = format!("limit={PAGE}{name}");
        each_page::<Failure>(|query| {
            let query = query.unwrap_or(&first);
            let page: Page = success(self.identity.get(&format!("/servers/detail?{query}"))?)?.json()?;
            let is_last = page.servers.is_empty();
            for server in page.servers {
                let word = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
                let (id, name) = (word("id"), word("name"));
                // A server that is made while pages are read can move from one page to the next.
                if wanted(&id, &name) && servers.iter().all(|known| known.id != id) {
                    match serde_json::from_value(server) {
                        Ok(server) => servers.push(server),
                        Err(error) => warn!(server = id, "left out of the list, it cannot be read: {error}"),
                    }
                }
            }
            let next = page.servers_links.into_iter().find(|link| link.rel == "next");
            // The host in the link is what the service takes itself for.
            let query = next.and_then(|link| link.href.split_once('?').map(|(_, query)| query.to_owned()));
            Ok(query.filter(|_| !is_last))
        })?;
        Ok(servers)
    }

    /// Asks for one server, whichever, to see whether the way is free.
    pub(crate) fn any_server(&self) -> Result<(), Failure> {
        success(self.identity.get("/servers?limit=1")?).map(drop)
    }
}

#[cfg(test)]
mod tests;
