//! Listeners: what of them has to change. Their requests differ between the kinds of load balancers.

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use super::fields::Field;
use super::groups::Group;
use super::requests::Requests;
use super::task::{Found, Task};
use super::wanted::{Port, Wanted};
use super::work::Next;
use crate::api::Call;

/// A listener as the cloud shows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listener {
    /// Of a Network Load Balancer.
    pub id: String,
    pub port: String,
    pub protocol: String,
    /// Its description, which is its name.
    pub name: String,
    pub status: String,
    /// The whole answer, under the names of requests.
    pub seen: Value,
}

impl Listener {
    /// Whether the cloud is changing it.
    fn is_busy(&self) -> bool {
        !matches!(self.status.as_str(), "Running" | "Stopped")
    }

    fn is(&self, port: &Port) -> bool {
        self.port == port.port.to_string() && self.protocol == port.protocol
    }

    /// Whether it and one for this port cannot be there at the same time.
    fn is_in_the_way_of(&self, port: &Port) -> bool {
        let is_udp = |protocol: &str| protocol.eq_ignore_ascii_case("udp");
        self.port == port.port.to_string() && !self.is(port) && is_udp(&self.protocol) == is_udp(port.protocol)
    }
}

/// What comes next: deletions first, since two listeners cannot share a port.
///
/// # Errors
/// `already-exists` when another Service's listener is in the way.
pub fn changes<R: Requests>(
    task: &Task<'_>,
    wanted: &Wanted<'_>,
    groups: &[Group],
    found: &Found,
) -> Result<Option<Next<Found>>, Failure> {
    let seen = R::listeners(task, found)?;
    if R::JOBS
        && let Some(busy) = seen.iter().find(|listener| listener.is_busy())
    {
        return Ok(Some(Next::Wait(format!("the listener {} is {}", busy.id, busy.status))));
    }
    let own = |listener: &Listener| task.names.is_own(&listener.name);
    for port in &wanted.ports {
        // On its own load balancer one without a name is taken over: it was made by hand.
        let foreign = |listener: &&Listener| {
            let occupies = listener.is(port) || listener.is_in_the_way_of(port);
            occupies && listener.name.starts_with(R::MARK) && !own(listener) && !wanted.overrides
        };
        if let Some(listener) = seen.iter().find(foreign) {
            return Err(Failure::already_exists(format!(
                "port {} of the load balancer {} has the listener {}",
                port.port, found.id, listener.name
            )));
        }
    }
    let in_the_way = |listener: &&Listener| {
        let unwanted = own(listener) && !wanted.ports.iter().any(|port| listener.is(port));
        unwanted || wanted.ports.iter().any(|port| listener.is_in_the_way_of(port))
    };
    let deletions = seen.iter().filter(in_the_way);
    let deletions = deletions.map(|listener| R::delete_listener(found, listener)).collect();
    if let Some(next) = Next::changes(deletions) {
        return Ok(Some(next));
    }
    let mut calls = Vec::new();
    for port in &wanted.ports {
        let Some(group) = groups.iter().find(|group| group.name == port.group) else {
            continue;
        };
        let [name, of_group] = R::NAMES;
        let mut fields = vec![Field::one(name, &port.listener), Field::one(of_group, &group.id)];
        fields.extend(port.of_listener.iter().cloned());
        match seen.iter().find(|listener| listener.is(port)) {
            None => calls.push(R::create_listener(found, port, &fields)),
            Some(listener) if !fields.iter().all(|field| field.is_in(&listener.seen)) => {
                calls.push(R::change_listener(found, port, listener, &fields));
            }
            Some(listener) if listener.status.eq_ignore_ascii_case("stopped") => {
                calls.push(R::start_listener(found, listener));
            }
            Some(_) => {}
        }
    }
    Ok(Next::changes(calls))
}

/// Deletes the Service's listeners, of a load balancer that is the user's.
///
/// # Errors
/// The cloud's error.
pub fn deletions<R: Requests>(task: &Task<'_>, found: &Found) -> Result<Vec<Call>, Failure> {
    let seen = R::listeners(task, found)?;
    let own = seen.iter().filter(|listener| task.names.is_own(&listener.name));
    Ok(own.map(|listener| R::delete_listener(found, listener)).collect())
}
