//! Servers as the node plugin needs them: id, zone, and how many volumes they take.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;

use crate::OpenStack;
use crate::volumes::ZONE_KEY;

impl OpenStack {
    pub(super) fn nodes_for_volumes(&self, nodes: &[NodeRef]) -> Result<Each<VolumeNode>, Failure> {
        let limit = self.config.blockstorage.limit();
        let one = |(node, found): (&NodeRef, Result<Presence, Failure>)| {
            let missing = || Failure::not_found(format!("Node {} has no server", node.name));
            let instance = match found? {
                Presence::Running(instance) | Presence::Stopped(instance) => instance,
                Presence::Absent(_) => return Err(missing()),
            };
            let (_, id) = instance.provider_id.rsplit_once('/').ok_or_else(missing)?;
            let zone = instance
                .zone
                .ok_or_else(|| Failure::other(format!("Nova shows no availability zone of server {id}")))?;
            Ok(VolumeNode {
                id: id.into(),
                topology: Topology::of(ZONE_KEY, zone),
                max_volumes: Some(limit),
            })
        };
        Ok(nodes.iter().zip(self.lookup(nodes)?).map(one).collect())
    }
}
