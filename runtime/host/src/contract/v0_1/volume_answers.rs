//! Converts answers of guests about volumes: types of `wit/v0.1` to types of the model.

use std::collections::BTreeMap;
use std::fmt;

use cloudwit_model::volume::{
    AttachedVolume, Capacity, DeviceHint, ExpandedVolume, NewVolume, SizeRange, Snapshot, Topology, Volume,
    VolumeAttachment, VolumeDriver, VolumeFeature, VolumeNode, VolumeSource,
};
use cloudwit_model::volume_cloud::Each;
use cloudwit_model::{InTreeSource, InTreeVolume};

use crate::call::answer::limits;
use crate::call::answer::{self, Checked, InvalidResponse, Screen};
use crate::call::walk::Walk;
use crate::contract::v0_1::answers::{extra, item, listed};
use crate::contract::v0_1::generated::cloudwit::provider::common::{Failure, Pair};
use crate::contract::v0_1::generated::cloudwit::provider::volume_types as types;
use crate::contract::v0_1::generated::exports::cloudwit::provider::{
    volume_capacity, volume_expansion, volume_labels, volumes,
};
use crate::contract::volume_adapter::ListedPage;

/// Most bytes of a key and of a value, and of all together.
struct PairLimits {
    entries: usize,
    key: usize,
    value: usize,
    all: usize,
}

const SEGMENTS: PairLimits = PairLimits {
    entries: limits::SEGMENTS,
    key: limits::KEY,
    value: limits::SEGMENT_VALUE,
    all: usize::MAX,
};

const CONTEXT: PairLimits = PairLimits {
    entries: limits::CONTEXT,
    key: limits::CONTEXT_KEY,
    value: limits::CONTEXT_BYTES,
    all: limits::CONTEXT_BYTES,
};

fn pairs_bytes(pairs: &[Pair]) -> usize {
    pairs.iter().map(|pair| pair.key.len() + pair.value.len()).sum()
}

fn map(
    screen: Screen<'_>,
    what: fmt::Arguments<'_>,
    pairs: Vec<Pair>,
    most: &PairLimits,
) -> Checked<BTreeMap<String, String>> {
    answer::at_most(what, &pairs, most.entries)?;
    let bytes = pairs_bytes(&pairs);
    if bytes > most.all {
        return Err(InvalidResponse(format!(
            "{what} has {bytes} bytes, at most {} are allowed",
            most.all
        )));
    }
    let mut map = BTreeMap::new();
    for Pair { key, value } in pairs {
        let key = screen.name(format_args!("a key of {what}"), key, most.key)?;
        let value = screen.value(format_args!("the value of {key:?} of {what}"), value, most.value)?;
        if map.contains_key(&key) {
            return Err(InvalidResponse(format!("{what} has the key {key:?} twice")));
        }
        map.insert(key, value);
    }
    Ok(map)
}

fn topology(screen: Screen<'_>, whose: fmt::Arguments<'_>, topology: types::Topology) -> Checked<Topology> {
    let what = format_args!("the topology of {whose}");
    // A label of a Node may be empty, and so may be a place.
    map(screen, what, topology.segments, &SEGMENTS).map(Topology)
}

/// The name of a CSI driver, as the API server checks it.
fn driver_name(screen: Screen<'_>, name: String) -> Checked<String> {
    let name = screen.name(format_args!("the name of the volume driver"), name, limits::DRIVER_NAME)?;
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let ends = [name.bytes().next(), name.bytes().last()];
    if name.bytes().all(inner) && ends.iter().flatten().all(u8::is_ascii_alphanumeric) {
        return Ok(name);
    }
    Err(InvalidResponse(format!(
        "the name of the volume driver is {}; it needs letters, digits, - and ., with a letter or digit at both ends",
        answer::quoted(&name)
    )))
}

