//! The instances behind a load balancer's targets, and which of their security groups lets traffic in.
//!
//! Both are kept for ten minutes as upstream does, so that the twentieth Service costs no further read of 500 instances. An instance that the
//! cloud does not find is no target; one that went since then makes its registration fail, which [`Aws::forget_instances`] follows.

use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::xml::Element;

use crate::Aws;
use crate::api::endpoints::Service as Api;
use crate::api::error::AwsError;
use crate::balancers::annotations::settings::Settings;
use crate::balancers::security_groups::Group;

/// How long they are cached (kubernetes/cloud-provider-aws, `defaultEC2InstanceCacheMaxAge`).
const KEPT: u64 = 10 * 60;

/// How long a call waits for another one with the same request.
const WAIT: Duration = Duration::from_secs(20);

/// Their place in the state.
const KEY: &str = "balancer-instances";

/// What is in the state after it was reported that they have no room there.
const TOLD: &str = "balancer-instances-told";

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
        let (found, asked) = known(&stored(), ids);
        if asked.is_empty() {
            return Ok(found);
        }
        let _lock = state.lock(KEY, WAIT);
        let mut kept = stored();
        let (found, asked) = known(&kept, ids);
        if asked.is_empty() {
            return Ok(found);
        }
        let now = self.context.now();
        if kept.is_empty() {
            kept = now.to_string();
        }
        let since = kept.lines().next().and_then(|since| since.parse().ok()).unwrap_or(now);
        note(&mut kept, self.ask_instances(&asked)?);
        let left = KEPT.saturating_sub(now.saturating_sub(since)).max(1);
        if !state.put(KEY, &kept, Keep::at_most(Duration::from_secs(left))) && state.get::<String>(TOLD).is_none() {
            state.put(TOLD, &String::new(), Keep::WHILE_LOADED);
            warn!(
                bytes = kept.len(),
                "the provider's state has no room for the instances behind load balancers, so each Service asks AWS for them anew; \
                 raise grants.state.maxBytes to twice these bytes"
            );
        }
        Ok(known(&kept, ids).0)
    }

    /// Drops the cache after the cloud refused a registration: the next call reads again.
    pub(crate) fn forget_instances(&self) {
        self.context.state().remove(KEY);
    }

    /// Group and id of each of these that exists.
    fn ask_instances(&self, ids: &[&str]) -> Result<Vec<(String, String)>, AwsError> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for page in ids.chunks(IDS) {
            let numbered = |(index, id): (usize, &&'_ str)| (format!("InstanceId.{}", (index + 1)), (*id).to_owned());
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
        groups.sort();
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
            Err(AwsError::invalid(format!("{}{advice}", text.concat())))
        }
    }
}

/// An instance's id without the `i-` that all begin with: with 18 bytes for each, 50,000 fit the state's 1 MiB.
fn number(id: &str) -> &str {
    id.strip_prefix("i-").unwrap_or(id)
}

/// Adds group and id of instances to what is kept: since when on the first line, then a line for each group (empty where none is needed)
/// and behind it the numbers of its instances.
fn note(kept: &mut String, mut machines: Vec<(String, String)>) {
    machines.sort_by(|a, b| a.0.cmp(&b.0));
    let mut line = None;
    for (group, id) in &machines {
        if line != Some(group) {
            kept.push('\n');
            kept.push_str(group);
            line = Some(group);
        }
        kept.push(' ');
        kept.push_str(number(id));
    }
}

/// Those of these instances (sorted) that are kept with their groups, and the ids of the others.
fn known<'a>(kept: &str, ids: &'a [String]) -> (Instances, Vec<&'a str>) {
    let mut found = Instances::default();
    let mut there = vec![false; ids.len()];
    for line in kept.lines().skip(1) {
        let mut words = line.split(' ');
        let group = words.next().unwrap_or_default();
        let mut used = false;
        for word in words {
            if let Ok(at) = ids.binary_search_by(|id| number(id).cmp(word)) {
                there[at] = true;
                used = true;
            }
        }
        if used && !group.is_empty() && !found.groups.iter().any(|one| one == group) {
            found.groups.push(group.into());
        }
    }
    let mut asked = Vec::new();
    for (id, there) in ids.iter().zip(there) {
        match there {
            true => found.ids.push(id.clone()),
            false => asked.push(id.as_str()),
        }
    }
    found.groups.sort();
    (found, asked)
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
    ids.sort();
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
mod tests;
