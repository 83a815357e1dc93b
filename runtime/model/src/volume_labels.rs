//! Labels of disks of in-tree PersistentVolume sources, and the trait of clouds that have them.

use std::collections::BTreeMap;

use crate::Answer;
use crate::volume_cloud::Each;

/// A source of a PersistentVolume that names a disk of a cloud (`k8s.io/api/core/v1`, `PersistentVolumeSource`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InTreeSource {
    /// `awsElasticBlockStore`.
    AwsElasticBlockStore,
    /// `gcePersistentDisk`.
    GcePersistentDisk,
    /// `azureDisk`.
    AzureDisk,
    /// `cinder`.
    Cinder,
    /// `vsphereVolume`.
    VsphereVolume,
}

impl InTreeSource {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::AwsElasticBlockStore,
        Self::GcePersistentDisk,
        Self::AzureDisk,
        Self::Cinder,
        Self::VsphereVolume,
    ];

    /// The field of the PersistentVolume's spec.
    pub fn field(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "awsElasticBlockStore",
            Self::GcePersistentDisk => "gcePersistentDisk",
            Self::AzureDisk => "azureDisk",
            Self::Cinder => "cinder",
            Self::VsphereVolume => "vsphereVolume",
        }
    }

    /// The field of the source that says which disk it is.
    pub fn id_field(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore | Self::Cinder => "volumeID",
            Self::GcePersistentDisk => "pdName",
            Self::AzureDisk => "diskURI",
            Self::VsphereVolume => "volumePath",
        }
    }
}

/// A disk as a PersistentVolume names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct InTreeVolume {
    /// By which source.
    pub source: InTreeSource,
    /// Its id or name, as the user wrote it.
    pub id: String,
    /// The zone that the PersistentVolume carries as a label already.
    pub zone: Option<String>,
}

/// A cloud that has the labels of such disks. Read only, so it needs no gate; the rules are those of [`VolumeCloud`](crate::VolumeCloud).
pub trait VolumeLabels: Send + Sync {
    /// The sources it answers for. Uses no network.
    fn label_sources(&self) -> Answer<'_, Vec<InTreeSource>>;

    /// The labels of these disks, at most [`MAX_VOLUME_BATCH`](crate::volume::MAX_VOLUME_BATCH) of them; [`NotFound`](crate::Failure::NotFound) for each that
    /// does not exist.
    fn volume_labels<'a>(&'a self, volumes: &'a [InTreeVolume]) -> Answer<'a, Each<BTreeMap<String, String>>>;
}
