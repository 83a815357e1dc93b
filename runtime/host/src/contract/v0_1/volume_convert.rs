//! Converts arguments of calls about volumes: types of the model to types of `wit/v0.1`.

use cloudwit_model::volume::{
    AccessMode, CapacityQuery, Detachment, NewAttachment, NewSnapshot, NewVolume, SizeRange, Topology, VolumeSource,
    VolumeUse,
};

use crate::contract::v0_1::convert::pairs;
use crate::contract::v0_1::generated::cloudwit::provider::volume_types as types;
use crate::contract::v0_1::generated::exports::cloudwit::provider::{volume_capacity, volume_snapshots, volumes};

fn topology(topology: &Topology) -> types::Topology {
    types::Topology {
        segments: pairs(&topology.0),
    }
}

pub(super) fn size(size: SizeRange) -> types::SizeRange {
    types::SizeRange {
        at_least: size.at_least,
        at_most: size.at_most,
    }
}

fn volume_use(one: &VolumeUse) -> types::VolumeUse {
    types::VolumeUse {
        block: one.block,
        fs_type: one.fs_type.clone(),
        access: match one.access {
            AccessMode::OneNode => types::AccessMode::OneNode,
            AccessMode::OneNodeReadOnly => types::AccessMode::OneNodeReadOnly,
            AccessMode::ManyNodesReadOnly => types::AccessMode::ManyNodesReadOnly,
            AccessMode::ManyNodes => types::AccessMode::ManyNodes,
        },
    }
}

fn source(source: &VolumeSource) -> types::VolumeSource {
    match source {
        VolumeSource::Snapshot(id) => types::VolumeSource::Snapshot(id.clone()),
        VolumeSource::Volume(id) => types::VolumeSource::Volume(id.clone()),
    }
}

pub(super) fn new_volume(new: &NewVolume) -> volumes::NewVolume {
    volumes::NewVolume {
        name: new.name.clone(),
        size: size(new.size),
        uses: new.uses.iter().map(volume_use).collect(),
        parameters: pairs(&new.parameters),
        mutable_parameters: pairs(&new.mutable_parameters),
        source: new.source.as_ref().map(source),
        allowed: new.allowed.iter().map(topology).collect(),
        preferred: new.preferred.iter().map(topology).collect(),
        tags: pairs(&new.tags),
        extra: Vec::new(),
    }
}

pub(super) fn new_attachment(new: &NewAttachment) -> volumes::NewAttachment {
    volumes::NewAttachment {
        volume: new.volume.clone(),
        node_id: new.node_id.clone(),
        read_only: new.read_only,
        volume_use: volume_use(&new.volume_use),
        token: new.token.clone(),
    }
}

pub(super) fn detachment(detachment: &Detachment) -> volumes::Detachment {
    volumes::Detachment {
        volume: detachment.volume.clone(),
        node_id: detachment.node_id.clone(),
        token: detachment.token.clone(),
    }
}

pub(super) fn new_snapshot(new: &NewSnapshot) -> volume_snapshots::NewSnapshot {
    volume_snapshots::NewSnapshot {
        name: new.name.clone(),
        volume: new.volume.clone(),
        parameters: pairs(&new.parameters),
        tags: pairs(&new.tags),
    }
}

pub(super) fn capacity_query(query: &CapacityQuery) -> volume_capacity::CapacityQuery {
    volume_capacity::CapacityQuery {
        uses: query.uses.iter().map(volume_use).collect(),
        parameters: pairs(&query.parameters),
        at: query.at.as_ref().map(topology),
    }
}
