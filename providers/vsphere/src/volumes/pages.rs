//! Lists in pages: the cluster's volumes and snapshots, one vCenter after the other. A page of ours is one of CNS's.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;
use crate::instances::named;
use crate::volumes::cns::volume::Filter;
use crate::volumes::find::Finds;

/// Most volumes of a page (upstream's `DefaultQueryLimit` of a full list is the same).
const MOST: u64 = 500;

/// Where a page begins: on the vCenter in this place of the configuration, after so many entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub vcenter: usize,
    pub from: u64,
}

impl Position {
    /// Reads the token of the page before.
    ///
    /// # Errors
    /// `aborted` for a foreign one.
    pub(super) fn read(after: Option<&str>, vcenters: usize) -> Result<Self, Failure> {
        let Some(after) = after else { return Ok(Self::default()) };
        let read = after.split_once('+').and_then(|(vcenter, from)| {
            let vcenter = vcenter.parse().ok().filter(|vcenter| *vcenter < vcenters)?;
            Some(Self {
                vcenter,
                from: from.parse().ok()?,
            })
        });
        read.ok_or_else(|| Failure::aborted(format!("no page ends with {after}")))
    }

    /// Where the next page begins, by where the next one of CNS does.
    pub(super) fn next(self, next: Option<u64>, vcenters: usize) -> Option<String> {
        let next = match next {
            Some(from) => Self { from, ..self },
            None => Self {
                vcenter: self.vcenter + 1,
                from: 0,
            },
        };
        (next.vcenter < vcenters).then(|| format!("{}+{}", next.vcenter, next.from))
    }
}

impl VolumeListing for Vsphere {
    fn list_volumes(&self, after: Option<&str>, limit: u32) -> Result<VolumePage, Failure> {
        let vcenters = self.settings.vcenters.len();
        let position = Position::read(after, vcenters)?;
        let cns = self.cns_at(position.vcenter)?;
        let cluster = self.cluster_id();
        let filter = Filter {
            ids: &[],
            name: None,
            cluster: Some(&cluster),
            from: position.from,
            most: u64::from(limit).min(MOST),
        };
        let page = cns.query(&filter);
        let page = page.map_err(|failure| named(cns.vcenter, failure))?;
        let order: Vec<String> = page.entries.iter().map(|volume| volume.id.clone()).collect();
        let whole = self.whole(position.vcenter, &cns, page.entries)?;
        let mut finds: Finds = whole.into_iter().map(|(id, one)| (id, one.map(Some))).collect();
        let mut told = self.told(&mut finds);
        let mut volumes = Vec::new();
        for id in order {
            match told.remove(&id) {
                Some(Ok(volume)) => volumes.extend(volume),
                // Volumes of a datastore that this user may not see are left out; what prevents all of them is none of one.
                Some(Err(failure)) if failure.kind == FailureKind::Denied => warn!("{}", failure.message()),
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
        }
        Ok(VolumePage {
            volumes,
            next: position.next(page.next, vcenters),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_over_vcenters() {
        let first = Position::read(None, 2).unwrap();
        let second = first.next(Some(7), 2).unwrap();
        let second = Position::read(Some(&second), 2).unwrap();
        assert_eq!(second, Position { vcenter: 0, from: 7 });
        let third = Position::read(second.next(None, 2).as_deref(), 2).unwrap();
        assert_eq!(third, Position { vcenter: 1, from: 0 });
        assert_eq!(third.next(None, 2), None);
        for stale in ["", "7", "2+0", "0+x", "-1+0"] {
            let refused = Position::read(Some(stale), 2).unwrap_err();
            assert_eq!(refused.kind, FailureKind::Aborted, "{stale}");
        }
    }
}