pub(crate) fn driver(screen: Screen<'_>, driver: volumes::Driver) -> Checked<VolumeDriver> {
    let volumes::Driver {
        size_step,
        smallest,
        largest,
        usual,
        ..
    } = driver;
    let in_order = size_step >= 1 && smallest >= 1 && smallest <= usual && usual <= largest;
    if !in_order {
        return Err(InvalidResponse(format!(
            "the sizes of the volume driver are out of order: step {size_step}, smallest {smallest}, usual {usual}, largest {largest}"
        )));
    }
    answer::at_most(
        format_args!("the topology keys"),
        &driver.topology_keys,
        limits::SEGMENTS,
    )?;
    answer::at_most(
        format_args!("the volume features"),
        &driver.features,
        limits::VOLUME_FEATURES,
    )?;
    extra(screen, format_args!("the volume driver"), driver.extra)?;
    let key = |key| screen.name(format_args!("a topology key"), key, limits::KEY);
    let feature = |feature| match feature {
        volumes::Feature::Clone => VolumeFeature::Clone,
        volumes::Feature::ReadOnly => VolumeFeature::ReadOnly,
        volumes::Feature::ManyReaders => VolumeFeature::ManyReaders,
        volumes::Feature::ManyWriters => VolumeFeature::ManyWriters,
        volumes::Feature::ExpandOnline => VolumeFeature::ExpandOnline,
    };
    let batch = driver.batch.and_then(|batch| usize::try_from(batch).ok());
    Ok(VolumeDriver {
        name: driver_name(screen, driver.name)?,
        topology_keys: driver.topology_keys.into_iter().map(key).collect::<Checked<_>>()?,
        size_step,
        smallest,
        largest,
        usual,
        features: driver.features.into_iter().map(feature).collect(),
        batch: batch.unwrap_or(limits::VOLUME_BATCH).clamp(1, limits::VOLUME_BATCH),
    })
}

fn node_id(screen: Screen<'_>, whose: fmt::Arguments<'_>, id: String) -> Checked<String> {
    screen.name(format_args!("the node id of {whose}"), id, limits::NODE_ID)
}

fn node(screen: Screen<'_>, name: &str, node: volumes::VolumeNode) -> Checked<VolumeNode> {
    let whose = format_args!("node {name:?}");
    Ok(VolumeNode {
        id: node_id(screen, whose, node.id)?,
        topology: topology(screen, whose, node.topology)?,
        max_volumes: node.max_volumes,
    })
}

fn source(screen: Screen<'_>, whose: fmt::Arguments<'_>, source: types::VolumeSource) -> Checked<VolumeSource> {
    let what = format_args!("the source of {whose}");
    Ok(match source {
        types::VolumeSource::Snapshot(id) => VolumeSource::Snapshot(screen.name(what, id, limits::ID)?),
        types::VolumeSource::Volume(id) => VolumeSource::Volume(screen.name(what, id, limits::ID)?),
    })
}

/// Bytes of all texts about the volume.
fn volume_bytes(volume: &types::Volume) -> usize {
    let topology = volume.topology.iter().map(|place| pairs_bytes(&place.segments));
    let attachments = volume.attachments.iter().map(|one| one.node_id.len());
    volume.id.len()
        + topology.chain(attachments).sum::<usize>()
        + pairs_bytes(&volume.context)
        + pairs_bytes(&volume.extra)
}

