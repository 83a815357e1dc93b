//! Load balancers, Classic ones and, for Services of the class `alibabacloud.com/nlb`, Network ones, under upstream's names.
//!
//! ```text
//!   annotations.rs, fields.rs -> wanted.rs   what the Service requests
//!   names.rs, task.rs                        its owner, and finding it
//!   flow.rs                                  reads, and returns the next change: the load balancer, groups.rs, listeners.rs
//!   requests/                                the requests of both kinds: clb.rs, nlb.rs
//!   work.rs                                  makes it: the only place that writes
//! ```
//!
//! Nothing is cached that cannot be seen in the cloud again: each call reads what is there.

mod annotations;
mod fields;
mod flow;
mod groups;
mod listeners;
mod names;
mod requests;
mod task;
mod wanted;
mod work;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::reconcile::Rounds;
use cloudwit_guest_sdk::targets;

use crate::{Alibaba, instance_id};
use annotations::with_present_names;
use names::Kind;
use requests::clb::Clb;
use requests::nlb::Nlb;
use task::{Found, Task};
use wanted::Wanted;

impl LoadBalancers for Alibaba {
    fn get(&self, service: &Service) -> Result<Option<Balancer>, Failure> {
        let service = with_present_names(service);
        let task = Task::new(self, &service);
        let proxy = annotations::is(&service, "proxy-protocol", "on");
        let found = task.find_to_delete()?;
        Ok(found.map(|found| Balancer::at(ingress(&task, &found, proxy))))
    }

    fn ensure(&self, service: &Service, targets: &[Target], token: Option<&str>) -> Result<Balancer, Failure> {
        let service = with_present_names(service);
        let task = Task::new(self, &service);
        let wanted = Wanted::new(&service, &task.names, self.members(&service, targets)?)?;
        if token.is_none() {
            annotations::warn(&wanted, task.kind, &self.context);
        }
        let found = Rounds::new(self, &task.names.balancer, token)?.run(|| match task.kind {
            Kind::Clb => flow::next::<Clb>(&task, &wanted),
            Kind::Nlb => flow::next::<Nlb>(&task, &wanted),
        })?;
        match ingress(&task, &found, wanted.proxy) {
            none if none.is_empty() => Err(Failure::unavailable(format!(
                "the load balancer {} has no address yet",
                found.id
            ))),
            ingress => Ok(Balancer::at(ingress)),
        }
    }

    fn update_targets(
        &self,
        service: &Service,
        targets: &[Target],
        token: Option<&str>,
    ) -> Result<Vec<AnnotationChange>, Failure> {
        let service = with_present_names(service);
        let task = Task::new(self, &service);
        let members = wanted::only_members(&service, self.members(&service, targets)?)?;
        Rounds::new(self, &task.names.balancer, token)?.run(|| match task.kind {
            Kind::Clb => flow::next_members::<Clb>(&task, &members),
            Kind::Nlb => flow::next_members::<Nlb>(&task, &members),
        })?;
        Ok(Vec::new())
    }

    fn delete(&self, service: &Service, token: Option<&str>) -> Result<Vec<AnnotationChange>, Failure> {
        let service = with_present_names(service);
        let task = Task::new(self, &service);
        Rounds::new(self, &task.names.balancer, token)?.run(|| match task.kind {
            Kind::Clb => flow::next_deletion::<Clb>(&task),
            Kind::Nlb => flow::next_deletion::<Nlb>(&task),
        })?;
        Ok(Vec::new())
    }
}

impl Alibaba {
    /// Instances of the targets, sorted; those alone whose Nodes have the labels of the annotation `backend-label`.
    fn members(&self, service: &Service, targets: &[Target]) -> Result<Vec<String>, Failure> {
        let mut reader = annotations::TABLE.read(service);
        let labels = reader.map("backend-label").unwrap_or_default();
        reader.finish()?;
        let nodes = match labels.is_empty() {
            true => Vec::new(),
            false => self.context.nodes()?,
        };
        let has = |node: &&ClusterNode, (key, value): &(&str, &str)| node.labels.contains(&Pair::new(*key, *value));
        let labelled = nodes.iter().filter(|node| labels.iter().all(|label| has(node, label)));
        let chosen: Vec<&str> = labelled.map(|node| node.ref_.name.as_str()).collect();
        let fits = |target: &&Target| labels.is_empty() || chosen.contains(&target.node.name.as_str());
        let region = self.global().region();
        Ok(targets::ids(targets.iter().filter(fits), |id| {
            instance_id(id, region).map(str::to_owned)
        }))
    }
}

/// Where it is reached. Connections with the PROXY protocol must not be cut short inside the cluster.
fn ingress(task: &Task<'_>, found: &Found, proxy: bool) -> Vec<Ingress> {
    let name = match task.kind {
        Kind::Clb => annotations::text(task.service, "hostname").unwrap_or_default(),
        Kind::Nlb => found.text("DNSName"),
    };
    match (name, found.text("Address")) {
        ("", "") => Vec::new(),
        ("", ip) => vec![Ingress::ip(ip).proxied(proxy)],
        (name, _) => vec![Ingress::hostname(name)],
    }
}

#[cfg(test)]
mod tests;
