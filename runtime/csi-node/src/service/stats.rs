//! How full a volume is.

use std::path::{Path, PathBuf};

use cloudwit_csi::check::{self, Mistakes};
use cloudwit_csi::proto::volume_usage::Unit;
use cloudwit_csi::proto::{NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, VolumeUsage};
use rustix::fs::StatVfs;
use tonic::Status;

use super::target;
use crate::filesystem::content;
use crate::mounts::Table;
use crate::paths;
use crate::plugin::Plugin;

pub(super) fn stats(plugin: &Plugin, request: NodeGetVolumeStatsRequest) -> Result<NodeGetVolumeStatsResponse, Status> {
    let mut mistakes = Mistakes::default();
    check::id("the volume id", &request.volume_id, &mut mistakes);
    if request.volume_path.is_empty() {
        mistakes.add("the volume path is missing");
    }
    mistakes.none_or(())?;
    let path = place(plugin, &request.volume_path)?;
    if let Some(number) = target::block_device(&path) {
        let (_, node, file) = plugin.devices.with_number(number)?;
        let size = content::size(&file).map_err(|error| target::trouble("has no size", &node, &error))?;
        return Ok(NodeGetVolumeStatsResponse {
            usage: vec![usage(Unit::Bytes, size, None)],
        });
    }
    if Table::read()?.at(&path).is_none() {
        return Err(not_found(&request.volume_path));
    }
    let found = rustix::fs::statvfs(&path).map_err(|error| target::trouble("cannot be read", &path, &error.into()))?;
    Ok(NodeGetVolumeStatsResponse { usage: usages(&found) })
}

/// The path of a volume that is there.
///
/// # Errors
///
/// `NotFound` for a path at which none can be.
pub(super) fn place(plugin: &Plugin, path: &str) -> Result<PathBuf, Status> {
    if paths::wrong(path).is_some() {
        return Err(not_found(path));
    }
    paths::inside(&plugin.options.kubelet_dir, Path::new(path)).map_err(|error| match error {
        paths::PathError::Unreadable(..) => Status::unavailable(error.to_string()),
        _ => not_found(path),
    })
}

pub(super) fn not_found(path: &str) -> Status {
    Status::not_found(format!("no volume is mounted at {path:?}"))
}

fn usages(found: &StatVfs) -> Vec<VolumeUsage> {
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    let (total, free) = (bytes(found.f_blocks), bytes(found.f_bfree));
    let used = (total.saturating_sub(free), bytes(found.f_bavail));
    let inodes = (found.f_files.saturating_sub(found.f_ffree), found.f_favail);
    vec![
        usage(Unit::Bytes, total, Some(used)),
        usage(Unit::Inodes, found.f_files, Some(inodes)),
    ]
}

/// Used and available, where they are known.
fn usage(unit: Unit, total: u64, parts: Option<(u64, u64)>) -> VolumeUsage {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let (used, available) = parts.unwrap_or_default();
    VolumeUsage {
        unit: unit.into(),
        total: number(total),
        used: number(used),
        available: number(available),
    }
}
