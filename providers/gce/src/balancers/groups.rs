//! Instance groups: the machines behind all internal load balancers of the cluster, one group in each zone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::serde_json::{Value, json};
use serde::Deserialize;

use super::parts::collection;
use super::wanted::Wanted;
use super::{Task, names};
use crate::api::{Page, Paged};
use crate::links;
use crate::resource::text;
use crate::work::Work;

/// Machines in a group, and in one change of it.
const MOST: usize = 1000;

/// Calls for other Services change the same groups.
const LOCK: (&str, Duration) = ("instance-groups", Duration::from_secs(10));

/// A page of groups, by scope.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Groups {
    items: BTreeMap<String, Scope>,
    next_page_token: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Scope {
    instance_groups: Vec<Value>,
}

impl Paged for Groups {
    fn next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

impl Task<'_> {
    /// Brings the groups in line. Gives the paths of those with machines, and whether something was done.
    pub(super) fn groups(&self, wanted: &Wanted<'_>, work: &mut Work<'_>) -> Result<(Vec<String>, bool), Failure> {
        // Of many Services of one call the first has brought them in line.
        if let Some(known) = &*self.gce.groups.borrow() {
            return Ok((known.clone(), false));
        }
        let _lock = self.gce.context.state().lock(LOCK.0, LOCK.1);
        let seen = self.seen_groups()?;
        let zones: BTreeSet<&str> = wanted.machines.iter().map(|machine| machine.zone).collect();
        let (mut paths, mut changed) = (Vec::new(), false);
        for zone in &zones {
            let path = self.group_path(zone);
            if seen.contains(&path) {
                let machines = wanted.machines.iter().filter(|machine| machine.zone == *zone);
                let machines: Vec<String> = machines.take(MOST).map(|machine| machine.path()).collect();
                changed |= self.group_members(work, &path, &machines)?;
            } else {
                let network = self.link(&self.place.network);
                let body = json!({ "name": names::group(&self.cluster_id), "network": network });
                work.create(collection(&path), &body)?;
                changed = true;
            }
            paths.push(path);
        }
        for path in seen.iter().filter(|path| !paths.contains(path)) {
            changed |= self.group_members(work, path, &[])?;
        }
        if !changed {
            *self.gce.groups.borrow_mut() = Some(paths.clone());
        }
        Ok((paths, changed))
    }

    fn group_path(&self, zone: &str) -> String {
        format!(
            "projects/{}/zones/{zone}/instanceGroups/{}",
            self.place.project,
            names::group(&self.cluster_id)
        )
    }

    /// Paths of the cluster's groups in all zones.
    pub(super) fn seen_groups(&self) -> Result<Vec<String>, Failure> {
        let filter = format!("name = \"{}\"", names::group(&self.cluster_id));
        let path = format!("/projects/{}/aggregated/instanceGroups", self.place.project);
        let mut found = Vec::new();
        self.gce.api.pages(&path, &[("filter", &filter)], |page: Groups| {
            let groups = page.items.into_values().flat_map(|scope| scope.instance_groups);
            found.extend(groups.map(|group| links::tail(text(&group, "selfLink")).to_owned()));
            Ok(())
        })?;
        Ok(found)
    }

    fn group_members(&self, work: &mut Work<'_>, path: &str, wished: &[String]) -> Result<bool, Failure> {
        let mut seen = Vec::new();
        self.gce
            .api
            .ask_pages(&format!("/{path}/listInstances"), &json!({}), |page: Page| {
                seen.extend(
                    page.items
                        .iter()
                        .map(|item| links::tail(text(item, "instance")).to_owned()),
                );
                Ok(())
            })?;
        let add: Vec<&String> = wished.iter().filter(|path| !seen.contains(path)).collect();
        let remove: Vec<&String> = seen.iter().filter(|path| !wished.contains(path)).collect();
        // First out, then in: a group may be full.
        for (what, paths) in [("removeInstances", &remove), ("addInstances", &add)] {
            if !paths.is_empty() {
                let instances: Vec<Value> = paths
                    .iter()
                    .map(|path| json!({ "instance": self.link(path) }))
                    .collect();
                work.change(
                    "POST",
                    &format!("{path}/{what}"),
                    Some(&json!({ "instances": instances })),
                )?;
            }
        }
        Ok(!add.is_empty() || !remove.is_empty())
    }
}