fn volume(screen: Screen<'_>, volume: types::Volume) -> Checked<Volume> {
    let bytes = volume_bytes(&volume);
    let id = screen.name(format_args!("the id of a volume"), volume.id, limits::ID)?;
    let whose = format_args!("volume {id:?}");
    if bytes > limits::INSTANCE {
        let most = limits::INSTANCE;
        return Err(InvalidResponse(format!(
            "{whose} has {bytes} bytes of text, at most {most} are allowed"
        )));
    }
    let places = format_args!("the topology list of {whose}");
    answer::at_most(places, &volume.topology, limits::TOPOLOGIES)?;
    let attachments = format_args!("the attachments of {whose}");
    answer::at_most(attachments, &volume.attachments, limits::ATTACHMENTS)?;
    extra(screen, whose, volume.extra)?;
    let place = |place| topology(screen, whose, place);
    let attachment = |one: types::Attachment| {
        Ok(VolumeAttachment {
            node_id: node_id(screen, whose, one.node_id)?,
            read_only: one.read_only,
        })
    };
    Ok(Volume {
        size: volume.size,
        topology: volume.topology.into_iter().map(place).collect::<Checked<_>>()?,
        source: volume.source.map(|from| source(screen, whose, from)).transpose()?,
        context: map(screen, format_args!("the context of {whose}"), volume.context, &CONTEXT)?,
        attachments: volume.attachments.into_iter().map(attachment).collect::<Checked<_>>()?,
        id,
    })
}

fn snapshot_bytes(snapshot: &types::Snapshot) -> usize {
    snapshot.id.len() + snapshot.volume.len() + pairs_bytes(&snapshot.extra)
}

pub(crate) fn snapshot(screen: Screen<'_>, snapshot: types::Snapshot) -> Checked<Snapshot> {
    let id = screen.name(format_args!("the id of a snapshot"), snapshot.id, limits::ID)?;
    let whose = format_args!("snapshot {id:?}");
    extra(screen, whose, snapshot.extra)?;
    Ok(Snapshot {
        volume: screen.name(format_args!("the volume of {whose}"), snapshot.volume, limits::ID)?,
        size: snapshot.size,
        created: snapshot.created,
        ready: snapshot.ready,
        id,
    })
}

/// Converts a list that has to be as long as the request; what is invalid costs its item.
async fn each<A, T, U>(
    screen: Screen<'_>,
    walk: &mut Walk,
    (what, asked): (&str, &[A]),
    answers: Vec<Result<T, Failure>>,
    bytes: impl Fn(&T) -> usize,
    convert: impl Fn(&A, T) -> Checked<U>,
) -> Checked<Each<U>> {
    answer::same_length(what, asked.len(), answers.len())?;
    let mut all = Vec::with_capacity(asked.len());
    for (question, answer) in asked.iter().zip(answers) {
        walk.next(answer.as_ref().map_or(limits::MESSAGE, &bytes)).await;
        all.push(item(screen, answer.map(|answer| convert(question, answer))));
    }
    Ok(all)
}

pub(crate) async fn nodes(
    screen: Screen<'_>,
    walk: &mut Walk,
    asked: &[cloudwit_model::NodeRef],
    answers: Vec<Result<volumes::VolumeNode, Failure>>,
) -> Checked<Each<VolumeNode>> {
    let bytes = |node: &volumes::VolumeNode| node.id.len() + pairs_bytes(&node.topology.segments);
    let convert = |asked: &cloudwit_model::NodeRef, found| node(screen, &asked.name, found);
    each(screen, walk, ("volumes.nodes", asked), answers, bytes, convert).await
}

/// Insists on the id that was requested.
fn asked_id<T>(what: &str, asked: &str, found: T, id: impl Fn(&T) -> &str) -> Checked<T> {
    if id(&found) == asked {
        return Ok(found);
    }
    Err(InvalidResponse(format!(
        "{what} {} was requested, and {} is the answer",
        answer::quoted(asked),
        answer::quoted(id(&found))
    )))
}

pub(crate) async fn volumes(
    screen: Screen<'_>,
    walk: &mut Walk,
    ids: &[String],
    answers: Vec<Result<Option<types::Volume>, Failure>>,
) -> Checked<Each<Option<Volume>>> {
    let bytes = |found: &Option<types::Volume>| found.as_ref().map_or(0, volume_bytes);
    let convert = |id: &String, found: Option<types::Volume>| {
        let found = found.map(|found| asked_id("volume", id, volume(screen, found)?, |found| &found.id));
        found.transpose()
    };
    each(screen, walk, ("volumes.get", ids), answers, bytes, convert).await
}

