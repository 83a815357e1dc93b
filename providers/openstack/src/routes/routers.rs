//! Routers and their routes as Neutron returns them, and the calls that change them.
//!
//! With the extension `extraroute-atomic` routes are added and removed; without it a router's whole list is replaced, which is only safe for
//! one at a time: under a lock for this controller, and by the router's revision for all others.

use std::time::Duration;

use cloudwit_guest_sdk::cidr;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::url::percent_encode;
use serde_json::Value;

use crate::api::wire::{Fields, Object, Read};
use crate::api::{Api, Call, Endpoint};

/// How often a change is tried again when the same resource was changed meanwhile.
pub const ATTEMPTS: usize = 4;

/// How long to wait for another call that replaces the routes.
const WAIT: Duration = Duration::from_secs(20);

/// How long extensions of Neutron are cached.
const REMEMBERED: Keep = Keep::at_most(Duration::from_secs(3600));

/// A route of a router.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hop {
    /// CIDR, as Neutron has it.
    pub destination: String,
    /// IP address.
    pub nexthop: String,
}

impl Hop {
    fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            destination: json.need("destination")?,
            nexthop: json.need("nexthop")?,
        })
    }

    fn object(&self) -> Object {
        Object::new()
            .text("destination", &self.destination)
            .text("nexthop", &self.nexthop)
    }

    /// Whether both mean the same, in whatever spelling.
    pub fn is(&self, other: &Self) -> bool {
        let ip = |text: &str| text.parse::<std::net::IpAddr>().ok();
        same_network(&self.destination, &other.destination)
            && (self.nexthop == other.nexthop || ip(&self.nexthop).is_some_and(|own| ip(&other.nexthop) == Some(own)))
    }
}

/// Whether two texts mean the same network.
pub fn same_network(one: &str, other: &str) -> bool {
    one == other || matches!((cidr::parse(one), cidr::parse(other)), (Ok(one), Ok(other)) if one == other)
}

/// What is read of a router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Router {
    /// Its routes.
    pub routes: Vec<Hop>,
    revision: Option<i64>,
}

/// What this Neutron can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extensions {
    /// `extraroute-atomic`: routes can be added and removed.
    pub atomic: bool,
    /// `allowed-address-pairs`: ports let only known addresses through.
    pub address_pairs: bool,
    /// `revision-if-match`: a change can be refused when another one came first.
    pub if_match: bool,
}

/// The extensions, requested once an hour.
pub fn extensions(api: &Api, context: &Context) -> Result<Extensions, Failure> {
    // Kept as text, which the component can read already.
    let ask = || {
        let call = api.get(Endpoint::Network, "/v2.0/extensions").query("fields", "alias");
        Ok(api.list(call, "extensions", |json| json.need("alias"))?.join(" "))
    };
    let known: String = context
        .state()
        .get_or_make("neutron-extensions", REMEMBERED, WAIT, ask)?;
    let has = |alias: &str| known.split(' ').any(|known| known == alias);
    Ok(Extensions {
        atomic: has("extraroute-atomic"),
        address_pairs: has("allowed-address-pairs"),
        if_match: has("revision-if-match"),
    })
}

/// `If-Match` for this revision, where Neutron supports it.
pub fn if_match<'a>(call: Call<'a>, extensions: &Extensions, revision: Option<i64>) -> Call<'a> {
    match revision.filter(|_| extensions.if_match) {
        Some(revision) => call.header("if-match", format!("revision_number={revision}")),
        None => call,
    }
}

/// The router that gets the routes.
#[derive(Debug)]
pub struct RouterCalls<'a> {
    api: &'a Api,
    context: Context,
    id: &'a str,
    path: String,
    /// What Neutron can do.
    pub extensions: Extensions,
}

impl<'a> RouterCalls<'a> {
    /// For the router of this id.
    pub fn new(api: &'a Api, context: Context, id: &'a str) -> Result<Self, Failure> {
        Ok(Self {
            extensions: extensions(api, &context)?,
            api,
            context,
            id,
            path: format!("/v2.0/routers/{}", percent_encode(id)),
        })
    }

    /// The router as it is.
    pub fn get(&self) -> Result<Router, Failure> {
        self.api.get(Endpoint::Network, &self.path).read(|json| {
            let router = json.need_field("router")?;
            Ok(Router {
                routes: router.each("routes", Hop::read)?,
                revision: router.number("revision_number"),
            })
        })
    }

    /// Ids of the networks that the router is in.
    pub fn networks(&self) -> Result<Vec<String>, Failure> {
        let call = self
            .api
            .get(Endpoint::Network, "/v2.0/ports")
            .query("device_id", self.id);
        let mut networks = self.api.list(
            call.query("fields", "id").query("fields", "network_id"),
            "ports",
            |json| json.need("network_id"),
        )?;
        networks.sort();
        networks.dedup();
        Ok(networks)
    }

    /// Adds routes, or removes them. Those that are there stay, and those that are not there are removed.
    pub fn change(&self, hops: &[Hop], add: bool) -> Result<(), Failure> {
        if self.extensions.atomic {
            let action = if add { "/add_extraroutes" } else { "/remove_extraroutes" };
            let router = Object::new().objects("routes", hops.iter().map(Hop::object));
            let call = self.api.put(Endpoint::Network, &format!("{}{action}", self.path));
            return call.body(Object::new().object("router", router)).send().map(drop);
        }
        self.replace(hops, add)
    }

    /// Reads the routes, changes them and writes them back, until no other change came in between.
    fn replace(&self, hops: &[Hop], add: bool) -> Result<(), Failure> {
        let lock = self.context.state().lock(&format!("router/{}", self.id), WAIT);
        // Without it the other call's routes would be written over.
        let _lock = lock.ok_or_else(|| {
            let text = ["the routes of router ", self.id, " are being changed by another call"];
            Failure::unavailable(text.concat())
        })?;
        let mut outcome = Ok(());
        for _ in 0..ATTEMPTS {
            let router = self.get()?;
            let other = |of: &[Hop], hop: &Hop| of.iter().all(|known| !known.is(hop));
            let kept = router.routes.iter().filter(|hop| add || other(hops, hop));
            let new = hops.iter().filter(|hop| add && other(&router.routes, hop));
            let routes: Vec<&Hop> = kept.chain(new).collect();
            if routes.len() == router.routes.len() {
                return Ok(());
            }
            let body = Object::new().objects("routes", routes.into_iter().map(Hop::object));
            let call = self.api.put(Endpoint::Network, &self.path);
            let call = if_match(call, &self.extensions, router.revision);
            outcome = call.body(Object::new().object("router", body)).send().map(drop);
            if !matches!(
                outcome,
                Err(Failure {
                    kind: FailureKind::Conflict,
                    ..
                })
            ) {
                break;
            }
        }
        outcome
    }
}
