//! What to ask Nova for, and what its answers mean for each Node. Pure.
//!
//! A Node with a provider id is looked up by that id and by nothing else: only then can the answer be "absent, by id". A Node without one
//! is searched by its name, as the kubelet has it.

use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;

use crate::PROVIDER_ID_PREFIX;
use crate::servers::Server;

/// So many servers are asked for one by one, whatever the project's size. Nova has no filter that takes several ids, and on MySQL it escapes the `|`
/// of a pattern of names (`_safe_regex_mysql`).
const FEW: usize = 3;

/// Which of the cloud's hosts a Node is on; the label of upstream's provider.
const HOST_LABEL: &str = "topology.openstack.org/host-id";

/// How a Node's server is found.
#[derive(Debug, Clone, PartialEq)]
pub enum Search<'a> {
    /// By its id.
    Id(&'a str),
    /// By its name.
    Name(&'a str),
    /// Not at all: the provider id is another cloud's, or another region's.
    Wrong(Failure),
}

impl<'a> Search<'a> {
    /// For this Node. The forms of provider ids are upstream's: `openstack:///ID`, `openstack://REGION/ID`, and both without what is
    /// before the slashes.
    pub fn of(node: &'a NodeRef, region: Option<&str>) -> Self {
        let Some(provider_id) = node.provider_id.as_deref().filter(|id| !id.is_empty()) else {
            return Self::Name(&node.name);
        };
        let rest = match provider_id
            .split_once(':')
            .is_some_and(|(_, rest)| rest.starts_with("//"))
        {
            true => provider_id.strip_prefix(PROVIDER_ID_PREFIX),
            false => Some(provider_id),
        };
        let parts = rest.and_then(|rest| rest.split_once('/'));
        let wrong = |why: &[&str]| Self::Wrong(Failure::invalid(format!("provider id {provider_id}{}", why.concat())));
        match parts {
            Some((of, id)) if !id.is_empty() && !id.contains('/') => match region {
                _ if of.is_empty() => Self::Id(id),
                Some(region) if region == of => Self::Id(id),
                region => wrong(&[
                    " is of region ",
                    of,
                    ", and the region of [Global] is ",
                    region.unwrap_or("not set"),
                ]),
            },
            _ => wrong(&[" is none of OpenStack's; they look like openstack:///ID or openstack://REGION/ID"]),
        }
    }
}

/// What to ask for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Ids, sorted, each once.
    pub ids: Vec<&'a str>,
    /// Names, sorted, each once.
    pub names: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    /// By all searches.
    pub fn of(searches: &[Search<'a>]) -> Self {
        let mut wanted = Self::default();
        for search in searches {
            match search {
                Search::Id(id) => wanted.ids.push(id),
                Search::Name(name) => wanted.names.push(name),
                Search::Wrong(_) => {}
            }
        }
        for list in [&mut wanted.ids, &mut wanted.names] {
            list.sort();
            list.dedup();
        }
        wanted
    }

    /// Whether they are asked for one by one: when that takes fewer requests than a listing of the project's servers, which has so many pages; none when
    /// that is not known.
    pub fn is_few(&self, pages: Option<usize>) -> bool {
        let requests = self.ids.len() + self.names.len();
        requests <= FEW || pages.is_some_and(|pages| requests < pages)
    }

    /// Whether a server with this id and name is one of them.
    pub fn has(&self, id: &str, name: &str) -> bool {
        self.ids.binary_search(&id).is_ok() || self.names.binary_search(&name).is_ok()
    }
}

/// What Nova said.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Servers that exist, each once.
    pub servers: Vec<Server>,
    /// Ids of which Nova said that there is no such server.
    pub gone: Vec<String>,
    /// Ids of which nothing is known, and why.
    pub unclear: Vec<(String, Failure)>,
}

impl Found {
    /// The server of this id.
    pub fn server(&self, id: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.id == id)
    }

    /// The one server that a search means; none when it is absent, and how that is known.
    ///
    /// # Errors
    /// When it cannot be said.
    pub fn answer(&self, search: &Search<'_>) -> Result<Result<&Server, Evidence>, Failure> {
        match search {
            Search::Wrong(failure) => Err(failure.clone()),
            Search::Id(id) => match self.server(id) {
                Some(server) => Ok(Ok(server)),
                None if self.gone.iter().any(|gone| gone == id) => Ok(Err(Evidence::ById)),
                None => Err(self.unclear.iter().find(|(unclear, _)| unclear == id).map_or_else(
                    || Failure::other(format!("Nova did not answer for server {id}")),
                    |(_, failure)| failure.clone(),
                )),
            },
            Search::Name(name) => {
                let named: Vec<&Server> = self.servers.iter().filter(|server| server.name == *name).collect();
                match named.as_slice() {
                    [] => Ok(Err(Evidence::ByName)),
                    [server] => Ok(Ok(server)),
                    several => {
                        let ids: Vec<&str> = several.iter().map(|server| server.id.as_str()).collect();
                        let text = format!("several servers are called {name}: {}", ids.join(", "));
                        Err(Failure::invalid(format!(
                            "{text}; rename all but one, or set the Node's provider id"
                        )))
                    }
                }
            }
        }
    }
}

/// Whether a server in this status does not run. Upstream knows only `SHUTOFF`; in the others its volumes are attached and nothing runs, too.
pub fn is_stopped(status: &str) -> bool {
    matches!(
        status,
        "SHUTOFF" | "SUSPENDED" | "PAUSED" | "SHELVED" | "SHELVED_OFFLOADED" | "SOFT_DELETED"
    )
}

/// The name or, where it is no value for a label, the id of a server's flavor. `flavors` are names and ids.
pub fn instance_type(server: &Server, flavors: &[(String, String)]) -> Option<String> {
    if is_label(&server.flavor_name) {
        return Some(server.flavor_name.clone());
    }
    let flavor = flavors
        .iter()
        .find(|(name, id)| *name == server.flavor_name || *id == server.flavor_id);
    let (name, id) = flavor.map_or(("", server.flavor_id.as_str()), |(name, id)| (name, id));
    [name, id].into_iter().find(|text| is_label(text)).map(String::from)
}

/// Whether the flavors have to be asked for.
pub fn needs_flavors(server: &Server) -> bool {
    !is_label(&server.flavor_name)
}

fn is_label(text: &str) -> bool {
    !text.is_empty() && label_value(text) == text
}

/// What the controller is told of a server, but its addresses.
pub fn instance(server: &Server, provider_id: String, region: Option<&str>, flavors: &[(String, String)]) -> Instance {
    let mut instance = Instance::new(provider_id);
    instance.instance_type = instance_type(server, flavors);
    instance.zone = Some(label_value(&server.zone)).filter(|zone| !zone.is_empty());
    instance.region = region.map(String::from);
    let host = label_value(&server.host_id);
    if !host.is_empty() {
        instance.labels.push(Pair::new(HOST_LABEL, host));
    }
    instance
}

#[cfg(test)]
mod tests;
