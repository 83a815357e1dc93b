//! A disk as the cloud describes it.

pub(crate) mod find;
pub(crate) mod ids;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::volumes::class::sku::Sku;
use crate::volumes::class::tags::{CACHING, CREATED_BY, OURS, WRITE_ACCELERATOR};
use crate::volumes::names::NodeNames;
use crate::volumes::{GIB, ZONE_KEY};
use ids::{DISK, is_id};

/// Zones of a region that disks with copies in several zones are reported in, as upstream (`CreateVolume`): no region has more.
const ZONES: [&str; 4] = ["1", "2", "3", "4"];

/// Disks of this size or larger have no cache, in GiB (Microsoft, "Azure premium storage: design for high performance").
const UNCACHED: u64 = 4_096;

/// A disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Its resource id.
    pub id: String,
    /// Region.
    pub location: String,
    /// Number of its zone; none for one in no zone, and for one with copies in several.
    zone: Option<String>,
    /// Name of its type, such as `Premium_LRS`.
    pub sku: String,
    /// Size in GiB.
    pub gib: u64,
    /// State of its last change, in small letters.
    state: String,
    /// Ids of the machines that it is attached to.
    pub machines: Vec<String>,
    /// By how many machines it can be used at once.
    pub max_shares: u64,
    /// Id of the snapshot or disk that it was made of; may be empty.
    pub source: String,
    /// Id of the encryption set; may be empty.
    pub encryption_set: String,
    /// Operations a second.
    pub iops: Option<u64>,
    /// Throughput in MB a second.
    pub mbps: Option<u64>,
    tags: BTreeMap<String, String>,
}

/// A text in an answer, empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Tags of a resource.
pub(crate) fn tags(value: &Value) -> BTreeMap<String, String> {
    let tags = value.get("tags").and_then(Value::as_object).into_iter().flatten();
    tags.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// Whether upstream's driver, the in-tree plugin or this provider made what has these tags.
pub(crate) fn is_of_kubernetes(tags: &BTreeMap<String, String>) -> bool {
    tags.get(CREATED_BY).is_some_and(|by| by == OURS)
        || tags.keys().any(|key| key.starts_with("kubernetes.io-created-for-"))
}

/// The same region, in the form of topologies: `West Europe` is `westeurope`.
pub(crate) fn region(location: &str) -> String {
    location.to_ascii_lowercase().replace(' ', "")
}

impl Disk {
    /// Of an answer, or of an item of a list.
    pub(crate) fn read(value: &Value) -> Self {
        let number = |pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
        let others = value
            .get("managedByExtended")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let mut machines: Vec<String> = Vec::new();
        for machine in others.filter_map(Value::as_str).chain(Some(text(value, "/managedBy"))) {
            if !machine.is_empty() && !machines.iter().any(|known| known.eq_ignore_ascii_case(machine)) {
                machines.push(machine.to_owned());
            }
        }
        Self {
            id: text(value, "/id").to_owned(),
            location: region(text(value, "/location")),
            zone: Some(text(value, "/zones/0"))
                .filter(|zone| !zone.is_empty())
                .map(str::to_owned),
            sku: text(value, "/sku/name").to_owned(),
            gib: number("/properties/diskSizeGB").unwrap_or_default(),
            state: text(value, "/properties/provisioningState").to_ascii_lowercase(),
            machines,
            max_shares: number("/properties/maxShares").unwrap_or(1),
            source: text(value, "/properties/creationData/sourceResourceId").to_owned(),
            encryption_set: text(value, "/properties/encryption/diskEncryptionSetId").to_owned(),
            iops: number("/properties/diskIOPSReadWrite"),
            mbps: number("/properties/diskMBpsReadWrite"),
            tags: tags(value),
        }
    }

    /// Its size.
    pub(crate) fn bytes(&self) -> u64 {
        self.gib.saturating_mul(GIB)
    }

    /// Whether its last change failed, which for one that was never used is its creation.
    pub(crate) fn is_failed(&self) -> bool {
        self.state == "failed"
    }

    /// Whether it is being deleted.
    pub(crate) fn is_going(&self) -> bool {
        self.state == "deleting"
    }

    /// Whether the cloud works on it.
    pub(crate) fn is_changing(&self) -> bool {
        !matches!(self.state.as_str(), "succeeded" | "failed" | "canceled")
    }

    /// Whether it was made for Kubernetes.
    pub(crate) fn is_of_kubernetes(&self) -> bool {
        is_of_kubernetes(&self.tags)
    }

    /// Whether it is attached to this machine.
    pub(crate) fn is_at(&self, machine: &str) -> bool {
        self.machines.iter().any(|one| one.eq_ignore_ascii_case(machine))
    }

    /// Whether it has copies in several zones.
    pub(crate) fn is_in_many_zones(&self) -> bool {
        self.sku.ends_with("_ZRS")
    }

    /// The zone as topologies name it, `westeurope-1`; empty for one in no zone.
    pub(crate) fn zone(&self) -> String {
        let zone = self.zone.as_ref().map(|zone| format!("{}-{zone}", self.location));
        zone.unwrap_or_default()
    }

    /// The cache of the machine for it: that of its class, unless Azure has none for such disks.
    pub(crate) fn caching(&self) -> &str {
        let never =
            self.gib >= UNCACHED || self.max_shares > 1 || Sku::of(&self.sku).is_some_and(|sku| sku.has_own_speed);
        match self.tags.get(CACHING) {
            _ if never => "None",
            Some(caching) => caching,
            None => "ReadOnly",
        }
    }

    /// Whether writes go through the accelerator of the machine.
    pub(crate) fn is_accelerated(&self) -> bool {
        self.tags
            .get(WRITE_ACCELERATOR)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// In the contract's terms, under the requested id.
    pub(crate) fn volume(&self, id: &str, names: &NodeNames) -> Volume {
        let zones: Vec<String> = match self.is_in_many_zones() {
            // Machines in no zone take them too.
            true => {
                let named = ZONES.iter().map(|zone| format!("{}-{zone}", self.location));
                named.chain(Some(String::new())).collect()
            }
            false => vec![self.zone()],
        };
        let source = self.source.clone();
        let attachment = |machine: &String| Attachment {
            node_id: names.of(machine),
            read_only: false,
        };
        Volume {
            topology: zones.into_iter().map(|zone| Topology::of(ZONE_KEY, zone)).collect(),
            source: if is_id(&source, ids::SNAPSHOT) {
                Some(VolumeSource::Snapshot(source))
            } else {
                Some(VolumeSource::Volume(source)).filter(|_| is_id(&self.source, DISK))
            },
            attachments: self.machines.iter().map(attachment).collect(),
            ..Volume::new(id, self.bytes())
        }
    }
}

/// The number of a zone in a name such as `westeurope-1`.
pub(crate) fn zone_number(zone: &str) -> Option<&str> {
    zone.rsplit_once('-')
        .map(|(_, number)| number)
        .filter(|number| !number.is_empty())
}
