//! Volumes that have grown: their file systems follow.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use cloudwit_csi::check::{self, Mistakes};
use cloudwit_csi::proto::volume_capability::AccessType;
use cloudwit_csi::proto::{NodeExpandVolumeRequest, NodeExpandVolumeResponse};
use tonic::Status;

use super::stats;
use super::target;
use crate::device::BlockDevice;
use crate::filesystem::{FileSystem, content, tools};
use crate::mounts::{Mount, Table};
use crate::plugin::Plugin;

/// How long the kernel may take to see the new size of a device.
const GROWS: Duration = Duration::from_secs(20);

/// Between two looks.
const AGAIN: Duration = Duration::from_millis(250);

pub(super) fn expand(plugin: &Plugin, request: NodeExpandVolumeRequest) -> Result<NodeExpandVolumeResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    let (wanted, _) = check::bounds(request.capacity_range, &mut mistakes);
    if request.volume_path.is_empty() {
        mistakes.add("the volume path is missing");
    }
    mistakes.none_or(())?;
    let access = request.volume_capability.and_then(|capability| capability.access_type);
    let place = stats::place(plugin, &request.volume_path)?;
    let table = Table::read()?;
    let (number, mount) = match (target::block_device(&place), table.at(&place)) {
        (Some(number), _) => (number, None),
        (None, Some(mount)) => (mount.device, Some(mount)),
        // The kubelet names the folder of a raw device, at which nothing is mounted: there is nothing to grow.
        (None, None) if matches!(access, Some(AccessType::Block(_))) => return Ok(answer(wanted.unwrap_or_default())),
        (None, None) => return Err(stats::not_found(&request.volume_path)),
    };
    let (device, path, file) = plugin.devices.with_number(number)?;
    let size = grown(plugin, &device, &path, &file, wanted.unwrap_or_default())?;
    if let Some(mount) = mount {
        let file_system =
            FileSystem::parse(&mount.file_system).ok_or_else(|| stats::not_found(&request.volume_path))?;
        tools::grow(&path, &writable(&table, mount)?.point, file_system)?;
    }
    Ok(answer(size))
}

/// Where the volume can be written to: a Pod may see it read only that is staged otherwise.
fn writable<'a>(table: &'a Table, mount: &'a Mount) -> Result<&'a Mount, Status> {
    let refused = || {
        Status::failed_precondition(format!(
            "the volume is mounted read only at {}, and its file system cannot grow",
            mount.point.display()
        ))
    };
    let mut mounts = std::iter::once(mount).chain(table.others(mount));
    mounts.find(|mount| !mount.read_only).ok_or_else(refused)
}

/// The size of the device, as soon as it is large enough.
fn grown(plugin: &Plugin, device: &BlockDevice, path: &Path, file: &File, wanted: u64) -> Result<u64, Status> {
    let begun = Instant::now();
    loop {
        let size = content::size(file).map_err(|error| target::trouble("has no size", path, &error))?;
        if size >= wanted {
            return Ok(size);
        }
        if begun.elapsed() > GROWS {
            return Err(Status::unavailable(format!(
                "device {} has {size} bytes, and {wanted} bytes are expected",
                device.name
            )));
        }
        plugin.devices.rescan(device);
        std::thread::sleep(AGAIN);
    }
}

fn answer(bytes: u64) -> NodeExpandVolumeResponse {
    NodeExpandVolumeResponse {
        capacity_bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
    }
}
