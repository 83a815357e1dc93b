//! The instances behind a load balancer's targets, and which of their security groups lets traffic in.
//!
//! Both are kept for ten minutes as upstream does, so that the twentieth Service costs no further look at 500 instances. An instance that the
//! cloud does not know is no target; one that went since then makes its registration fail, which [`Aws::forget_instances`] follows.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::sort;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::annotations_settings::Settings;
use crate::api_error::AwsError;
use crate::endpoints::Service as Api;
use crate::security_groups::Group;

/// How long they are believed (kubernetes/cloud-provider-aws, `defaultEC2InstanceCacheMaxAge`).
const KEPT: u64 = 10 * 60;

/// How long a call waits for another one that is asking.
const WAIT: Duration = Duration::from_secs(20);

/// Their place in the state.
const KEY: &str = "balancer-instances";

/// Most ids in one request.
const IDS: usize = 1000;

/// Instances, and the groups that have to let traffic in to reach them. Both sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instances {
    /// `i-…`.
    pub ids: Vec<String>,
    /// `sg-…`; empty where the operator keeps them (`DisableSecurityGroupIngress`).
    pub groups: Vec<String>,
}

impl Aws {
    /// The instances of these targets that exist.
    pub(crate) fn target_instances(&self, targets: &[Target], settings: &Settings) -> Result<Instances, AwsError> {
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
    pub(crate) fn known_instances(&self, ids: &[String]) -> Result<Instances, AwsError> {
        let state = self.context.state();
        let stored = || state.get::<String>(KEY).map(|stored| stored.value).unwrap_or_default();
        let mut kept = stored();
        if !unknown(&kept, ids).is_empty() {
            let _lock = state.lock(KEY, WAIT);
            kept = stored();
            let asked = unknown(&kept, ids);
            if !asked.is_empty() {
                let now = self.context.now();
                if kept.is_empty() {
                    kept = [&now.to_string(), "\n"].concat();
                }
                let since = kept.lines().next().and_then(|since| since.parse().ok()).unwrap_or(now);
                for (group, id) in self.ask_instances(&asked)? {
                    kept.push_str(&[&group, " ", &id, "\n"].concat());
                }
                let left = KEPT.saturating_sub(now.saturating_sub(since)).max(1);
                state.put(KEY, &kept, Keep::at_most(Duration::from_secs(left)));
            }
        }
        let mut found = Instances::default();
        for (id, group) in known(&kept) {
            if ids.binary_search_by(|one| one.as_str().cmp(id)).is_err() {
                continue;
            }
            found.ids.push(id.into());
            if !group.is_empty() && !found.groups.iter().any(|one| one == group) {
                found.groups.push(group.into());
            }
        }
        sort::sort(&mut found.ids);
        sort::sort(&mut found.groups);
        Ok(found)
    }

    /// Forgets what is known, after the cloud refused a registration: the next call asks anew.
    pub(crate) fn forget_instances(&self) {
        self.context.state().remove(KEY);
    }

    /// Group and id of each of these that exists.
    fn ask_instances(&self, ids: &[&str]) -> Result<Vec<(String, String)>, AwsError> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for page in ids.chunks(IDS) {
            let numbered =
                |(index, id): (usize, &&'_ str)| (["InstanceId.", &(index + 1).to_string()].concat(), (*id).to_owned());
            let numbered: Vec<(String, String)> = page.iter().enumerate().map(numbered).collect();
            let fields: Vec<(&str, &str)> = numbered.iter().map(|(name, id)| (name.as_str(), id.as_str())).collect();
            let reservations = match self.ask_all(Api::Ec2, "DescribeInstances", &fields, &["reservationSet"]) {
                // One that does not exist fails the whole call; a filter only leaves it out.
                Err(error) if error.code.starts_with("InvalidInstanceID") => {
                    self.ask_filtered("DescribeInstances", "instance-id", page, None, "reservationSet")?
                }
                answered => answered?,
            };
            for reservation in &reservations {
                read_reservation(reservation, &mut found);
            }
        }
        if self.config.global.disable_security_group_ingress {
            return Ok(found.into_iter().map(|(id, _)| (String::new(), id)).collect());
        }
        let mut groups: Vec<String> = Vec::new();
        for (_, members) in &found {
            groups.extend_from_slice(members);
        }
        sort::sort(&mut groups);
        groups.dedup();
        let mut tagged = self.security_groups_by_id(&groups)?;
        tagged.retain(|group| self.cluster.marks(&group.tags));
        let mut machines = Vec::new();
        for (id, groups) in found {
            machines.push((node_group(&id, &groups, &tagged)?, id));
        }
        Ok(machines)
    }
}

/// The group of an instance that has to let traffic in: the only one with the cluster's tag, else the only one. Empty when it has none.
fn node_group(id: &str, groups: &[String], tagged: &[Group]) -> Result<String, AwsError> {
    let marked: Vec<&String> = groups
        .iter()
        .filter(|id| tagged.iter().any(|group| group.id == **id))
        .collect();
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
            Err(AwsError::invalid([&text.concat(), advice].concat()))
        }
    }
}

/// What is kept, as id and group: since when on the first line, then a line for each instance with its group, which is empty where none is
/// needed.
fn known(kept: &str) -> Vec<(&str, &str)> {
    let mut known = Vec::new();
    for line in kept.lines().skip(1) {
        if let Some((group, id)) = line.split_once(' ') {
            known.push((id, group));
        }
    }
    known
}

fn unknown<'a>(kept: &str, ids: &'a [String]) -> Vec<&'a str> {
    let mut there: Vec<&str> = known(kept).into_iter().map(|(id, _)| id).collect();
    sort::sort(&mut there);
    ids.iter()
        .map(String::as_str)
        .filter(|id| there.binary_search(id).is_err())
        .collect()
}

/// Id and groups of the instances of a reservation that have not ended.
fn read_reservation(item: &Element, found: &mut Vec<(String, Vec<String>)>) {
    for one in item.all(&["instancesSet", "item"]) {
        let state = one.child("instanceState").and_then(|state| state.text("name"));
        let Some(id) = one
            .text("instanceId")
            .filter(|_| !matches!(state, Some("terminated" | "shutting-down")))
        else {
            continue;
        };
        let groups = one
            .all(&["groupSet", "item"])
            .filter_map(|group| group.text("groupId").map(Into::into));
        found.push((id.into(), groups.collect()));
    }
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
