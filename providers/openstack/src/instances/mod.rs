//! Servers behind Nodes: a few requests for many Nodes.
//!
//! ```text
//!   one listing, or each by id or name (servers.rs) -> ports.rs: one listing -> addresses.rs: the order
//! ```

pub mod addresses;
pub mod plan;
pub mod ports;
pub mod servers;

use std::time::Duration;

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name, Wanted, ask_each};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;

use crate::OpenStack;
use crate::config::given;
use crate::instances::addresses::AddressRules;
use crate::instances::plan::{instance, is_few, is_stopped, key, needs_flavors};
use crate::instances::servers::Server;

/// Servers are requested by id at most so many in a call: more that are not in the listing are no deleted servers but a wrong project.
const MOST_MISSING: usize = 100;

/// Where the number of pages of the project's servers is kept, and for how long: by it is decided whether to list them all.
const PAGES: (&str, Duration) = ("servers-pages", Duration::from_secs(3600));

impl Machines for OpenStack {
    type Machine = Server;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        key(node, given(&self.config.global.region))
    }

    /// Nova has no filter for several of either, so many are taken from one listing.
    fn find(&self, wanted: &Wanted<'_>, answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        let state = self.context.state();
        let pages = state.get::<String>(PAGES.0).and_then(|kept| kept.value.parse().ok());
        let pages = pages.map(|pages: usize| pages.min(MOST_MISSING));
        if is_few(wanted.ids.len() + wanted.names.len(), pages) {
            self.by_names(&wanted.names, answers)?;
        } else {
            let wants = |id: &str, name: &str| answers.wants(Key::Id(id)) || answers.wants(Key::Name(name));
            let (servers, pages) = servers::all(&self.api, &wants)?;
            state.put(PAGES.0, &pages.to_string(), Keep::at_most(PAGES.1));
            take(servers, answers);
        }
        let missing = answers.missing(&wanted.ids);
        self.by_ids(&missing, answers)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        ask_each(ids, MOST_MISSING, answers, |id| servers::by_id(&self.api, id));
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Server>) -> Result<(), Failure> {
        for name in names {
            take(servers::by_name(&self.api, name.name)?, answers);
        }
        Ok(())
    }

    fn label(&self, server: &Server) -> String {
        server.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Server>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        let servers: Vec<&Server> = found.iter().map(|found| found.machine).collect();
        let details = self.details(&servers)?;
        Ok(servers.into_iter().map(|server| Ok(details.existing(server))).collect())
    }
}

impl OpenStack {
    /// What else has to be known of these servers.
    fn details(&self, servers: &[&Server]) -> Result<Details<'_>, Failure> {
        let ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
        let ports = if ids.is_empty() {
            Vec::new()
        } else {
            ports::of_servers(&self.api, &ids)?
        };
        let trunk = ports::trunk_places(&self.api, &ports)?;
        let flavors = if servers.iter().copied().any(needs_flavors) {
            servers::flavors(&self.api)?
        } else {
            Vec::new()
        };
        Ok(Details {
            provider: self,
            rules: AddressRules::new(&self.config.networking).map_err(Failure::invalid)?,
            ports,
            trunk,
            flavors,
        })
    }

    fn provider_id(&self, server: &Server) -> String {
        let global = &self.config.global;
        let region = given(&global.region)
            .filter(|_| global.regional_provider_id)
            .unwrap_or_default();
        format!("{}{region}/{}", crate::PROVIDER_ID_PREFIX, server.id)
    }
}

/// A server answers for its id and for its name.
fn take(servers: Vec<Server>, answers: &mut Answers<'_, Server>) {
    answers.found_all(servers.iter().cloned(), |server| Key::Id(&server.id));
    answers.found_all(servers, |server| Key::Name(&server.name));
}

/// What is known beside the servers themselves.
struct Details<'a> {
    provider: &'a OpenStack,
    rules: AddressRules,
    ports: Vec<ports::Port>,
    /// Server and address.
    trunk: Vec<(String, servers::Place)>,
    flavors: Vec<(String, String)>,
}

impl Details<'_> {
    fn existing(&self, server: &Server) -> Existing {
        let ports: Vec<&ports::Port> = self.ports.iter().filter(|port| port.device_id == server.id).collect();
        let trunk: Vec<servers::Place> = self
            .trunk
            .iter()
            .filter(|(id, _)| *id == server.id)
            .map(|(_, place)| place.clone())
            .collect();
        let region = given(&self.provider.config.global.region);
        let mut instance = instance(server, self.provider.provider_id(server), region, &self.flavors);
        instance.addresses = self.rules.addresses(server, &ports, &trunk);
        match is_stopped(&server.status) {
            true => Existing::Stopped(instance),
            false => Existing::Running(instance),
        }
    }
}

#[cfg(test)]
mod tests;
