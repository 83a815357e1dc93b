//! What has to be known of the cloud before a PersistentVolume is created. Pure.

use std::collections::BTreeMap;

use cloudwit_model::{InTreeSource, InTreeVolume};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeSpec};
use kube::ResourceExt as _;

/// Labels of zone and region (`k8s.io/api/core/v1/well_known_labels.go`), and those that came before.
pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const REGION: &str = "topology.kubernetes.io/region";
pub const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
pub const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";

/// Whoever provisions a volume dynamically writes this annotation (`k8s.io/kubernetes/pkg/controller/volume/persistentvolume/util`).
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// The id of a volume that is just being provisioned (`cloud-provider volume/constants.go`, `ProvisionedVolumeName`).
const PLACEHOLDER: &str = "placeholder-for-provisioning";

/// The longest id of a look-up, in bytes; part of the contract.
const LONGEST_ID: usize = 1024;

/// The longest value of a label, in bytes (`apimachinery pkg/util/validation`, `LabelValueMaxLength`). The API server looks after us.
const LONGEST_LABEL: usize = 63;

/// What to do about a PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Leave it as it is.
    Nothing,
    /// Its provisioner has written these labels, which are trusted.
    Trusted(BTreeMap<String, String>),
    /// The cloud has to say.
    Cloud(InTreeVolume),
    /// It cannot be looked up, for this reason.
    Wrong(String),
}

/// What has to be known about this one.
pub fn question(volume: &PersistentVolume) -> Question {
    let labels = volume.labels();
    let pair = |zone: &str, region: &str| Some((labels.get_key_value(zone)?, labels.get_key_value(region)?));
    // Where one of the two is missing, both are looked for under the older names.
    let place = pair(ZONE, REGION).or_else(|| pair(BETA_ZONE, BETA_REGION));
    if let (Some((zone, region)), true) = (place, volume.annotations().contains_key(PROVISIONED_BY)) {
        let own = |(key, value): (&String, &String)| (key.clone(), value.clone());
        return Question::Trusted(BTreeMap::from([own(zone), own(region)]));
    }
    let zone = place.map(|(zone, _)| zone.1);
    let zone = zone.or_else(|| labels.get(ZONE)).or_else(|| labels.get(BETA_ZONE));
    let spec = volume.spec.clone().unwrap_or_default();
    let Some((source, ids)) = source(&spec) else {
        return Question::Nothing;
    };
    if source != InTreeSource::VsphereVolume && ids.iter().any(|id| id == PLACEHOLDER) {
        return Question::Nothing;
    }
    if let Some(zone) = zone.filter(|zone| zone.len() > LONGEST_LABEL) {
        return Question::Wrong(format!(
            "its zone label has {} bytes, at most {LONGEST_LABEL} are possible",
            zone.len()
        ));
    }
    let id = ids.into_iter().next().unwrap_or_default();
    match id.len() {
        0 => Question::Wrong(format!("spec.{}.{} is empty", source.field(), source.id_field())),
        1..=LONGEST_ID => Question::Cloud(InTreeVolume {
            source,
            id,
            zone: zone.cloned(),
        }),
        bytes => Question::Wrong(format!(
            "spec.{}.{} has {bytes} bytes, at most {LONGEST_ID} are possible",
            source.field(),
            source.id_field()
        )),
    }
}

/// The source that names a disk of a cloud, and by what, the id that identifies it first.
fn source(spec: &PersistentVolumeSpec) -> Option<(InTreeSource, Vec<String>)> {
    if let Some(source) = &spec.aws_elastic_block_store {
        return Some((InTreeSource::AwsElasticBlockStore, vec![source.volume_id.clone()]));
    }
    if let Some(source) = &spec.gce_persistent_disk {
        return Some((InTreeSource::GcePersistentDisk, vec![source.pd_name.clone()]));
    }
    if let Some(source) = &spec.azure_disk {
        let ids = vec![source.disk_uri.clone(), source.disk_name.clone()];
        return Some((InTreeSource::AzureDisk, ids));
    }
    if let Some(source) = &spec.cinder {
        return Some((InTreeSource::Cinder, vec![source.volume_id.clone()]));
    }
    let source = spec.vsphere_volume.as_ref()?;
    Some((InTreeSource::VsphereVolume, vec![source.volume_path.clone()]))
}
