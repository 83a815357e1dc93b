//! Log of the writes that a dry run would make, each decision once.
//!
//! ```text
//!   loops --> ReadOnly cloud --PlannedWrite--\
//!   loops --> apply ---------------patches----+--> DryRunLog: is it news? --> one line in the log
//! ```
//!
//! The loops run as ever: the cloud they get cannot be changed ([`ReadOnly`]), the writer and the Events' writer only log. A
//! decision that a loop comes to again and again is said once, and again when it has changed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use cloudwit_model::{
    Cloud, NewRoute, NodeRef, PlannedWrite, ReadOnly, Route, Service, TagChange, Tags, Target, VolumeWrite, short_list,
};
use tracing::info;

use crate::sync::lock;

/// Decisions that a dry run keeps; a few for each of 5,000 Nodes and 1,000 Services.
const REMEMBERED: usize = 50_000;

/// What an `ensure` would come to, as far as can be seen without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnsurePlan {
    /// The cloud has the load balancer, and the Service shows its address. Only the provider could compare ports and targets.
    Nothing,
    /// The cloud has it, and the Service shows something else.
    Change,
    /// The cloud does not have it.
    Create,
}

/// What a dry run has said.
#[derive(Debug, Default)]
pub struct DryRunLog(Mutex<HashMap<String, u64>>);

impl DryRunLog {
    /// Whether it comes to this decision about this object for the first time, or after another one.
    ///
    /// What is kept is bounded: when it is full it is dropped, and said once more.
    pub fn is_news(&self, about: &str, decision: impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        decision.hash(&mut hasher);
        let mut said = lock(&self.0);
        if said.len() >= REMEMBERED {
            said.clear();
        }
        said.insert(about.to_owned(), hasher.finish()) != Some(hasher.finish())
    }

    /// Whether anything was said about this.
    #[cfg(test)]
    pub(crate) fn has_logged(&self, about: &str) -> bool {
        lock(&self.0).contains_key(about)
    }

    pub(crate) fn log(&self, write: PlannedWrite<'_>) {
        match write {
            // The outcome depends on the state of the cloud, which is read next.
            PlannedWrite::EnsureBalancer { .. } => {}
            PlannedWrite::UpdateTargets { updates, targets } => {
                updates
                    .iter()
                    .for_each(|update| self.log_targets(update.service, targets));
            }
            PlannedWrite::DeleteBalancer { service } => {
                let service = name(service);
                if self.is_news(&format!("balancer {service}"), "delete") {
                    info!(service, "dry run: this load balancer would be deleted");
                }
            }
            PlannedWrite::ApplyRoutes { create, delete } => {
                delete.iter().for_each(|route| self.log_deletion(route));
                create.iter().for_each(|route| self.log_creation(route));
            }
            PlannedWrite::ChangeTags { change, nodes, tags } => {
                nodes.iter().for_each(|node| self.log_tags(change, node, tags));
            }
            PlannedWrite::Volumes(write) => self.log_volumes(write),
            PlannedWrite::EnsureSshKey(key) => {
                if self.is_news("ssh key", key) {
                    info!(
                        user = key.user(),
                        algorithm = key.algorithm(),
                        "dry run: this SSH key would be given to all machines that do not have it"
                    );
                }
            }
        }
    }

    fn log_volumes(&self, write: VolumeWrite<'_>) {
        let planned = |what: &str, id: &str| {
            if self.is_news(&format!("volume {id}"), what) {
                info!(id, "dry run: this {what}");
            }
        };
        match write {
            VolumeWrite::Create(new) => planned("volume would be created", &new.name),
            VolumeWrite::Delete(id) => planned("volume would be deleted", id),
            VolumeWrite::Attach(all) => all.iter().for_each(|new| {
                planned(&format!("volume would be attached to {}", new.node_id), &new.volume);
            }),
            VolumeWrite::Detach(all) => all.iter().for_each(|gone| {
                planned(&format!("volume would be detached from {}", gone.node_id), &gone.volume);
            }),
            VolumeWrite::Expand { volume, size } => {
                planned(&format!("volume would be expanded to {} bytes", size.at_least), volume);
            }
            VolumeWrite::Modify { volume, .. } => planned("volume would be modified", volume),
            VolumeWrite::CreateSnapshot(new) => planned("snapshot would be created", &new.name),
            VolumeWrite::DeleteSnapshot(id) => planned("snapshot would be deleted", id),
        }
    }

