//! Servers as Nova returns them: what is read of one, and the calls that list them.
//!
//! One listing answers for hundreds of Nodes. Only servers that are requested are kept: a project may have thousands of others.

use cloudwit_guest_sdk::openstack::denies;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde_json::Value;

use crate::api::wire::{Fields, Read, entries};
use crate::api::{Api, Call, Endpoint, success};

/// Servers in a page; Nova may give fewer.
const PAGE: &str = "500";

/// An address in a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Name of the network.
    pub network: String,
    /// The address.
    pub ip: String,
    /// Whether it is a floating IP.
    pub floating: bool,
}

/// What is read of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Server {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `ACTIVE`, `SHUTOFF` and so on.
    pub status: String,
    /// Name of its flavor (`original_name`); empty where Nova gives only the id.
    pub flavor_name: String,
    /// Id of its flavor, from old versions of Nova.
    pub flavor_id: String,
    /// Availability zone.
    pub zone: String,
    /// Which of the cloud's hosts it is on: a hash that differs for each project.
    pub host_id: String,
    /// `accessIPv4`.
    pub access_ipv4: String,
    /// `accessIPv6`.
    pub access_ipv6: String,
    /// Metadata `hostname`.
    pub hostname: String,
    /// `addresses`, in the order of the answer.
    pub places: Vec<Place>,
}

impl Server {
    fn read(json: &Value) -> Read<Self> {
        let mut places = Vec::new();
        for (network, list) in json.field("addresses").into_iter().flat_map(entries) {
            let Value::Array(list) = list else { continue };
            for item in list {
                places.push(Place {
                    network: network.clone(),
                    ip: item.need("addr")?,
                    floating: item.text("OS-EXT-IPS:type") == Some("floating"),
                });
            }
        }
        let flavor = |key| {
            json.field("flavor")
                .map(|flavor| flavor.text_or_empty(key))
                .unwrap_or_default()
        };
        Ok(Self {
            id: json.need("id")?,
            name: json.need("name")?,
            status: json.need("status")?,
            flavor_name: flavor("original_name"),
            flavor_id: flavor("id"),
            zone: json.text_or_empty("OS-EXT-AZ:availability_zone"),
            host_id: json.text_or_empty("hostId"),
            access_ipv4: json.text_or_empty("accessIPv4"),
            access_ipv6: json.text_or_empty("accessIPv6"),
            hostname: json
                .field("metadata")
                .map(|data| data.text_or_empty("hostname"))
                .unwrap_or_default(),
            places,
        })
    }
}

/// The servers among all of the project that `wanted` accepts, by id and name, and how many pages the listing has.
pub fn all(api: &Api, wanted: &dyn Fn(&str, &str) -> bool) -> Result<(Vec<Server>, usize), Failure> {
    listed(api, None, wanted)
}

/// The servers of exactly this name.
pub fn by_name(api: &Api, name: &str) -> Result<Vec<Server>, Failure> {
    // Some databases compare without regard to case.
    let pattern = format!("^{}$", literal(name));
    Ok(listed(api, Some(&pattern), &|_, found| found == name)?.0)
}

fn listed(api: &Api, name: Option<&str>, wanted: &dyn Fn(&str, &str) -> bool) -> Result<(Vec<Server>, usize), Failure> {
    let mut call = api.get(Endpoint::Compute, "/servers/detail").query("limit", PAGE);
    if let Some(name) = name {
        call = call.query("name", name);
    }
    let mut servers: Vec<Server> = Vec::new();
    let pages = api.pages(call, "servers", &mut |json| {
        let id = json.need("id")?;
        // A server that is made while pages are read can move from one page to the next.
        if wanted(&id, json.text("name").unwrap_or_default()) && servers.iter().all(|known| known.id != id) {
            servers.push(Server::read(json)?);
        }
        Ok(())
    })?;
    Ok((servers, pages))
}

/// The server of this id; none only when Nova itself reports it as not found. A 404 of anything else, such as a proxy whose backend
/// is gone or a wrong endpoint, is a failure.
pub fn by_id(api: &Api, id: &str) -> Result<Option<Server>, Failure> {
    let path = format!("/servers/{}", percent_encode(id));
    let call = api.get(Endpoint::Compute, &path);
    let response = call.send_any()?;
    if denies(&response) {
        return Ok(None);
    }
    call.parse(&success(response)?, |json| Server::read(json.need_field("server")?))
        .map(Some)
}

/// Names and ids of all flavors that can be seen: for servers whose flavor's name is no label.
pub fn flavors(api: &Api) -> Result<Vec<(String, String)>, Failure> {
    let call = api.get(Endpoint::Compute, "/flavors").query("is_public", "None");
    named(api, call, "flavors")
}

/// Names and ids of all items of a list.
pub fn named(api: &Api, call: Call<'_>, collection: &str) -> Result<Vec<(String, String)>, Failure> {
    api.list(call, collection, |json| Ok((json.need("name")?, json.need("id")?)))
}

/// The text as a regular expression that fits it alone.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if ".+*?()|[]{}^$\\".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}
