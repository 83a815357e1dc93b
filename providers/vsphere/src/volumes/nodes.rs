//! Machines as the node plugin needs them: id, zone, and how many volumes they take.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::id_after;
use cloudwit_guest_sdk::volumes::*;

use crate::Vsphere;
use crate::instances::PREFIX;
use crate::volumes::place::{topology, topology_keys};

impl Vsphere {
    pub(super) fn nodes_for_volumes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let keys = self.settings.categories.as_ref().and_then(topology_keys);
        let one = |(node, presence): (&NodeRef, Result<Presence, Failure>)| {
            let missing = || Failure::not_found(format!("Node {} has no machine", node.name));
            let (Presence::Running(machine) | Presence::Stopped(machine)) = presence? else {
                return Err(missing());
            };
            let id = id_after(PREFIX, &machine.provider_id).ok_or_else(missing)?;
            let zone = machine.zone.unwrap_or_default();
            let region = machine.region.unwrap_or_default();
            let topology = keys.as_ref().map(|keys| topology(keys, &(zone, region)));
            Ok(VolumeNode {
                id: id.to_ascii_lowercase(),
                topology: topology.unwrap_or(Topology { segments: Vec::new() }),
                max_volumes: Some(self.settings.volumes.limit),
            })
        };
        Ok(nodes.iter().zip(self.lookup(nodes)?).map(one).collect())
    }
}
