//! Requests for new volumes and snapshots.

use std::collections::BTreeMap;

use cloudwit_model::volume::{NewSnapshot, NewVolume, SizeRange, Topology, VolumeDriver, VolumeFeature, VolumeSource};
use cloudwit_model::{CloudError, Failure, VolumeAbilities, VolumeSecrets};
use tonic::Status;

use super::capabilities::{creatable, uses};
use super::text::{Mistakes, id, map, name, number, secrets};
use crate::codes;
use crate::proto::volume_content_source::Type as Source;
use crate::proto::{
    CapacityRange, CreateSnapshotRequest, CreateVolumeRequest, Topology as WireTopology, TopologyRequirement,
    VolumeContentSource,
};

/// Parameters that sidecars add, with `--extra-create-metadata`; the cloud gets the tag of the second column, as in-tree drivers wrote them
/// (`CloudVolumeCreatedForClaimNamespaceTag` and its neighbours in Kubernetes' `pkg/volume/util`).
const METADATA: [(&str, &str); 6] = [
    ("csi.storage.k8s.io/pvc/name", "kubernetes.io/created-for/pvc/name"),
    (
        "csi.storage.k8s.io/pvc/namespace",
        "kubernetes.io/created-for/pvc/namespace",
    ),
    ("csi.storage.k8s.io/pv/name", "kubernetes.io/created-for/pv/name"),
    (
        "csi.storage.k8s.io/volumesnapshot/name",
        "kubernetes.io/created-for/volumesnapshot/name",
    ),
    (
        "csi.storage.k8s.io/volumesnapshot/namespace",
        "kubernetes.io/created-for/volumesnapshot/namespace",
    ),
    (
        "csi.storage.k8s.io/volumesnapshotcontent/name",
        "kubernetes.io/created-for/volumesnapshotcontent/name",
    ),
];

/// Parameters of sidecars; none of the cloud's begins so.
const RESERVED: &str = "csi.storage.k8s.io/";

/// Places in a request. A region has a few zones, a cluster without a cloud a few hundred racks.
const PLACES: usize = 1000;

/// A volume to create, and the secrets for it.
///
/// # Errors
///
/// `InvalidArgument` with all mistakes, `OutOfRange` for a size that no volume of this driver has.
pub(crate) fn new_volume(
    request: CreateVolumeRequest,
    driver: &VolumeDriver,
    abilities: VolumeAbilities,
) -> Result<(NewVolume, VolumeSecrets), Status> {
    let mut mistakes = Mistakes::default();
    name("the name", &request.name, &mut mistakes);
    let uses = uses(&request.volume_capabilities, &mut mistakes);
    for volume_use in &uses {
        creatable(driver, volume_use).unwrap_or_else(|mistake| mistakes.add(mistake));
    }
    let (parameters, tags) = without_metadata(map("parameters", request.parameters, &mut mistakes));
    let mutable_parameters = map("mutable parameters", request.mutable_parameters, &mut mistakes);
    if !mutable_parameters.is_empty() && !abilities.modification {
        mistakes.add(format!("volumes of {} have no mutable parameters", driver.name));
    }
    let source = source(request.volume_content_source, driver, abilities, &mut mistakes);
    let (allowed, preferred) = places(request.accessibility_requirements, &mut mistakes);
    let (least, most) = bounds(request.capacity_range, &mut mistakes);
    let secrets = secrets(request.secrets, &mut mistakes);
    mistakes.none_or(())?;
    let new = NewVolume {
        name: request.name,
        size: size(driver, least, most)?,
        uses,
        parameters,
        mutable_parameters,
        source,
        allowed,
        preferred,
        tags,
    };
    Ok((new, secrets))
}

