//! Volumes by id and by name, over all vCenters. One that cannot be queried is no evidence that a volume is gone.

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;
use crate::config::settings::VCenterSettings;
use crate::instances::named;
use crate::instances::zones::Zone;
use crate::vcenter::soap::Reference;
use crate::volumes::KIND;
use crate::volumes::cns::Cns;
use crate::volumes::cns::volume::{CnsVolume, Filter, is_id};
use crate::volumes::place;

/// Volumes of one name that are read; more than one is a conflict.
const NAMESAKES: u64 = 10;

/// A volume that is there.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The place of its vCenter in the configuration.
    pub vcenter: usize,
    /// The error of CNS.
    pub volume: CnsVolume,
    /// The zones it can be attached in.
    pub zones: Vec<Zone>,
    /// The machines that have it.
    pub machines: Vec<Reference>,
}

/// Volumes by id; none where every vCenter reports it as not found.
pub(crate) type Finds = BTreeMap<String, Result<Option<Found>, Failure>>;

/// Volumes of one vCenter with their ids, in the order of its answer.
pub(crate) type Whole = Vec<(String, Result<Found, Failure>)>;

/// Volumes by id in the contract's words.
pub(crate) type Told = BTreeMap<String, Result<Option<Volume>, Failure>>;

impl Vsphere {
    /// CNS of a vCenter.
    pub(crate) fn cns<'a>(&self, vcenter: &'a VCenterSettings) -> Cns<'a> {
        Cns::new(vcenter, self.context)
    }

    /// CNS of the vCenter in this place of the configuration.
    pub(crate) fn cns_at(&self, place: usize) -> Result<Cns<'_>, Failure> {
        let vcenter = self.settings.vcenters.get(place);
        let vcenter = vcenter.ok_or_else(|| Failure::aborted("the vCenter is not configured any more"))?;
        Ok(self.cns(vcenter))
    }

    /// The id that distinguishes the volumes of this cluster in CNS.
    pub(crate) fn cluster_id(&self) -> String {
        let own = self.settings.volumes.cluster_id.clone();
        own.unwrap_or_else(|| {
            let mut name = self.context.cluster().name;
            if name.is_empty() {
                name.push_str("kubernetes");
            }
            name
        })
    }

    /// The volumes with these ids.
    pub(crate) fn find_volumes(&self, ids: &[&str]) -> Finds {
        let mut finds = Finds::new();
        let mut open: Vec<&str> = ids.iter().copied().filter(|id| is_id(id)).collect();
        let mut silent: Option<Failure> = None;
        for (place, vcenter) in self.settings.vcenters.iter().enumerate() {
            if open.is_empty() {
                break;
            }
            let filter = Filter {
                ids: &open,
                name: None,
                cluster: None,
                from: 0,
                most: u64::try_from(open.len()).unwrap_or(u64::MAX),
            };
            match self.unless_silent(vcenter, || self.found(place, vcenter, &filter)) {
                Ok(found) => {
                    finds.extend(found.into_iter().map(|(id, one)| (id, one.map(Some))));
                }
                Err(failure) => silent = silent.or(Some(named(vcenter, failure))),
            }
            open.retain(|id| !finds.contains_key(*id));
        }
        for id in open {
            finds.insert(id.into(), silent.clone().map_or(Ok(None), Err));
        }
        finds
    }

    /// The volume with this id.
    ///
    /// # Errors
    /// Why that is not known.
    pub(crate) fn find_volume(&self, id: &str) -> Result<Option<Found>, Failure> {
        self.find_volumes(&[id]).remove(id).unwrap_or(Ok(None))
    }

    /// This cluster's volume with this name.
    ///
    /// # Errors
    /// Why that is not known; `conflict` when there are several.
    pub(crate) fn find_by_name(&self, name: &str) -> Result<Option<Found>, Failure> {
        let cluster = self.cluster_id();
        let filter = Filter {
            ids: &[],
            name: Some(name),
            cluster: Some(&cluster),
            from: 0,
            most: NAMESAKES,
        };
        let mut all = Vec::new();
        for (place, vcenter) in self.settings.vcenters.iter().enumerate() {
            // One that does not answer may have it.
            let found = self.unless_silent(vcenter, || self.found(place, vcenter, &filter));
            for (_, one) in found.map_err(|failure| named(vcenter, failure))? {
                let one = one?;
                if one.volume.name == name {
                    all.push(one);
                }
            }
        }
        if let [one, other, ..] = all.as_slice() {
            let (one, other) = (&one.volume.id, &other.volume.id);
            return Err(Failure::conflict(format!(
                "the volumes {one} and {other} both have the name {name}; delete the one that no PersistentVolume has"
            )));
        }
        Ok(all.pop())
    }

    /// The volumes of one vCenter that a filter fits, by their ids.
    fn found(&self, place: usize, vcenter: &VCenterSettings, filter: &Filter<'_>) -> Result<Whole, Failure> {
        let cns = self.cns(vcenter);
        let volumes = cns.query(filter)?.entries;
        self.whole(place, &cns, volumes)
    }

    /// Volumes of one vCenter with where they are and which machines have them.
    pub(crate) fn whole(&self, place: usize, cns: &Cns<'_>, volumes: Vec<CnsVolume>) -> Result<Whole, Failure> {
        if volumes.is_empty() {
            return Ok(Vec::new());
        }
        let urls: BTreeSet<&str> = volumes.iter().map(|volume| volume.store.as_str()).collect();
        let located = cns.located(&urls, self.settings.categories.as_ref())?;
        let placed = volumes.iter().filter_map(|volume| {
            let (store, _) = located.get(&volume.store)?;
            Some((volume.id.as_str(), store))
        });
        let holders = cns.holders(&placed.collect::<Vec<_>>())?;
        let one = |volume: CnsVolume| {
            let Some((_, zones)) = located.get(&volume.store) else {
                let (id, store) = (&volume.id, &volume.store);
                let text = format!("volume {id} is on {store}, a datastore that this user may not see");
                return (volume.id.clone(), Err(Failure::denied(text)));
            };
            let machines = holders.get(&volume.id).cloned().unwrap_or_default();
            let found = Found {
                vcenter: place,
                zones: zones.clone(),
                machines,
                volume,
            };
            (found.volume.id.clone(), Ok(found))
        };
        Ok(volumes.into_iter().map(one).collect())
    }

    /// Volumes in the contract's words: machines by the ids that they have in CSINodes.
    pub(crate) fn told(&self, finds: &mut Finds) -> Told {
        let mut told = Told::new();
        for place in 0..self.settings.vcenters.len() {
            let here = |found: &&Found| found.vcenter == place;
            let found = finds.values().filter_map(|one| one.as_ref().ok()?.as_ref());
            let machines: BTreeSet<&str> = found
                .filter(here)
                .flat_map(|found| &found.machines)
                .map(|machine| machine.value.as_str())
                .collect();
            let ids = match machines.is_empty() {
                true => Ok(BTreeMap::new()),
                false => self.cns_at(place).and_then(|cns| cns.machine_ids(&machines)),
            };
            for (id, one) in &*finds {
                let Ok(Some(found)) = one else { continue };
                if found.vcenter == place {
                    let volume = ids.clone().map(|ids| Some(self.volume(found, &ids)));
                    told.insert(id.clone(), volume);
                }
            }
        }
        for (id, one) in std::mem::take(finds) {
            if let Err(failure) = one {
                told.insert(id, Err(failure));
            }
        }
        told
    }

    /// One volume in the contract's words.
    pub(crate) fn tell(&self, found: Found) -> Result<Volume, Failure> {
        let id = found.volume.id.clone();
        let mut finds = Finds::from([(id.clone(), Ok(Some(found)))]);
        let told = self.told(&mut finds).remove(&id).unwrap_or(Ok(None))?;
        told.ok_or_else(|| no_volume(&id))
    }

    fn volume(&self, found: &Found, ids: &BTreeMap<String, String>) -> Volume {
        let keys = self.settings.categories.as_ref().and_then(place::topology_keys);
        let topology = keys.map(|keys| found.zones.iter().map(|zone| place::topology(&keys, zone)).collect());
        // A machine without an id is none of this cluster; it has the volume all the same.
        let node = |machine: &Reference| Attachment {
            node_id: ids.get(&machine.value).unwrap_or(&machine.value).clone(),
            read_only: false,
        };
        Volume {
            topology: topology.unwrap_or_default(),
            context: vec![Pair::new(KIND.0, KIND.1)],
            attachments: found.machines.iter().map(node).collect(),
            ..Volume::new(&found.volume.id, found.volume.size())
        }
    }
}

/// The failure about an id of nothing.
pub(crate) fn no_volume(id: &str) -> Failure {
    Failure::not_found(format!("there is no volume {id}"))
}
