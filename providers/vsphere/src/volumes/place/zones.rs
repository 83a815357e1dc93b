//! Zones of hosts, by the tags that mark those of machines.

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;

use crate::config::settings::Categories;
use crate::instances::zones::{Zone, choose};
use crate::vcenter::ancestors::Ancestors;
use crate::vcenter::soap::Reference;
use crate::vcenter::tags::Tags;
use crate::volumes::cns::Cns;

/// Zones, each with its hosts. A host without both tags is in none.
pub(super) fn of_hosts(
    cns: &Cns<'_>,
    categories: &Categories,
    hosts: &BTreeSet<String>,
) -> Result<Vec<(Zone, BTreeSet<String>)>, Failure> {
    let hosts: Vec<Reference> = hosts.iter().map(|host| Reference::new("HostSystem", host)).collect();
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let above = cns
        .sessions
        .with(|session| Ancestors::read(&cns.sessions, session, &hosts))?;
    let mut objects: Vec<&Reference> = Vec::new();
    for object in hosts.iter().flat_map(|host| above.chain(host)) {
        if !objects.contains(&object) {
            objects.push(object);
        }
    }
    let tags = Tags::new(cns.vcenter, cns.context).attached(&objects)?;
    let mut zones: BTreeMap<Zone, BTreeSet<String>> = BTreeMap::new();
    for host in &hosts {
        if let Some(zone) = choose(above.chain(host), &tags, categories) {
            zones.entry(zone).or_default().insert(host.value.clone());
        }
    }
    Ok(zones.into_iter().collect())
}
