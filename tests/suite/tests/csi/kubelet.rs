//! The kubelet's requests to the node service.

use std::collections::HashMap;

use cloudwit_csi::proto::node_client::NodeClient;
use cloudwit_csi::proto::volume_capability::access_mode::Mode;
use cloudwit_csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use cloudwit_csi::proto::volume_usage::Unit;
use cloudwit_csi::proto::*;
use tonic::Status;
use tonic::transport::Channel;

use crate::machine::Machine;

/// A publish context.
pub type Context = HashMap<String, String>;

fn capability(access_type: AccessType) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(access_type),
    }
}

/// A file system; an empty name leaves it to the plugin.
pub fn mount(fs_type: &str) -> VolumeCapability {
    capability(AccessType::Mount(MountVolume {
        fs_type: fs_type.into(),
        ..MountVolume::default()
    }))
}

pub fn block() -> VolumeCapability {
    capability(AccessType::Block(BlockVolume {}))
}

/// A hint about a device, as the controller gives it.
pub fn hint(kind: &str, value: &str) -> Context {
    [(format!("{}{kind}", cloudwit_csi::DEVICE_HINT), value.to_owned())].into()
}

/// What the kubelet asks for.
pub struct Kubelet<'a> {
    machine: &'a Machine,
    pub client: NodeClient<Channel>,
}

impl<'a> Kubelet<'a> {
    pub async fn of(machine: &'a Machine) -> Self {
        let client = machine.client().await;
        Self { machine, client }
    }

    fn path(&self, path: &str) -> String {
        self.machine.kubelet(path).display().to_string()
    }

    /// Stages at `stage/NAME`.
    pub async fn stage(
        &mut self,
        id: &str,
        name: &str,
        context: &Context,
        capability: VolumeCapability,
    ) -> Result<(), Status> {
        let staging_target_path = self.path(&format!("stage/{name}"));
        let request = NodeStageVolumeRequest {
            volume_id: id.into(),
            publish_context: context.clone(),
            staging_target_path,
            volume_capability: Some(capability),
            ..NodeStageVolumeRequest::default()
        };
        self.client.node_stage_volume(request).await.map(|_| ())
    }

    /// Publishes what is staged at `stage/NAME` at `pods/POD`.
    pub async fn publish(
        &mut self,
        (id, name, pod): (&str, &str, &str),
        context: &Context,
        capability: VolumeCapability,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: id.into(),
            publish_context: context.clone(),
            staging_target_path: self.path(&format!("stage/{name}")),
            target_path: self.path(&format!("pods/{pod}")),
            volume_capability: Some(capability),
            readonly,
            ..NodePublishVolumeRequest::default()
        };
        self.client.node_publish_volume(request).await.map(|_| ())
    }

    pub async fn unpublish(&mut self, id: &str, pod: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: id.into(),
            target_path: self.path(&format!("pods/{pod}")),
        };
        self.client.node_unpublish_volume(request).await.map(|_| ())
    }

    pub async fn unstage(&mut self, id: &str, name: &str) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: id.into(),
            staging_target_path: self.path(&format!("stage/{name}")),
        };
        self.client.node_unstage_volume(request).await.map(|_| ())
    }

    /// Total bytes and inodes of what is at `pods/POD`; no inodes for a device.
    pub async fn total(&mut self, id: &str, pod: &str) -> Result<(i64, Option<i64>), Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: id.into(),
            volume_path: self.path(&format!("pods/{pod}")),
            ..NodeGetVolumeStatsRequest::default()
        };
        let usage = self.client.node_get_volume_stats(request).await?.into_inner().usage;
        let of = |unit: Unit| usage.iter().find(|one| one.unit() == unit);
        for one in &usage {
            assert!(
                one.used >= 0 && one.available >= 0 && one.used + one.available <= one.total,
                "{one:?}"
            );
        }
        Ok((of(Unit::Bytes).unwrap().total, of(Unit::Inodes).map(|one| one.total)))
    }

    pub async fn expand(&mut self, id: &str, pod: &str, gib: i64) -> Result<i64, Status> {
        let request = NodeExpandVolumeRequest {
            volume_id: id.into(),
            volume_path: self.path(&format!("pods/{pod}")),
            capacity_range: Some(CapacityRange {
                required_bytes: gib << 30,
                limit_bytes: 0,
            }),
            ..NodeExpandVolumeRequest::default()
        };
        let expanded = self.client.node_expand_volume(request).await?;
        Ok(expanded.into_inner().capacity_bytes)
    }
}
