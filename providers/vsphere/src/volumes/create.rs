//! Volumes come into being and go: found by their name, else created once.
//!
//! ```text
//!   name -> this cluster's volume of that name, on every vCenter -> there is one: is it as desired?
//!                                                                -> none: CnsCreateVolume on the datastores of the best place    -> a task: pending until it is done
//! ```
//!
//! Names are not unique in CNS, and calls about one name never overlap: what a lost task makes is found by its name.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Vsphere;
use crate::instances::named;
use crate::vcenter::session::Session;
use crate::volumes::MIB;
use crate::volumes::class::{Class, Policy, check_uses};
use crate::volumes::cns::task::TaskId;
use crate::volumes::cns::{Cns, element, id_element};
use crate::volumes::find::Found;
use crate::volumes::place::stores::Store;
use crate::volumes::place::{Wish, topology_keys};
use crate::volumes::snapshots::SnapshotId;

/// A desired volume.
struct Wanted<'n> {
    new: &'n NewVolume,
    class: Class,
    wish: Wish,
    /// What it is made of, and how large that is.
    source: Option<(SnapshotId, u64)>,
}

impl Wanted<'_> {
    /// How a volume that has the name differs from this; empty where it does not.
    fn differences(&self, found: &Found, policy: Option<&str>, keys: Option<&[String; 2]>) -> Vec<String> {
        let mut differences = Vec::new();
        let size = self.new.size;
        if !size.contains(found.volume.size()) {
            let most = size.at_most.map(|most| format!(" and at most {} MiB", most / MIB));
            let least = size.at_least.div_ceil(MIB);
            let has = found.volume.mib;
            differences.push(format!(
                "it has {has} MiB, wanted is at least {least} MiB{}",
                most.unwrap_or_default()
            ));
        }
        // An empty one: CNS has not read the policy yet.
        if let Some(policy) = policy.filter(|policy| !found.volume.policy.is_empty() && *policy != found.volume.policy)
        {
            let has = &found.volume.policy;
            differences.push(format!("its storage policy is {has}, wanted is {policy}"));
        }
        if !self.wish.may_be(&found.zones, keys) {
            differences.push("it is in another zone".into());
        }
        differences
    }
}