/// A snapshot to create, and the secrets for it.
///
/// # Errors
///
/// `InvalidArgument` with all mistakes.
pub(crate) fn new_snapshot(request: CreateSnapshotRequest) -> Result<(NewSnapshot, VolumeSecrets), Status> {
    let mut mistakes = Mistakes::default();
    name("the name", &request.name, &mut mistakes);
    id("the source volume id", &request.source_volume_id, &mut mistakes);
    let (parameters, tags) = without_metadata(map("parameters", request.parameters, &mut mistakes));
    let secrets = secrets(request.secrets, &mut mistakes);
    let new = NewSnapshot {
        name: request.name,
        volume: request.source_volume_id,
        parameters,
        tags,
    };
    mistakes.none_or((new, secrets))
}

/// The sizes that will do.
///
/// # Errors
///
/// `OutOfRange`.
pub(crate) fn size(driver: &VolumeDriver, least: Option<u64>, most: Option<u64>) -> Result<SizeRange, Status> {
    let refused = |failure: Failure| codes::of_error(CloudError::from(failure));
    driver.size(least, most).map_err(refused)
}

/// Least and most bytes; 0 on the wire is none.
pub fn bounds(range: Option<CapacityRange>, mistakes: &mut Mistakes) -> (Option<u64>, Option<u64>) {
    let range = range.unwrap_or_default();
    let least = number("the required capacity", range.required_bytes, mistakes);
    let most = number("the limit of the capacity", range.limit_bytes, mistakes);
    if most > 0 && least > most {
        mistakes.add(format!("{least} bytes are required, above the limit of {most} bytes"));
    }
    (
        Some(least).filter(|least| *least > 0),
        Some(most).filter(|most| *most > 0),
    )
}

/// A place in the words of the model.
pub(crate) fn topology(wire: WireTopology) -> Topology {
    Topology(wire.segments.into_iter().collect())
}

fn source(
    wire: Option<VolumeContentSource>,
    driver: &VolumeDriver,
    abilities: VolumeAbilities,
    mistakes: &mut Mistakes,
) -> Option<VolumeSource> {
    match wire?.r#type {
        None => mistakes.add("the volume content source says neither snapshot nor volume"),
        Some(Source::Snapshot(_)) if !abilities.snapshots => {
            mistakes.add(format!("{} makes no volumes of snapshots", driver.name));
        }
        Some(Source::Volume(_)) if !driver.has(VolumeFeature::Clone) => {
            mistakes.add(format!("{} makes no volumes of other volumes", driver.name));
        }
        Some(Source::Snapshot(snapshot)) => {
            id("the snapshot id of the source", &snapshot.snapshot_id, mistakes);
            return Some(VolumeSource::Snapshot(snapshot.snapshot_id));
        }
        Some(Source::Volume(volume)) => {
            id("the volume id of the source", &volume.volume_id, mistakes);
            return Some(VolumeSource::Volume(volume.volume_id));
        }
    }
    None
}

fn places(wire: Option<TopologyRequirement>, mistakes: &mut Mistakes) -> (Vec<Topology>, Vec<Topology>) {
    let wire = wire.unwrap_or_default();
    let mut read = |what: &str, places: Vec<WireTopology>| {
        if places.len() > PLACES {
            mistakes.add(format!(
                "{} {what} topologies, at most {PLACES} are allowed",
                places.len()
            ));
        }
        places.into_iter().take(PLACES).map(topology).collect()
    };
    (read("requisite", wire.requisite), read("preferred", wire.preferred))
}

type Pairs = BTreeMap<String, String>;

/// Parameters of the class, and tags from what the sidecars add to them.
fn without_metadata(parameters: Pairs) -> (Pairs, Pairs) {
    let (metadata, parameters): (Pairs, Pairs) = parameters.into_iter().partition(|(key, _)| key.starts_with(RESERVED));
    let tags = METADATA
        .iter()
        .filter_map(|(key, tag)| Some(((*tag).to_owned(), metadata.get(*key)?.clone())));
    (parameters, tags.collect())
}

#[cfg(test)]
mod tests;
