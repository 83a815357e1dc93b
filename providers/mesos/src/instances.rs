//! Machines behind Nodes: the agents of one list. One that is not in it is gone only when the masters' registry does not have it either.

use cloudwit_guest_sdk::lookup::{Answers, Existing, Found, Id, Key, Machines, Name};
use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::agent::Agent;
use crate::api::Agents;
use crate::{Mesos, PROVIDER_ID_PREFIX};

impl Machines for Mesos {
    type Machine = Agent;

    fn key<'n>(&self, node: &'n NodeRef) -> Result<Key<'n>, Failure> {
        // What the in-tree provider wrote: no id at all.
        if node.provider_id.as_deref() == Some(PROVIDER_ID_PREFIX) {
            return Ok(Key::Name(&node.name));
        }
        Key::of(node, PROVIDER_ID_PREFIX)
    }

    fn by_ids(&self, ids: &[Id<'_>], answers: &mut Answers<'_, Agent>) -> Result<(), Failure> {
        let agents = self.api.agents()?;
        answers.found_all(readable(&agents), |agent| Key::Id(&agent.id));
        let missing = answers.missing(ids);
        if missing.is_empty() {
            return Ok(());
        }
        let registry = match self.api.registry(&agents.leader) {
            Ok(registry) => registry,
            Err(failure) => {
                // Those that are listed have their answers without it.
                for id in missing {
                    answers.failed(Key::Id(id.as_str()), failure.clone());
                }
                return Ok(());
            }
        };
        let known: Vec<&str> = agents
            .registered
            .iter()
            .chain(&agents.recovered)
            .filter_map(id)
            .collect();
        for id in missing {
            let why = match id.as_str() {
                // A registry that was lost denies nothing.
                _ if registry.admitted.is_empty() || known.is_empty() => {
                    "cannot be told from one that is gone: the leading master knows no agent at all"
                }
                agent if registry.admitted.contains(agent) || known.contains(&agent) => {
                    "is admitted and has not registered with the leading master yet"
                }
                agent if registry.unreachable.contains(agent) => "is unreachable for the masters, and may run",
                _ if agents.has_host(&id.node().name) => {
                    "has registered anew under another id: delete its Node, so that it joins again"
                }
                _ => {
                    answers.denied(id);
                    continue;
                }
            };
            let failure = Failure::unavailable(format!("the agent {} {why}", id.as_str()));
            answers.failed(Key::Id(id.as_str()), failure);
        }
        Ok(())
    }

    fn by_names(&self, names: &[Name<'_>], answers: &mut Answers<'_, Agent>) -> Result<(), Failure> {
        let agents = self.api.agents()?;
        for agent in readable(&agents) {
            if let Some(name) = names
                .iter()
                .find(|name| name.name.eq_ignore_ascii_case(&agent.hostname))
            {
                answers.found(Key::Name(name.name), agent);
            }
        }
        Ok(())
    }

    fn label(&self, agent: &Agent) -> String {
        agent.id.clone()
    }

    fn describe(&self, found: &[Found<'_, Agent>]) -> Result<Vec<Result<Existing, Failure>>, Failure> {
        Ok(found.iter().map(|found| found.machine.existing()).collect())
    }
}

/// The agents that are registered. One that cannot be read is left out.
fn readable(agents: &Agents) -> Vec<Agent> {
    let read = |agent: &Value| {
        let read = serde_json::from_value::<Agent>(agent.clone());
        read.inspect_err(|mistake| warn!("an agent is left out of the list, it cannot be read: {mistake}"))
            .ok()
    };
    agents.registered.iter().filter_map(read).collect()
}

impl Agents {
    /// Whether an agent has this host name, in whatever case; one that is not back yet counts too.
    fn has_host(&self, name: &str) -> bool {
        let has = |agent: &Value| {
            agent["hostname"]
                .as_str()
                .is_some_and(|host| host.eq_ignore_ascii_case(name))
        };
        self.registered.iter().chain(&self.recovered).any(has)
    }
}

fn id(agent: &Value) -> Option<&str> {
    agent["id"].as_str()
}

#[cfg(test)]
mod tests;