    fn log_tags(&self, change: TagChange, node: &NodeRef, tags: &Tags) {
        let NodeRef { name, provider_id, .. } = node;
        if self.is_news(
            &format!("tags of {name} {provider_id:?}"),
            (change == TagChange::Add, tags),
        ) {
            let what = match change {
                TagChange::Add => "this machine would get these tags",
                TagChange::Remove => "this machine would lose these tags",
            };
            let tags: Vec<String> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
            info!(node = name, provider_id, tags = tags.join(","), "dry run: {what}");
        }
    }

    /// Logs what would happen to a Service's load balancer.
    pub fn log_ensure(&self, service: &Service, targets: &[Target], what: EnsurePlan) {
        // The status is what others write; it does not change what would be requested.
        let asked = Service {
            ingress: Vec::new(),
            ..service.clone()
        };
        let service = name(service);
        if !self.is_news(
            &format!("balancer {service}"),
            format!("{what:?} {asked:?} {:?}", ids(targets)),
        ) {
            return;
        }
        let ports: Vec<String> = asked
            .ports
            .iter()
            .map(|port| format!("{}/{:?}", port.port, port.protocol))
            .collect();
        let what = match what {
            EnsurePlan::Nothing => "nothing to change: the cloud has this load balancer, with the Service's address",
            EnsurePlan::Change => {
                "this load balancer would be changed: the cloud has it, with another address than the Service shows"
            }
            EnsurePlan::Create => "this load balancer would be created",
        };
        info!(
            service,
            ports = ports.join(" "),
            nodes = targets.len(),
            names = short_list(targets),
            "dry run: {what}"
        );
    }

    fn log_targets(&self, service: &Service, targets: &[Target]) {
        let service = name(service);
        if self.is_news(&format!("balancer {service}"), format!("{:?}", ids(targets))) {
            info!(
                service,
                nodes = targets.len(),
                names = short_list(targets),
                "dry run: this load balancer would get these nodes"
            );
        }
    }

    fn log_creation(&self, route: &NewRoute) {
        let NewRoute { destination, node, .. } = route;
        if self.is_news(
            &format!("route to {destination}"),
            format!("{} {:?}", node.name, node.provider_id),
        ) {
            info!(destination, node = node.name, "dry run: this route would be created");
        }
    }

    fn log_deletion(&self, route: &Route) {
        let Route { id, destination, .. } = route;
        if self.is_news(&format!("route {id} to {destination}"), "delete") {
            let node = route.node.as_deref().unwrap_or("(none)");
            info!(id, destination, node, "dry run: this route would be deleted");
        }
    }
}

/// The cloud that the loops may have: in a dry run one that cannot be changed.
pub fn guarded(cloud: Arc<dyn Cloud>, dry_run: Option<Arc<DryRunLog>>) -> Arc<dyn Cloud> {
    match dry_run {
        Some(said) => Arc::new(ReadOnly::new(cloud, move |write| said.log(write))),
        None => cloud,
    }
}

fn name(service: &Service) -> String {
    format!("{}/{}", service.namespace, service.name)
}

/// What makes a set of targets another one: a Node's readiness does not.
fn ids(targets: &[Target]) -> Vec<(&str, Option<&str>)> {
    targets
        .iter()
        .map(|target| (target.node.name.as_str(), target.node.provider_id.as_deref()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decision_is_reported_once_and_a_new_one_again() {
        let said = DryRunLog::default();
        assert!(said.is_news("Node a patch", "x"));
        assert!(!said.is_news("Node a patch", "x"));
        assert!(said.is_news("Node b patch", "x"));
        assert!(said.is_news("Node a patch", "y"));
        assert!(said.is_news("Node a patch", "x"), "it came back to it");
        for number in 0..2 * REMEMBERED {
            said.is_news(&number.to_string(), 0);
        }
        assert!(lock(&said.0).len() <= REMEMBERED, "what is remembered is bounded");
    }

    #[test]
    fn a_long_list_of_nodes_is_cut() {
        let targets: Vec<Target> = (0..22)
            .map(|number| Target {
                node: cloudwit_model::NodeRef {
                    name: format!("n{number}"),
                    ..Default::default()
                },
                ready: true,
            })
            .collect();
        assert!(short_list(&targets).ends_with("n18 n19 <2 more>"));
        assert_eq!(short_list(&targets[..2]), "n0 n1");
    }
}