impl Vsphere {
    /// Creates a volume, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let doing = format!("creating the volume {}", new.name);
        match self.passed(token, &doing, None) {
            Ok(_) => {}
            // Another call came first: the volume is read below.
            Err(failure) if failure.kind == FailureKind::AlreadyExists => {}
            Err(failure) => return Err(failure),
        }
        known_parameters(&new.mutable_parameters, &[])?;
        check_uses(&new.uses)?;
        let class = Class::read(&new.parameters)?;
        let wish = Wish::of(new, class.store.clone());
        let mut wanted = Wanted {
            new,
            class,
            wish,
            source: None,
        };
        if let Some(found) = self.find_by_name(&new.name)? {
            return self.same(&wanted, found);
        }
        match &new.source {
            None => {}
            Some(VolumeSource::Volume(_)) => {
                let text = "a volume cannot be made of another one; make a snapshot of it";
                return Err(Failure::invalid(text));
            }
            Some(VolumeSource::Snapshot(id)) => {
                let missing = || Failure::not_found(format!("there is no snapshot {id}"));
                let snapshot = SnapshotId::read(id).ok_or_else(missing)?;
                let (origin, _) = self.find_snapshot(&snapshot)?.ok_or_else(missing)?;
                if !new.size.contains(origin.volume.size()) {
                    return Err(Failure::out_of_range(format!(
                        "a volume that is made of a snapshot is as large as that: {} MiB",
                        origin.volume.mib
                    )));
                }
                wanted.wish.source = Some(origin.volume.store.clone());
                wanted.source = Some((snapshot, origin.volume.mib));
            }
        }
        let task = self.begin_volume(&wanted, &doing)?;
        Err(task.pending(&doing))
    }

    /// The volume that has the name, where it is as desired.
    fn same(&self, wanted: &Wanted<'_>, found: Found) -> Result<Volume, Failure> {
        let cns = self.cns_at(found.vcenter)?;
        let policy = wanted.class.policy.as_ref();
        let policy = policy.map(|policy| policy_id(&cns, policy)).transpose()?;
        let keys = self.settings.categories.as_ref().and_then(topology_keys);
        let differences = wanted.differences(&found, policy.as_deref(), keys.as_ref());
        if !differences.is_empty() {
            return Err(Failure::already_exists(format!(
                "volume {} has the name {} already: {}",
                found.volume.id,
                wanted.new.name,
                differences.join("; ")
            )));
        }
        Ok(Volume {
            source: wanted.new.source.clone(),
            ..self.tell(found)?
        })
    }

    /// Begins to create it, on the first vCenter that has a datastore where it may be.
    fn begin_volume(&self, wanted: &Wanted<'_>, doing: &str) -> Result<TaskId, Failure> {
        let keys = self.settings.categories.as_ref().and_then(topology_keys);
        let mut refused: Option<Failure> = None;
        for vcenter in &self.settings.vcenters {
            let begun = self.unless_silent(vcenter, || {
                let cns = self.cns(vcenter);
                let stores = cns.stores(self.settings.categories.as_ref())?;
                let stores = wanted.wish.choose(&stores, keys.as_ref())?;
                let policy = wanted.class.policy.as_ref();
                let policy = policy.map(|policy| policy_id(&cns, policy)).transpose()?;
                cns.settled(doing)?;
                let spec = |session: &Session| self.spec(wanted, &stores, policy.as_deref(), session);
                let begun = cns.begin("CnsCreateVolume", &spec);
                let task = begun.inspect_err(|failure| {
                    if matches!(failure.kind, FailureKind::Unavailable | FailureKind::Other) {
                        cns.unsettle();
                    }
                })?;
                Ok(cns.task(&task))
            });
            match begun {
                Ok(task) => return Ok(task),
                // It may have begun there.
                Err(failure) if !matches!(failure.kind, FailureKind::Invalid | FailureKind::Exhausted) => {
                    return Err(failure);
                }
                // Another vCenter may have what this one has not.
                Err(failure) => {
                    let several = self.settings.vcenters.len() > 1;
                    let failure = if several { named(vcenter, failure) } else { failure };
                    refused = Some(match refused {
                        Some(first) if failure.kind == FailureKind::Invalid => first,
                        _ => failure,
                    });
                }
            }
        }
        Err(refused.unwrap_or_else(|| Failure::other("no vCenter is configured")))
    }

    /// `CnsVolumeCreateSpec`, in the order of the API.
    fn spec(&self, wanted: &Wanted<'_>, stores: &[&Store], policy: Option<&str>, session: &Session) -> String {
        let mib = match &wanted.source {
            Some((_, mib)) => *mib,
            None => wanted.new.size.at_least.div_ceil(MIB),
        };
        let mut spec = String::from("<createSpecs>");
        spec.push_str(&element("name", &wanted.new.name));
        spec.push_str("<volumeType>BLOCK</volumeType>");
        spec.extend(stores.iter().map(|store| store.reference.write("datastores")));
        spec.push_str("<metadata>");
        for name in ["containerCluster", "containerClusterArray"] {
            spec.push_str(&self.cluster(name, session));
        }
        spec.push_str("</metadata><backingObjectDetails xsi:type=\"CnsBlockBackingDetails\">");
        spec.push_str(&element("capacityInMb", &mib.to_string()));
        spec.push_str("</backingObjectDetails>");
        if let Some(policy) = policy {
            let id = element("profileId", policy);
            spec.push_str(&format!(
                "<profile xsi:type=\"VirtualMachineDefinedProfileSpec\">{id}</profile>"
            ));
        }
        if let Some((snapshot, _)) = &wanted.source {
            spec.push_str("<volumeSource xsi:type=\"CnsSnapshotVolumeSource\">");
            spec.push_str(&id_element("volumeId", &snapshot.volume));
            spec.push_str(&id_element("snapshotId", &snapshot.snapshot));
            spec.push_str("</volumeSource>");
        }
        spec.push_str("</createSpecs>");
        spec
    }

    /// `CnsContainerCluster`: whose volume it is. The user has to be the one that calls.
    fn cluster(&self, name: &str, session: &Session) -> String {
        let mut cluster = element("clusterType", "KUBERNETES");
        cluster.push_str(&element("clusterId", &self.cluster_id()));
        cluster.push_str(&element("vSphereUser", &session.user));
        cluster.push_str(&element("clusterFlavor", "VANILLA"));
        let distribution = self.settings.volumes.distribution.as_ref();
        cluster.extend(distribution.map(|text| element("clusterDistribution", text)));
        format!("<{name}>{cluster}</{name}>")
    }

    /// Deletes a volume with its disk. That there is none is success.
    ///
    /// # Errors
    /// As the contract's `volumes.delete`.
    pub(super) fn delete_disk(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let doing = format!("deleting {id}");
        match self.passed(token, &doing, Some(id)) {
            Err(failure) if failure.is_not_found() => return Ok(()),
            result => drop(result?),
        }
        let Some(found) = self.find_volume(id)? else {
            return Ok(());
        };
        if !found.machines.is_empty() {
            let volume = self.tell(found)?;
            let nodes: Vec<&str> = volume.attachments.iter().map(|one| one.node_id.as_str()).collect();
            let text = format!("volume {id} is attached to {}", nodes.join(" and "));
            return Err(Failure::failed_precondition(text));
        }
        let what = id_element("volumeIds", id) + "<deleteDisk>true</deleteDisk>";
        let cns = self.cns_at(found.vcenter)?;
        match cns.begin("CnsDeleteVolume", &|_| what.clone()) {
            Ok(task) => Err(cns.task(&task).pending(&doing)),
            Err(failure) if failure.is_not_found() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// What came of the task of an earlier call about this volume, or about a new one; none when there was none, or it is not known any more.
    ///
    /// # Errors
    /// `pending` while it runs; why it failed.
    pub(super) fn passed(
        &self,
        token: Option<&str>,
        doing: &str,
        volume: Option<&str>,
    ) -> Result<Option<Element>, Failure> {
        let Some(task) = TaskId::read(token) else {
            return Ok(None);
        };
        let mut vcenters = self.settings.vcenters.iter();
        let Some(vcenter) = vcenters.find(|vcenter| vcenter.name == task.vcenter) else {
            return Ok(None);
        };
        let states = self.cns(vcenter).tasks(&[&task])?;
        let Some(state) = states.get(&task) else {
            return Ok(None);
        };
        match state.result(volume) {
            None => Err(task.pending(doing)),
            Some(result) => Ok(Some(result?.clone())),
        }
    }
}

/// The id of a storage policy on this vCenter.
fn policy_id(cns: &Cns<'_>, policy: &Policy) -> Result<String, Failure> {
    match policy {
        Policy::Id(id) => Ok(id.clone()),
        Policy::Name(name) => cns.policy(name),
    }
}

#[cfg(test)]
mod tests;
