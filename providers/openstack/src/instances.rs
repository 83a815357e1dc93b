//! Servers behind Nodes: a few requests for many Nodes.
//!
//! ```text
//!   instances_plan: what to ask for -> servers.rs: one listing, or each by id or name -> ports.rs: one listing
//!                                                                                         v
//!                                       instances_plan: what it means for each Node <- addresses.rs: the order
//! ```

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;

use crate::OpenStack;
use crate::addresses::AddressRules;
use crate::config::given;
use crate::instances_plan::{Found, Search, Wanted, instance, is_stopped, needs_flavors};
use crate::servers::Server;
use crate::{ports, servers};

/// Servers are asked for by id at most so many in a call: more that are not in the listing are no deleted servers but a wrong project.
const MOST_MISSING: usize = 100;

/// Where the number of pages of the project's servers is kept, and for how long: by it is decided whether to list them all.
const PAGES: (&str, Duration) = ("servers-pages", Duration::from_secs(3600));

impl Instances for OpenStack {
    fn lookup(&self, nodes: &[NodeRef]) -> Result<Vec<Result<Presence, Failure>>, Failure> {
        let region = given(&self.config.global.region);
        let searches: Vec<Search<'_>> = nodes.iter().map(|node| Search::of(node, region)).collect();
        let found = self.find(&Wanted::of(&searches))?;
        let details = self.details(&found.servers)?;
        let answer = |(node, search): (&NodeRef, &Search<'_>)| {
            Ok(match found.answer(search)? {
                Err(evidence) => Presence::Absent(evidence),
                Ok(server) => details.presence(server, node),
            })
        };
        Ok(nodes.iter().zip(&searches).map(answer).collect())
    }
}

impl OpenStack {
    fn find(&self, wanted: &Wanted<'_>) -> Result<Found, Failure> {
        let mut found = Found::default();
        let state = self.context.state();
        let pages = state.get::<String>(PAGES.0).and_then(|kept| kept.value.parse().ok());
        let pages = pages.map(|pages: usize| pages.min(MOST_MISSING));
        if wanted.is_few(pages) {
            for name in &wanted.names {
                found.servers.extend(servers::by_name(&self.api, name)?);
            }
        } else {
            let (servers, pages) = servers::all(&self.api, &|id, name| wanted.has(id, name))?;
            state.put(PAGES.0, &pages.to_string(), Keep::at_most(PAGES.1));
            found.servers = servers;
        }
        let missing: Vec<&str> = wanted
            .ids
            .iter()
            .copied()
            .filter(|id| found.server(id).is_none())
            .collect();
        let mut stop = None;
        for (asked, id) in missing.into_iter().enumerate() {
            if asked == MOST_MISSING {
                stop = Some(Failure::unavailable(
                    "too many servers are missing to ask for each; is the project right?",
                ));
            }
            match stop.clone().map_or_else(|| servers::by_id(&self.api, id), Err) {
                Ok(Some(server)) => found.servers.push(server),
                Ok(None) => found.gone.push(id.into()),
                Err(failure) => {
                    // Of these the next one would fare no better, and it would cost a request.
                    if matches!(
                        failure.kind,
                        FailureKind::RateLimited | FailureKind::Unavailable | FailureKind::Denied
                    ) {
                        stop = Some(failure.clone());
                    }
                    found.unclear.push((id.into(), failure));
                }
            }
        }
        Ok(found)
    }

    /// What else has to be known of these servers.
    fn details(&self, servers: &[Server]) -> Result<Details<'_>, Failure> {
        let ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
        let ports = if ids.is_empty() {
            Vec::new()
        } else {
            ports::of_servers(&self.api, &ids)?
        };
        let trunk = ports::trunk_places(&self.api, &ports)?;
        let flavors = if servers.iter().any(needs_flavors) {
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
    fn presence(&self, server: &Server, node: &NodeRef) -> Presence {
        let ports: Vec<&ports::Port> = self.ports.iter().filter(|port| port.device_id == server.id).collect();
        let trunk: Vec<servers::Place> = self
            .trunk
            .iter()
            .filter(|(id, _)| *id == server.id)
            .map(|(_, place)| place.clone())
            .collect();
        // It is written once: a Node keeps the form it has.
        let given = node.provider_id.clone().filter(|id| !id.is_empty());
        let provider_id = given.unwrap_or_else(|| self.provider.provider_id(server));
        let region = crate::config::given(&self.provider.config.global.region);
        let mut instance = instance(server, provider_id, region, &self.flavors);
        instance.addresses = self.rules.addresses(server, &ports, &trunk);
        match is_stopped(&server.status) {
            true => Presence::Stopped(instance),
            false => Presence::Running(instance),
        }
    }
}

#[cfg(test)]
mod tests;
