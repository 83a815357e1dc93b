//! Lists in pages: disks and snapshots of the configured resource group that were made for Kubernetes.
//!
//! Azure decides how long its pages are, so one of ours ends within one of Azure's: where the next begins is path and query of Azure's page, and how many of its
//! items came before.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::Value;

use crate::Azure;
use crate::arm::DISKS;
use crate::arm::ids::name;
use crate::volumes::disk::Disk;
use crate::volumes::disk::ids::{DISK, collection};

impl Azure {
    /// A page of the resources of this kind: what `keep` makes of each of them, and where the next page begins.
    ///
    /// # Errors
    /// `aborted` for an `after` that leads nowhere; the cloud's error.
    pub(super) fn page_of<T>(
        &self,
        kind: &str,
        (after, limit): (Option<&str>, u32),
        mut keep: impl FnMut(&Value) -> Option<T>,
    ) -> Result<(Vec<T>, Option<String>), Failure> {
        let path = collection(&self.config.group(&self.config.resource_group), kind);
        let (skip, target) = match after {
            None => (0, format!("{path}?api-version={DISKS}")),
            Some(after) => read_place(after, &path).ok_or_else(|| Failure::aborted("the page is none of this list"))?,
        };
        let (items, following) = self.arm.page(&target).map_err(|failure| match failure.kind {
            // Azure calls its token invalid.
            FailureKind::Invalid if after.is_some() => Failure::aborted(failure.message),
            _ => failure,
        })?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut kept = Vec::new();
        for (at, item) in items.iter().enumerate().skip(skip) {
            if kept.len() == limit {
                return Ok((kept, Some(format!("{at} {target}"))));
            }
            kept.extend(keep(item));
        }
        Ok((kept, following.map(|next| format!("0 {next}"))))
    }
}

/// How many items of a page came before, and the page: one of this collection.
fn read_place(after: &str, path: &str) -> Option<(usize, String)> {
    let (skip, target) = after.split_once(' ')?;
    let (start, query) = target.split_once('?')?;
    let is_plain = query.bytes().all(|byte| byte.is_ascii_graphic());
    (start.eq_ignore_ascii_case(path) && is_plain).then_some((skip.parse().ok()?, target.to_owned()))
}

impl VolumeListing for Azure {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let own = |value: &Value| Some(Disk::read(value)).filter(Disk::is_of_kubernetes);
        let (disks, next) = self.page_of(DISK, (after, limit), own)?;
        let names = self.node_names(disks.iter())?;
        // Under the ids that they were created with, whose case the cloud does not keep everywhere.
        let volume = |disk: &Disk| disk.volume(&self.disk_path(None, DISK, name(&disk.id)), &names);
        Ok(VolumePage {
            volumes: disks.iter().map(volume).collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_list_are_followed() {
        let path = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks";
        let next = format!("{}?api-version=1&$skiptoken=a%3D", path.to_ascii_lowercase());
        assert_eq!(read_place(&format!("7 {next}"), path), Some((7, next)));
        for foreign in [
            "",
            "7",
            "x /a?b",
            "0 /elsewhere?x",
            &format!("-1 {path}?x"),
            &format!("0 {path}?x y"),
        ] {
            assert_eq!(read_place(foreign, path), None, "{foreign}");
        }
    }
}
