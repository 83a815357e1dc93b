//! The instances behind a load balancer's targets, and which of their security groups lets traffic in.
//!
//! Both are kept for ten minutes as upstream does, so that the twentieth Service costs no further look at 500 instances. An instance that the
//! cloud does not know is no target; one that went since then makes its registration fail, which [`Aws::forget_instances`] follows.

use std::time::Duration;

use cloudwit_guest_sdk::map::Map;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::sort;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::annotations_settings::Settings;

/// How long they are believed (kubernetes/cloud-provider-aws, `defaultEC2InstanceCacheMaxAge`).
const KEPT: u64 = 10 * 60;

/// How long a call waits for another one that is asking.
const WAIT: Duration = Duration::from_secs(20);

/// Their place in the state.
const KEY: &str = "balancer-instances";

/// Most ids in one request, and most values of a filter.
const IDS: usize = 1000;
const VALUES: usize = 200;

/// Instances, and the groups that have to let traffic in to reach them. Both sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instances {
    /// `i-…`.
    pub ids: Vec<String>,
    /// `sg-…`; empty where the operator keeps them (`DisableSecurityGroupIngress`).
    pub groups: Vec<String>,
}

/// What is kept: since when, and the instances of each group, sorted by group; the group is empty where none is needed.
type Known = (u64, Vec<(String, Vec<String>)>);

impl Aws {
    /// The instances of these targets that exist.
    pub(crate) fn target_instances(&self, targets: &[Target], settings: &Settings) -> Result<Instances, Failure> {
        let mut ids = instance_ids(targets.iter().map(|target| &target.node));
        if !settings.node_labels.is_empty() {
            let nodes = self.context.nodes()?;
            let fitting = nodes
                .iter()
                .filter(|node| has_labels(&node.labels, &settings.node_labels));
            let fitting = instance_ids(fitting.map(|node| &node.ref_));
            ids.retain(|id| fitting.binary_search(id).is_ok());
        }
        self.known_instances(&ids)
    }

    /// These instances (sorted), as far as they exist, with their groups.
    pub(crate) fn known_instances(&self, ids: &[String]) -> Result<Instances, Failure> {
        let state = self.context.state();
        let stored = || state.get::<Known>(KEY).map(|stored| stored.value);
        let mut known = stored().unwrap_or_default();
        if missing(&known, ids).next().is_some() {
            let _lock = state.lock(KEY, WAIT);
            known = stored().unwrap_or_default();
            let unknown: Vec<&String> = missing(&known, ids).collect();
            if !unknown.is_empty() {
                let now = self.context.now();
                if known.1.is_empty() {
                    known.0 = now;
                }
                for (group, id) in self.ask_instances(&unknown)? {
                    match known.1.binary_search_by(|(one, _)| one.cmp(&group)) {
                        Ok(at) => known.1[at].1.push(id),
                        Err(at) => known.1.insert(at, (group, vec![id])),
                    }
                }
                let left = KEPT.saturating_sub(now.saturating_sub(known.0)).max(1);
                state.put(KEY, &known, Keep::at_most(Duration::from_secs(left)));
            }
        }
        let mut found = Instances::default();
        for (group, members) in &known.1 {
            let before = found.ids.len();
            found
                .ids
                .extend(members.iter().filter(|id| ids.binary_search(id).is_ok()).cloned());
            if found.ids.len() > before && !group.is_empty() {
                found.groups.push(group.clone());
            }
        }
        sort::sort(&mut found.ids);
        Ok(found)
    }

    /// Forgets what is known, after the cloud refused a registration: the next call asks anew.
    pub(crate) fn forget_instances(&self) {
        self.context.state().remove(KEY);
    }

