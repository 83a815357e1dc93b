//! Lists in pages: disks and snapshots of the project that were made for Kubernetes. A page of ours is one of Compute Engine's.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Gce;
use crate::place::Place;
use crate::volumes::disk::Disk;

/// Most items of a page of Compute Engine.
pub(super) const MOST: u32 = 500;

/// A page that begins nowhere: Compute Engine calls its token invalid.
pub(super) fn stale(failure: Failure, token: Option<&str>) -> Failure {
    match token {
        Some(_) if failure.kind == FailureKind::Invalid => Failure::aborted(failure.message),
        _ => failure,
    }
}

impl VolumeListing for Gce {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let place = Place::of(&self.config.global, self.context)?;
        let page = self.disks_page(&place.project, limit.min(MOST), after);
        let (disks, next) = page.map_err(|failure| stale(failure, after))?;
        let ours = disks.iter().filter(|disk| disk.is_of_kubernetes());
        let volume = |disk: &Disk| disk.volume(&disk.id(&place.project).to_string());
        Ok(VolumePage {
            volumes: ours.map(volume).collect(),
            next,
        })
    }
}
