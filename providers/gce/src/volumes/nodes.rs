//! Machines as the node plugin needs them: id, zone, and how many disks they take.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;
use cloudwit_guest_sdk::volumes::*;

use crate::volumes::ZONE_KEY;
use crate::volumes::disk::ids::node_id;
use crate::{Gce, PROVIDER_ID_PREFIX};

/// Types with a shared core, and how many disks they take beside the one they start from; others take more (upstream's `GetVolumeLimits`, and Google Cloud,
/// "Persistent Disk": 16 and 128).
const SMALL: ([&str; 5], u32) = (["f1-micro", "g1-small", "e2-micro", "e2-small", "e2-medium"], 15);

/// What all other types take.
const USUAL: u32 = 127;

fn limit(kind: Option<&str>) -> u32 {
    let is_small = kind.is_some_and(|kind| SMALL.0.contains(&kind));
    if is_small { SMALL.1 } else { USUAL }
}

impl Gce {
    pub(super) fn nodes_for_volumes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let found = self.lookup(nodes)?;
        let one = |(node, presence): (&NodeRef, Result<Presence, Failure>)| {
            let missing = || Failure::not_found(format!("Node {} has no instance", node.name));
            let (Presence::Running(machine) | Presence::Stopped(machine)) = presence? else {
                return Err(missing());
            };
            let id = id_after(PROVIDER_ID_PREFIX, &machine.provider_id).and_then(node_id);
            Ok(VolumeNode {
                id: id.ok_or_else(missing)?,
                topology: Topology::of(ZONE_KEY, machine.zone.unwrap_or_default()),
                max_volumes: Some(limit(machine.instance_type.as_deref())),
            })
        };
        Ok(nodes.iter().zip(found).map(one).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_cores_take_few_disks() {
        assert_eq!(
            (limit(Some("e2-micro")), limit(Some("n2-standard-4")), limit(None)),
            (15, 127, 127)
        );
    }
}
