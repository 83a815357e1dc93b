//! Where a volume goes, and where it can be attached: datastores and the zones they are in. What is chosen is pure.
//!
//! A datastore is in a zone when every host of the zone has it. Without zones it has to be on every host that runs the cluster's machines, as upstream's
//! shared datastores.

pub(crate) mod policies;
pub(crate) mod stores;
mod zones;

use std::collections::BTreeSet;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::config::settings::Categories;
use crate::instances::zones::Zone;
use stores::Store;

/// How the keys of places begin, as upstream's (`TopologyLabelsDomain`).
const DOMAIN: &str = "topology.csi.vmware.com/";

/// Keys of region and zone; none where the names of the categories cannot be part of a label.
pub(crate) fn topology_keys(categories: &Categories) -> Option<[String; 2]> {
    let is_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let is_name = |name: &str| {
        let bytes = name.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        bytes.len() <= 63 && bytes.iter().all(plain) && is_edge(bytes.first()) && is_edge(bytes.last())
    };
    let Categories { zone, region } = categories;
    let good = is_name(zone) && is_name(region) && zone != region;
    good.then(|| [format!("{DOMAIN}{region}"), format!("{DOMAIN}{zone}")])
}

/// A zone as a place.
pub(crate) fn topology(keys: &[String; 2], (zone, region): &Zone) -> Topology {
    let [region_key, zone_key] = keys;
    Topology {
        segments: vec![Pair::new(region_key, region), Pair::new(zone_key, zone)],
    }
}

/// Whether a zone is in this place, which may name a region alone.
fn is_in(keys: &[String; 2], zone: &Zone, place: &Topology) -> bool {
    let [region_key, zone_key] = keys;
    let fits = |key: &str, value: &str| place.get(key).is_none_or(|wanted| wanted == value);
    fits(zone_key, &zone.0) && fits(region_key, &zone.1)
}

/// Where a volume is requested.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wish {
    /// In any of these places, best first; empty for anywhere.
    pub places: Vec<Topology>,
    /// On the datastore with this URL or name.
    pub store: Option<String>,
    /// On the datastore with this URL, since its source is there.
    pub source: Option<String>,
}

impl Wish {
    /// Of a requested volume.
    pub(crate) fn of(new: &NewVolume, store: Option<String>) -> Self {
        let mut places = new.preferred.clone();
        places.extend(new.allowed.iter().filter(|one| !new.preferred.contains(one)).cloned());
        Self {
            places,
            store,
            source: None,
        }
    }

    /// Whether a volume on this datastore would be where it is requested.
    pub(crate) fn may_be(&self, zones: &[Zone], keys: Option<&[String; 2]>) -> bool {
        let Some(keys) = keys else { return true };
        let here = |place: &Topology| zones.iter().any(|zone| is_in(keys, zone, place));
        self.places.is_empty() || zones.is_empty() || self.places.iter().any(here)
    }

    /// The datastores that CNS may choose among: those of the best place that has any.
    ///
    /// # Errors
    /// `invalid` with the parameter, `exhausted` where a place has none.
    pub(crate) fn choose<'s>(
        &self,
        stores: &'s [Store],
        keys: Option<&[String; 2]>,
    ) -> Result<Vec<&'s Store>, Failure> {
        let named: Vec<&Store> = stores.iter().filter(|store| self.names(store)).collect();
        if let (true, Some(name)) = (named.is_empty(), self.store.as_ref().or(self.source.as_ref())) {
            return Err(Failure::invalid(format!(
                "parameter datastoreurl: there is no datastore \"{name}\" that this user may see"
            )));
        }
        let ready = |store: &&&Store| store.is_usable;
        let pick = |fits: &dyn Fn(&Store) -> bool| -> Vec<&'s Store> {
            let found = named.iter().filter(ready).filter(|store| fits(store));
            found.copied().collect()
        };
        let keys = keys.filter(|_| !self.places.is_empty());
        let chosen = match keys {
            Some(keys) => {
                let in_place = |place: &Topology| {
                    let found = pick(&|store| store.zones.iter().any(|zone| is_in(keys, zone, place)));
                    Some(found).filter(|found| !found.is_empty())
                };
                self.places.iter().find_map(in_place).unwrap_or_default()
            }
            None => pick(&|store| store.is_shared),
        };
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        let where_ = match keys {
            Some(_) => "every host of a zone in which the volume may be".to_owned(),
            None => "every host that runs machines of the cluster".to_owned(),
        };
        let text = match &self.store {
            Some(store) => format!("parameter datastoreurl: the datastore \"{store}\" is not usable on {where_}"),
            None => format!("no datastore is usable on {where_}"),
        };
        Err(match self.store {
            Some(_) => Failure::invalid(text),
            None => Failure::exhausted(text),
        })
    }

    fn names(&self, store: &Store) -> bool {
        let fits = |wanted: &Option<String>| wanted.as_ref().is_none_or(|wanted| store.is_named(wanted));
        fits(&self.store) && fits(&self.source)
    }
}

/// The zones whose hosts all have the datastore.
fn zones_of(hosts: &BTreeSet<String>, zones: &[(Zone, BTreeSet<String>)]) -> Vec<Zone> {
    let whole = zones.iter().filter(|(_, members)| members.is_subset(hosts));
    whole.map(|(zone, _)| zone.clone()).collect()
}

#[cfg(test)]
mod tests;
