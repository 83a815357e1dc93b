//! The layer between the component's exports and the traits about volumes, as in `register`.

use crate::bindings::{
    volume_capacity, volume_expansion, volume_labels, volume_listing, volume_modification, volume_snapshots, volumes,
};
use crate::register::start;
use crate::types::*;
use crate::volumes::*;
use crate::{Failure, config};

use volume_capacity::exports::cloudwit::provider::volume_capacity::Guest as CapacityGuest;
use volume_expansion::exports::cloudwit::provider::volume_expansion::Guest as ExpansionGuest;
use volume_labels::exports::cloudwit::provider::volume_labels::Guest as LabelsGuest;
use volume_listing::exports::cloudwit::provider::volume_listing::Guest as ListingGuest;
use volume_modification::exports::cloudwit::provider::volume_modification::Guest as ModificationGuest;
use volume_snapshots::exports::cloudwit::provider::volume_snapshots::Guest as SnapshotsGuest;
use volumes::exports::cloudwit::provider::volumes::Guest as VolumesGuest;

impl<P: Volumes> VolumesGuest for P {
    fn describe() -> Driver {
        P::volume_driver(config::read::<P>().ok().as_ref())
    }

    fn nodes(nodes: Vec<NodeRef>) -> Result<Each<VolumeNode>, Failure> {
        start::<P>()?.volume_nodes(&nodes)
    }

    fn get(ids: Vec<String>) -> Result<Each<Option<Volume>>, Failure> {
        start::<P>()?.get_volumes(&ids)
    }

    fn create(new: NewVolume, token: Option<String>) -> Result<Volume, Failure> {
        start::<P>()?.create_volume(&new, token.as_deref())
    }

    fn delete(id: String, token: Option<String>) -> Result<(), Failure> {
        start::<P>()?.delete_volume(&id, token.as_deref())
    }

    fn attach(attachments: Vec<NewAttachment>) -> Result<Each<Attached>, Failure> {
        start::<P>()?.attach_volumes(&attachments)
    }

    fn detach(detachments: Vec<Detachment>) -> Result<Each<()>, Failure> {
        start::<P>()?.detach_volumes(&detachments)
    }
}

impl<P: VolumeExpansion> ExpansionGuest for P {
    fn expand(id: String, size: SizeRange, token: Option<String>) -> Result<Expanded, Failure> {
        start::<P>()?.expand_volume(&id, size, token.as_deref())
    }
}

impl<P: VolumeListing> ListingGuest for P {
    fn list(after: Option<String>, limit: u32) -> Result<VolumePage, Failure> {
        start::<P>()?.list_volumes(after.as_deref(), limit)
    }
}

impl<P: VolumeSnapshots> SnapshotsGuest for P {
    fn create(new: NewSnapshot, token: Option<String>) -> Result<Snapshot, Failure> {
        start::<P>()?.create_snapshot(&new, token.as_deref())
    }

    fn delete(id: String, token: Option<String>) -> Result<(), Failure> {
        start::<P>()?.delete_snapshot(&id, token.as_deref())
    }

    fn get(ids: Vec<String>) -> Result<Each<Option<Snapshot>>, Failure> {
        start::<P>()?.get_snapshots(&ids)
    }

    fn list(volume: Option<String>, after: Option<String>, limit: u32) -> Result<SnapshotPage, Failure> {
        start::<P>()?.list_snapshots(volume.as_deref(), after.as_deref(), limit)
    }
}

impl<P: VolumeModification> ModificationGuest for P {
    fn modify(id: String, parameters: Vec<Pair>, token: Option<String>) -> Result<(), Failure> {
        start::<P>()?.modify_volume(&id, &parameters, token.as_deref())
    }
}

impl<P: VolumeCapacity> CapacityGuest for P {
    fn get(query: CapacityQuery) -> Result<Capacity, Failure> {
        start::<P>()?.volume_capacity(&query)
    }
}

impl<P: VolumeLabels> LabelsGuest for P {
    fn sources() -> Vec<InTreeSource> {
        P::label_sources(config::read::<P>().ok().as_ref())
    }

    fn get(volumes: Vec<InTreeVolume>) -> Result<Each<Vec<Pair>>, Failure> {
        start::<P>()?.volume_labels(&volumes)
    }
}
