//! Volumes: what an author implements, and the contract's words for them under their Rust names.
//!
//! `use cloudwit_guest_sdk::volumes::*;` beside the prelude. A provider registers [`Volumes`] and whatever else its cloud can do:
//! `register_provider!(Lab: Instances, Volumes, VolumeExpansion);`. All sizes are in bytes.
//!
//! ```
//! use cloudwit_guest_sdk::prelude::*;
//! use cloudwit_guest_sdk::volumes::*;
//!
//! const GIB: u64 = 1 << 30;
//! let driver = Driver::new("csi.lab.test", GIB, 16 * GIB, 8 * GIB).topology_key("topology.csi.lab.test/zone").feature(Feature::ReadOnly);
//! assert_eq!((driver.size_step, driver.smallest), (GIB, GIB));
//! let size = SizeRange { at_least: 2 * GIB, at_most: None };
//! assert!(!size.contains(GIB));
//! let parameters = [Pair::new("type", "fast"), Pair::new("colour", "red")];
//! let refused = known_parameters(&parameters, &["type"]).unwrap_err();
//! assert_eq!(refused.kind, FailureKind::Invalid);
//! assert!(refused.message.contains("colour"));
//! ```

mod names;
mod provider;
mod register;

use crate::Failure;
use crate::bindings::{volume_capacity, volume_expansion, volume_labels, volume_snapshots, volumes};
use crate::types::Pair;

pub use names::name_or_digest;
pub use provider::{
    VolumeCapacity, VolumeExpansion, VolumeLabels, VolumeListing, VolumeModification, VolumeSnapshots, Volumes,
};
pub use volume_capacity::exports::cloudwit::provider::volume_capacity::{Capacity, CapacityQuery};
pub use volume_expansion::exports::cloudwit::provider::volume_expansion::Expanded;
pub use volume_labels::exports::cloudwit::provider::volume_labels::{InTreeSource, InTreeVolume};
pub use volume_snapshots::exports::cloudwit::provider::volume_snapshots::NewSnapshot;
pub use volumes::cloudwit::provider::volume_types::{
    AccessMode, Attachment, SizeRange, Snapshot, SnapshotPage, Topology, Volume, VolumePage, VolumeSource, VolumeUse,
};
pub use volumes::exports::cloudwit::provider::volumes::{
    Attached, Detachment, Device, Driver, Feature, NewAttachment, NewVolume, VolumeNode,
};

/// The name of a secret that comes with a request about volumes, by its key in the Secret that the class names, for [`SecretWish`](crate::types::SecretWish) and
/// [`Keys`](crate::keys::Keys). It can be used in the calls that belong to the request and in no others.
///
/// ```
/// use cloudwit_guest_sdk::prelude::*;
/// use cloudwit_guest_sdk::testing::FakeHost;
/// use cloudwit_guest_sdk::volumes::secret_name;
///
/// // In `describe`, optional where not every class has one:
/// let wish = SecretWish::new(secret_name("passphrase"), &[SecretUse::Placeholder], "passphrase of encrypted disks").optional();
/// assert_eq!(wish.name, "volume/passphrase");
/// // In `create_volume`, `attach_volumes` and so on:
/// let host = FakeHost::new();
/// host.secret(&secret_name("passphrase"), "of the request");
/// let passphrase = host.context().keys().placeholder(&secret_name("passphrase"))?;
/// # assert!(passphrase.as_str().starts_with("cloudwit-placeholder-"));
/// # Ok::<(), Failure>(())
/// ```
pub fn secret_name(key: &str) -> String {
    format!("volume/{key}")
}

/// What an answer about many has for each.
pub type Each<T> = Vec<Result<T, Failure>>;

/// Labels of a volume that can be attached in these zones of this region, as Kubernetes has them: several zones are joined by `__`, in their order and each
/// once. Without a zone there is none of zones.
pub fn place_labels(zones: &[&str], region: Option<&str>) -> Vec<Pair> {
    let zones: std::collections::BTreeSet<&str> = zones.iter().copied().filter(|zone| !zone.is_empty()).collect();
    let zones = zones.into_iter().collect::<Vec<_>>().join(MANY_ZONES);
    let labels = [
        ("topology.kubernetes.io/zone", zones.as_str()),
        ("topology.kubernetes.io/region", region.unwrap_or_default()),
    ];
    let known = labels.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(key, value)| Pair::new(key, value)).collect()
}

/// The separator of zones of one label (`cloud-provider volume/constants.go`, `LabelMultiZoneDelimiter`).
pub const MANY_ZONES: &str = "__";

impl Driver {
    /// Volumes that are multiples of this step up to the largest, in bytes; without places and features.
    pub fn new(name: impl Into<String>, size_step: u64, largest: u64, usual: u64) -> Self {
        Self {
            name: name.into(),
            topology_keys: Vec::new(),
            size_step,
            smallest: size_step,
            largest,
            usual,
            features: Vec::new(),
            batch: None,
            extra: Vec::new(),
        }
    }

    /// Adds a key of the places that volumes are bound to.
    pub fn topology_key(mut self, key: impl Into<String>) -> Self {
        self.topology_keys.push(key.into());
        self
    }

    /// Adds something that volumes can be.
    pub fn feature(mut self, feature: Feature) -> Self {
        self.features.push(feature);
        self
    }

    /// The largest number of entries in one call; 100 at most.
    pub fn batch(mut self, entries: u32) -> Self {
        self.batch = Some(entries);
        self
    }
}

impl Topology {
    /// The place with this value of this key.
    pub fn of(key: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            segments: vec![Pair::new(key, value)],
        }
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&str> {
        let segment = self.segments.iter().find(|segment| segment.key == key);
        segment.map(|segment| segment.value.as_str())
    }
}

impl SizeRange {
    /// Whether this size will do.
    pub fn contains(&self, size: u64) -> bool {
        size >= self.at_least && self.at_most.is_none_or(|most| size <= most)
    }
}

impl Volume {
    /// A volume with this id and size that is attached nowhere and can be attached everywhere.
    pub fn new(id: impl Into<String>, size: u64) -> Self {
        Self {
            id: id.into(),
            size,
            topology: Vec::new(),
            source: None,
            context: Vec::new(),
            attachments: Vec::new(),
            extra: Vec::new(),
        }
    }
}

/// Refuses parameters of a class unknown to the provider, all at once: a mistyped one would be ignored otherwise.
///
/// # Errors
/// `invalid` with the names of those that are unknown, and those that are known.
pub fn known_parameters(parameters: &[Pair], known: &[&str]) -> Result<(), Failure> {
    let is_unknown = |pair: &&Pair| !known.contains(&pair.key.as_str());
    let unknown: Vec<&str> = parameters
        .iter()
        .filter(is_unknown)
        .map(|pair| pair.key.as_str())
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(format!(
        "unknown parameters of the class: {}; there are {}",
        unknown.join(", "),
        known.join(", ")
    )))
}

/// The value of a parameter.
pub fn parameter<'a>(parameters: &'a [Pair], name: &str) -> Option<&'a str> {
    let found = parameters.iter().find(|pair| pair.key == name);
    found.map(|pair| pair.value.as_str())
}