pub(crate) async fn snapshots(
    screen: Screen<'_>,
    walk: &mut Walk,
    ids: &[String],
    answers: Vec<Result<Option<types::Snapshot>, Failure>>,
) -> Checked<Each<Option<Snapshot>>> {
    let bytes = |found: &Option<types::Snapshot>| found.as_ref().map_or(0, snapshot_bytes);
    let convert = |id: &String, found: Option<types::Snapshot>| {
        let found = found.map(|found| asked_id("snapshot", id, snapshot(screen, found)?, |found| &found.id));
        found.transpose()
    };
    each(screen, walk, ("volume-snapshots.get", ids), answers, bytes, convert).await
}

/// A volume that was created has a size that was requested.
pub(crate) fn created(screen: Screen<'_>, new: &NewVolume, created: types::Volume) -> Checked<Volume> {
    let created = volume(screen, created)?;
    if new.size.contains(created.size) {
        return Ok(created);
    }
    let SizeRange { at_least, at_most } = new.size;
    let most = at_most.map_or_else(String::new, |most| format!(" and at most {most}"));
    Err(InvalidResponse(format!(
        "volume {:?} is created with {} bytes; at least {at_least}{most} were requested",
        created.id, created.size
    )))
}

pub(crate) async fn attached(
    screen: Screen<'_>,
    walk: &mut Walk,
    asked: &[cloudwit_model::volume::NewAttachment],
    answers: Vec<Result<volumes::Attached, Failure>>,
) -> Checked<Each<AttachedVolume>> {
    let bytes = |attached: &volumes::Attached| {
        pairs_bytes(&attached.context) + attached.devices.len().saturating_mul(limits::DEVICE)
    };
    let convert = |asked: &cloudwit_model::volume::NewAttachment, attached: volumes::Attached| {
        let whose = format_args!("the attachment of volume {:?}", asked.volume);
        answer::at_most(
            format_args!("the devices of {whose}"),
            &attached.devices,
            limits::DEVICES,
        )?;
        let device = |device| device_hint(screen, format_args!("a device of {whose}"), device);
        Ok(AttachedVolume {
            context: map(
                screen,
                format_args!("the context of {whose}"),
                attached.context,
                &CONTEXT,
            )?,
            devices: attached.devices.into_iter().map(device).collect::<Checked<_>>()?,
        })
    };
    each(screen, walk, ("volumes.attach", asked), answers, bytes, convert).await
}

fn device_hint(screen: Screen<'_>, what: fmt::Arguments<'_>, device: volumes::Device) -> Checked<DeviceHint> {
    let text = |text| screen.name(what, text, limits::DEVICE);
    Ok(match device {
        volumes::Device::Serial(serial) => DeviceHint::Serial(text(serial)?),
        volumes::Device::Wwn(wwn) => DeviceHint::Wwn(text(wwn)?),
        volumes::Device::ById(name) => DeviceHint::ById(text(name)?),
        volumes::Device::Lun(number) => DeviceHint::Lun(number),
        volumes::Device::Path(path) => DeviceHint::Path(text(path)?),
    })
}

pub(crate) async fn detached(
    screen: Screen<'_>,
    walk: &mut Walk,
    asked: &[cloudwit_model::volume::Detachment],
    answers: Vec<Result<(), Failure>>,
) -> Checked<Each<()>> {
    each(screen, walk, ("volumes.detach", asked), answers, |()| 0, |_, ()| Ok(())).await
}