    /// Group and id of each of these that exists.
    fn ask_instances(&self, ids: &[&String]) -> Result<Vec<(String, String)>, Failure> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for page in ids.chunks(IDS) {
            let call = self.api.ec2("DescribeInstances").list("InstanceId", page);
            match call.pages(&["reservationSet"], |item| Ok(read_reservation(item))) {
                Ok(reservations) => found.extend(reservations.into_iter().flatten()),
                // One that does not exist fails the whole call; a filter only leaves it out.
                Err(error) if error.code.starts_with("InvalidInstanceID") => {
                    for part in page.chunks(VALUES) {
                        let call = self.api.ec2("DescribeInstances").filter("instance-id", part);
                        let reservations = call.pages(&["reservationSet"], |item| Ok(read_reservation(item)))?;
                        found.extend(reservations.into_iter().flatten());
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        if self.config.global.disable_security_group_ingress {
            return Ok(found.into_iter().map(|(id, _)| (String::new(), id)).collect());
        }
        let mut groups: Vec<&String> = found.iter().flat_map(|(_, groups)| groups).collect();
        sort::sort(&mut groups);
        groups.dedup();
        let tagged = self.tagged_groups(&groups)?;
        found
            .iter()
            .map(|(id, groups)| Ok((node_group(id, groups, &tagged)?, id.clone())))
            .collect()
    }

    /// Those of the groups that carry the cluster's tag.
    fn tagged_groups(&self, ids: &[&String]) -> Result<Vec<String>, Failure> {
        let groups = self.security_groups_by_id(ids)?;
        Ok(groups
            .into_iter()
            .filter(|group| self.cluster.marks(&group.tags))
            .map(|group| group.id)
            .collect())
    }
}

/// The group of an instance that has to let traffic in: the only one with the cluster's tag, else the only one. Empty when it has none.
fn node_group(id: &str, groups: &[String], tagged: &[String]) -> Result<String, Failure> {
    let marked: Vec<&String> = groups.iter().filter(|group| tagged.contains(group)).collect();
    match (marked.as_slice(), groups) {
        ([one], _) => Ok((*one).clone()),
        ([], [one]) => Ok(one.clone()),
        ([], []) => Ok(String::new()),
        (several, all) => {
            let what = if several.is_empty() {
                "none of them carries"
            } else {
                "more than one carries"
            };
            let text = [
                "instance ",
                id,
                " is in the security groups ",
                &all.join(", "),
                ", and ",
                what,
            ];
            let advice = " the cluster's tag: tag the one that load balancers shall be let into, and only that";
            Err(Failure::invalid([&text.concat(), advice].concat()))
        }
    }
}

fn missing<'a>(known: &Known, ids: &'a [String]) -> impl Iterator<Item = &'a String> {
    let mut all: Vec<String> = known.1.iter().flat_map(|(_, ids)| ids).cloned().collect();
    sort::sort(&mut all);
    ids.iter().filter(move |id| all.binary_search(id).is_err())
}

/// Id and groups of the instances of a reservation that have not ended.
fn read_reservation(item: &Element) -> Vec<(String, Vec<String>)> {
    let instances = item
        .child("instancesSet")
        .into_iter()
        .flat_map(|set| set.children("item"));
    let alive = |one: &&Element| {
        let state = one.child("instanceState").and_then(|state| state.text("name"));
        !matches!(state, Some("terminated" | "shutting-down"))
    };
    let groups = |one: &Element| {
        let set = one.child("groupSet").into_iter().flat_map(|set| set.children("item"));
        set.filter_map(|group| group.text("groupId").map(Into::into)).collect()
    };
    instances
        .filter(alive)
        .filter_map(|one| Some((one.text("instanceId")?.into(), groups(one))))
        .collect()
}

/// The ids in provider ids, sorted. A Node without one comes with a later call; what is no instance (Fargate) cannot be a target.
fn instance_ids<'a>(nodes: impl Iterator<Item = &'a NodeRef>) -> Vec<String> {
    let id = |node: &NodeRef| {
        let id = node.provider_id.as_deref()?.rsplit('/').find(|part| !part.is_empty())?;
        id.starts_with("i-").then(|| id.to_owned())
    };
    let mut ids: Vec<String> = nodes.filter_map(id).collect();
    sort::sort(&mut ids);
    ids.dedup();
    ids
}

fn has_labels(labels: &[Pair], wanted: &[Pair]) -> bool {
    wanted.iter().all(|want| {
        let label = labels.iter().find(|label| label.key == want.key);
        label.is_some_and(|label| want.value.is_empty() || label.value == want.value)
    })
}

#[cfg(test)]
#[path = "target_instances_tests.rs"]
mod tests;
