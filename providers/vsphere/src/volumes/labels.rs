//! Disks that PersistentVolumes name themselves (`vsphereVolume`): where the datastore is that their path begins with.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::{Each, InTreeSource, InTreeVolume, place_labels};

use crate::Vsphere;
use crate::config::Config;
use crate::instances::named;
use crate::volumes::place::stores::Store;

/// The datastore of a path such as `[vsanDatastore] kubevols/disk.vmdk`.
fn store_of(path: &str) -> Option<&str> {
    let (store, file) = path.trim().strip_prefix('[')?.split_once(']')?;
    (!store.is_empty() && !file.trim().is_empty()).then_some(store)
}

/// The labels of disks on a datastore with this name; several datacenters may have one each.
fn labels(stores: &[Store], path: &str) -> Result<Vec<Pair>, Failure> {
    let Some(name) = store_of(path) else {
        let text = format!("\"{path}\" is no path of a disk; write it like [DATASTORE] FOLDER/DISK.vmdk");
        return Err(Failure::not_found(text));
    };
    let mut named = stores.iter().filter(|store| store.name == name);
    let store = match (named.next(), named.next()) {
        (Some(only), None) => only,
        (None, _) => return Err(Failure::not_found(format!("there is no datastore {name}"))),
        (Some(one), Some(other)) if one.zones == other.zones => one,
        (Some(one), Some(other)) => {
            return Err(Failure::invalid(format!(
                "{} and {} are both called {name}; give each a name of its own",
                one.url, other.url
            )));
        }
    };
    let zones: Vec<&str> = store.zones.iter().map(|(zone, _)| zone.as_str()).collect();
    let mut regions: Vec<&str> = store.zones.iter().map(|(_, region)| region.as_str()).collect();
    regions.dedup();
    // Of several regions none is the disk's.
    let region = regions.first().copied().filter(|_| regions.len() == 1);
    Ok(place_labels(&zones, region))
}

impl VolumeLabels for Vsphere {
    fn label_sources(_: Option<&Config>) -> Vec<InTreeSource> {
        vec![InTreeSource::VsphereVolume]
    }

    fn volume_labels(&self, volumes: &[InTreeVolume]) -> Result<Each<Vec<Pair>>, Failure> {
        let mut stores = Vec::new();
        for vcenter in &self.settings.vcenters {
            let read = self.cns(vcenter).stores(self.settings.categories.as_ref());
            stores.extend(read.map_err(|failure| named(vcenter, failure))?);
        }
        Ok(volumes.iter().map(|volume| labels(&stores, &volume.id)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcenter::soap::Reference;

    fn store(name: &str, zones: &[(&str, &str)]) -> Store {
        Store {
            reference: Reference::new("Datastore", name),
            name: name.into(),
            url: format!("ds:///vmfs/volumes/{name}-{}/", zones.len()),
            is_usable: true,
            is_shared: true,
            zones: zones
                .iter()
                .map(|(zone, region)| ((*zone).into(), (*region).into()))
                .collect(),
        }
    }

    #[test]
    fn labels_are_those_of_the_datastore() {
        let stores = [
            store("local", &[("a", "north")]),
            store("shared", &[("a", "north"), ("b", "north")]),
            store("far", &[("a", "north"), ("c", "south")]),
            store("twice", &[("a", "north")]),
            store("twice", &[]),
        ];
        let of = |path: &str| {
            let labels = labels(&stores, path)?;
            Ok::<_, Failure>(labels.into_iter().map(|label| label.value).collect::<Vec<_>>())
        };
        assert_eq!(of("[local] kubevols/disk.vmdk").unwrap(), ["a", "north"]);
        assert_eq!(of(" [shared]  disk.vmdk").unwrap(), ["a__b", "north"]);
        assert_eq!(of("[far] disk.vmdk").unwrap(), ["a__c"]);
        assert!(of("[gone] disk.vmdk").unwrap_err().is_not_found());
        for path in ["disk.vmdk", "[local]", "[] disk.vmdk"] {
            assert!(of(path).unwrap_err().is_not_found(), "{path}");
        }
        assert_eq!(of("[twice] disk.vmdk").unwrap_err().kind, FailureKind::Invalid);
    }
}
