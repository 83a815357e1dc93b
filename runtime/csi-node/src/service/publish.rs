//! Volumes shown to a Pod, and that taken back.

use std::path::Path;

use cloudwit_csi::check::{self, Mistakes};
use cloudwit_csi::proto::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
};
use tonic::Status;

use super::{stage, target};
use crate::device::OpenDevice;
use crate::mounts::{Mount, MountOptions, Table, calls};
use crate::plugin::Plugin;
use crate::request::{self, Access, VolumeUse};

pub(super) fn publish(plugin: &Plugin, request: NodePublishVolumeRequest) -> Result<NodePublishVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    request::path("the target path", &request.target_path, &mut mistakes);
    request::path("the staging target path", &request.staging_target_path, &mut mistakes);
    let volume_use = request::volume_use(request.volume_capability.as_ref(), &mut mistakes);
    let hints = stage::hints(&request.publish_context, &mut mistakes);
    let Some((mut volume_use, hints)) = mistakes.none_or(volume_use.zip(hints))? else {
        return Err(Status::invalid_argument("the request is incomplete"));
    };
    volume_use.read_only |= request.readonly;
    let path = target::place(plugin, &request.target_path)?;
    let device = plugin.devices.open(&hints)?;
    match &volume_use.access {
        Access::Block => publish_block(&device, &path, &volume_use)?,
        Access::Mount { options, .. } => {
            let staged = target::place(plugin, &request.staging_target_path)?;
            publish_mount(&device, &staged, &path, &volume_use, options)?;
        }
    }
    Ok(NodePublishVolumeResponse {})
}

fn publish_mount(
    device: &OpenDevice,
    staged: &Path,
    path: &Path,
    volume_use: &VolumeUse,
    options: &MountOptions,
) -> Result<(), Status> {
    let table = Table::read()?;
    let is_volume = |mount: &&Mount| mount.device == device.number;
    let Some(source) = table.at(staged).filter(is_volume) else {
        return Err(Status::failed_precondition(format!(
            "the volume is not staged at {}",
            staged.display()
        )));
    };
    if source.read_only && !volume_use.read_only {
        return Err(read_only_already(staged));
    }
    if volume_use.single {
        let elsewhere = table.others(source).find(|other| other.point != path);
        elsewhere.map_or(Ok(()), |other| Err(used_elsewhere(&other.point)))?;
    }
    match table.at(path) {
        Some(there) if !is_volume(&there) => return Err(occupied(path)),
        Some(there) => return repair(path, there.read_only, volume_use, options),
        None => {}
    }
    target::folder(path)?;
    calls::bind(staged, path).map_err(|error| target::trouble("cannot be mounted", path, &error))?;
    if restricts(volume_use, options) {
        restrict(path, options, volume_use.read_only)?;
    }
    Ok(())
}

/// The device itself at a file. The kernel checks no mount for writes to a device: the kubelet gives the container the right to read alone.
fn publish_block(device: &OpenDevice, path: &Path, volume_use: &VolumeUse) -> Result<(), Status> {
    stage::proven(device)?;
    let table = Table::read()?;
    let options = MountOptions::default();
    if let Some(there) = table.at(path) {
        if target::block_device(path) != Some(device.number) {
            return Err(occupied(path));
        }
        return repair(path, there.read_only, volume_use, &options);
    }
    if volume_use.single {
        let shown = |mount: &&Mount| target::block_device(&mount.point) == Some(device.number);
        let elsewhere = table
            .0
            .iter()
            .filter(|mount| mount.file_system == "devtmpfs")
            .find(shown);
        elsewhere.map_or(Ok(()), |other| Err(used_elsewhere(&other.point)))?;
    }
    target::file(path)?;
    calls::bind(&device.path, path).map_err(|error| target::trouble("cannot be mounted", path, &error))?;
    if volume_use.read_only {
        restrict(path, &options, true)?;
    }
    Ok(())
}

/// It is there already: a plugin that was killed may not have come to its flags.
fn repair(path: &Path, read_only: bool, volume_use: &VolumeUse, options: &MountOptions) -> Result<(), Status> {
    if read_only && !volume_use.read_only {
        return Err(read_only_already(path));
    }
    if !restricts(volume_use, options) {
        return Ok(());
    }
    calls::restrict(path, options, volume_use.read_only).map_err(|error| unrestricted(path, &error))
}

/// Whether the mount has flags of its own.
fn restricts(volume_use: &VolumeUse, options: &MountOptions) -> bool {
    volume_use.read_only || options.flags != MountOptions::default().flags
}

fn unrestricted(path: &Path, error: &std::io::Error) -> Status {
    target::trouble("cannot be given its mount flags", path, error)
}

/// Without its flags the mount goes again: a Pod must not write to what is read only.
fn restrict(path: &Path, options: &MountOptions, read_only: bool) -> Result<(), Status> {
    calls::restrict(path, options, read_only).map_err(|error| {
        let failed = unrestricted(path, &error);
        match target::unmount(path) {
            Ok(_) => failed,
            Err(left) => Status::aborted(format!("{}; {}", failed.message(), left.message())),
        }
    })
}

/// What is mounted read only is not given to who writes.
pub(super) fn read_only_already(path: &Path) -> Status {
    Status::already_exists(format!(
        "the volume is mounted read only at {}, and is to be written",
        path.display()
    ))
}

fn occupied(path: &Path) -> Status {
    Status::failed_precondition(format!(
        "something else than the volume is mounted at {}",
        path.display()
    ))
}

fn used_elsewhere(path: &Path) -> Status {
    Status::failed_precondition(format!(
        "the volume is for one Pod alone, and is mounted at {} already",
        path.display()
    ))
}

pub(super) fn unpublish(
    plugin: &Plugin,
    request: NodeUnpublishVolumeRequest,
) -> Result<NodeUnpublishVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    request::path("the target path", &request.target_path, &mut mistakes);
    mistakes.none_or(())?;
    if let Some(path) = target::existing(plugin, &request.target_path)? {
        target::unmount(&path)?;
        target::remove(&path)?;
    }
    Ok(NodeUnpublishVolumeResponse {})
}