/// A volume that grew is as large as requested.
pub(crate) fn expanded(asked: SizeRange, expanded: volume_expansion::Expanded) -> Checked<ExpandedVolume> {
    if expanded.size < asked.at_least {
        return Err(InvalidResponse(format!(
            "volume-expansion.expand succeeded with {} bytes; at least {} were requested",
            expanded.size, asked.at_least
        )));
    }
    Ok(ExpandedVolume {
        size: expanded.size,
        on_node: expanded.on_node,
    })
}

async fn page<T, U>(
    screen: Screen<'_>,
    walk: &mut Walk,
    (what, limit): (&str, u32),
    (items, next): (Vec<T>, Option<String>),
    bytes: impl Fn(&T) -> usize,
    convert: impl Fn(T) -> Checked<U>,
) -> Checked<ListedPage<U>> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    answer::at_most(format_args!("a page of {what}"), &items, limit)?;
    let next = answer::optional(next).map(|next| match next.len() {
        0..=limits::TOKEN => Ok(next),
        bytes => Err(InvalidResponse(format!(
            "`next` of a page of {what} has {bytes} bytes, at most {} are kept",
            limits::TOKEN
        ))),
    });
    Ok(ListedPage {
        next: next.transpose()?,
        listed: listed(screen, walk, items, bytes, convert).await,
    })
}

pub(crate) async fn volume_page(
    screen: Screen<'_>,
    walk: &mut Walk,
    limit: u32,
    found: types::VolumePage,
) -> Checked<ListedPage<Volume>> {
    let items = (found.volumes, found.next);
    page(screen, walk, ("volumes", limit), items, volume_bytes, |one| {
        volume(screen, one)
    })
    .await
}

pub(crate) async fn snapshot_page(
    screen: Screen<'_>,
    walk: &mut Walk,
    limit: u32,
    found: types::SnapshotPage,
) -> Checked<ListedPage<Snapshot>> {
    let items = (found.snapshots, found.next);
    page(screen, walk, ("snapshots", limit), items, snapshot_bytes, |one| {
        snapshot(screen, one)
    })
    .await
}

fn in_tree_source(source: volume_labels::InTreeSource) -> InTreeSource {
    match source {
        volume_labels::InTreeSource::AwsElasticBlockStore => InTreeSource::AwsElasticBlockStore,
        volume_labels::InTreeSource::GcePersistentDisk => InTreeSource::GcePersistentDisk,
        volume_labels::InTreeSource::AzureDisk => InTreeSource::AzureDisk,
        volume_labels::InTreeSource::Cinder => InTreeSource::Cinder,
        volume_labels::InTreeSource::VsphereVolume => InTreeSource::VsphereVolume,
    }
}

pub(crate) fn label_sources(sources: Vec<volume_labels::InTreeSource>) -> Checked<Vec<InTreeSource>> {
    answer::at_most(
        format_args!("the list of volume-labels.sources"),
        &sources,
        limits::IN_TREE_SOURCES,
    )?;
    Ok(sources.into_iter().map(in_tree_source).collect())
}

pub(crate) async fn labels(
    screen: Screen<'_>,
    walk: &mut Walk,
    asked: &[InTreeVolume],
    answers: Vec<Result<Vec<Pair>, Failure>>,
) -> Checked<Each<BTreeMap<String, String>>> {
    let bytes = |labels: &Vec<Pair>| pairs_bytes(labels);
    let convert = |asked: &InTreeVolume, labels| {
        let what = format_args!("the labels of volume {:?}", asked.id);
        let labels = map(screen, what, labels, &SEGMENTS)?;
        match labels.iter().find(|(_, value)| value.is_empty()) {
            Some((key, _)) => Err(InvalidResponse(format!("the value of {key:?} of {what} is empty"))),
            None => Ok(labels),
        }
    };
    each(screen, walk, ("volume-labels.get", asked), answers, bytes, convert).await
}

pub(crate) fn capacity(capacity: volume_capacity::Capacity) -> Capacity {
    Capacity {
        available: capacity.available,
        largest: capacity.largest,
    }
}

#[cfg(test)]
mod tests;
