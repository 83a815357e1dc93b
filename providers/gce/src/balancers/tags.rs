//! Network tags of Nodes: whom firewall rules are for.

use std::time::Duration;

use cloudwit_guest_sdk::keys::Hash;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use data_encoding::HEXLOWER;

use super::Task;
use super::wanted::Member;
use crate::instances::Machine;

/// How long the tags of the same machines are cached: they may change.
const KEPT: Duration = Duration::from_secs(300);

/// How long a call waits for another one that lists the same machines.
const WAIT: Duration = Duration::from_secs(20);

/// Machines in one list.
const NAMES: usize = 100;

impl Task<'_> {
    /// As configured; else of each machine the longest tag with which its name begins, as upstream has it. None where there are no machines.
    pub(super) fn tags(&self, machines: &[Member<'_>]) -> Result<Option<Vec<String>>, Failure> {
        let configured = &self.gce.config.global.node_tags;
        if !configured.is_empty() {
            return Ok(Some(configured.clone()));
        }
        if machines.is_empty() {
            return Ok(None);
        }
        let paths: Vec<String> = machines.iter().map(Member::path).collect();
        let hash = self
            .gce
            .context
            .keys()
            .digest(Hash::Sha256, paths.join("\n").as_bytes());
        let key = format!("tags/{}", HEXLOWER.encode(&hash));
        let state = self.gce.context.state();
        state
            .get_or_make(&key, Keep::at_most(KEPT), WAIT, || self.find_tags(machines))
            .map(Some)
    }

    fn find_tags(&self, machines: &[Member<'_>]) -> Result<Vec<String>, Failure> {
        let mut tags = Vec::new();
        for part in machines.chunks(NAMES) {
            let names: Vec<&str> = part.iter().map(|machine| machine.name).collect();
            let mut seen = Vec::new();
            self.gce
                .listed(&self.place.project, &names, &mut |machine| seen.push(machine))??;
            let is =
                |member: &Member<'_>, machine: &Machine| member.name == machine.name && member.zone == machine.zone();
            for member in part {
                let machine = seen.iter().find(|machine| is(member, machine));
                // A machine that is gone needs no rule.
                let Some(machine) = machine else { continue };
                tags.push(longest_tag(machine).ok_or_else(|| no_tag(machine))?.to_owned());
            }
        }
        tags.sort();
        tags.dedup();
        Ok(tags)
    }
}

fn longest_tag(machine: &Machine) -> Option<&str> {
    let tags = machine.tags.items.iter().map(String::as_str);
    tags.filter(|tag| machine.name.starts_with(tag))
        .max_by_key(|tag| tag.len())
}

fn no_tag(machine: &Machine) -> Failure {
    Failure::failed_precondition(format!(
        "machine {} has no network tag with which its name begins; add one, or write node-tags",
        machine.name
    ))
}
