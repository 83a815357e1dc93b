//! The node service: one function per RPC, each on a thread of its own.

mod expand;
mod publish;
mod stage;
mod stats;
mod target;

use cloudwit_csi::proto;
use cloudwit_csi::proto::node_server::Node;
use cloudwit_csi::proto::node_service_capability::rpc::Type as Rpc;
use cloudwit_csi::proto::node_service_capability::{self, Type};
use tonic::{Code, Request, Response, Status};
use tracing::{info, info_span};

use crate::locks::Locks;
use crate::plugin::Plugin;

/// What it can.
const CAPABILITIES: [Rpc; 4] = [
    Rpc::StageUnstageVolume,
    Rpc::GetVolumeStats,
    Rpc::ExpandVolume,
    Rpc::SingleNodeMultiWriter,
];

impl Plugin {
    /// Answers an RPC about a volume. What was begun is ended even when the kubelet does not wait for it: a file system is not left half made. Requests are never
    /// logged, since they may carry secrets.
    async fn answer<Q: Send + 'static, A: Send + 'static>(
        &self,
        method: &'static str,
        (locks, volume): (&Locks, String),
        request: Q,
        handle: fn(&Plugin, Q) -> Result<A, Status>,
    ) -> Result<Response<A>, Status> {
        // A volume without an id is refused by what checks the request.
        let held = (!volume.is_empty()).then(|| locks.begin(&volume, method)).transpose();
        let answer = match held {
            Err(busy) => Err(busy),
            Ok(held) => {
                let plugin = self.clone();
                let span = info_span!("csi", driver = self.options.driver, method, volume);
                let work = tokio::task::spawn_blocking(move || {
                    let _held = held;
                    span.in_scope(|| handle(&plugin, request))
                });
                work.await
                    .unwrap_or_else(|crashed| Err(Status::aborted(format!("the operation crashed: {crashed}"))))
            }
        };
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        if let Err(status) = &answer {
            info!(method, volume, ?code, error = status.message(), "request not fulfilled");
        }
        answer.map(Response::new)
    }
}

/// The methods about volumes: whether they change something, and the function that answers.
macro_rules! node_service {
    ($($method:ident($name:literal, $locks:ident, $request:ident) -> $response:ident = $handle:path;)*) => {
        #[tonic::async_trait]
        impl Node for Plugin {
            $(async fn $method(&self, request: Request<proto::$request>) -> Result<Response<proto::$response>, Status> {
                let request = request.into_inner();
                let subject = (&self.$locks, request.volume_id.clone());
                self.answer($name, subject, request, $handle).await
            })*

            async fn node_get_capabilities(
                &self,
                _: Request<proto::NodeGetCapabilitiesRequest>,
            ) -> Result<Response<proto::NodeGetCapabilitiesResponse>, Status> {
                Ok(Response::new(capabilities()))
            }

            async fn node_get_info(
                &self,
                _: Request<proto::NodeGetInfoRequest>,
            ) -> Result<Response<proto::NodeGetInfoResponse>, Status> {
                let node = self.info.now().map_err(Status::unavailable)?;
                Ok(Response::new(proto::NodeGetInfoResponse {
                    node_id: node.node_id,
                    // 0 is no limit.
                    max_volumes_per_node: node.max_volumes.unwrap_or_default().into(),
                    accessible_topology: (!node.topology.is_empty()).then(|| proto::Topology {
                        segments: node.topology.into_iter().collect(),
                    }),
                }))
            }

            async fn node_get_volume_health(
                &self,
                _: Request<proto::NodeGetVolumeHealthRequest>,
            ) -> Result<Response<proto::NodeGetVolumeHealthResponse>, Status> {
                Err(Status::unimplemented("the health of a volume is not known"))
            }

            async fn node_get_storage_health(
                &self,
                _: Request<proto::NodeGetStorageHealthRequest>,
            ) -> Result<Response<proto::NodeGetStorageHealthResponse>, Status> {
                Err(Status::unimplemented("the health of the storage is not known"))
            }
        }
    };
}

node_service! {
    node_stage_volume("NodeStageVolume", changes, NodeStageVolumeRequest) -> NodeStageVolumeResponse = stage::stage;
    node_unstage_volume("NodeUnstageVolume", changes, NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse = stage::unstage;
    node_publish_volume("NodePublishVolume", changes, NodePublishVolumeRequest) -> NodePublishVolumeResponse = publish::publish;
    node_unpublish_volume("NodeUnpublishVolume", changes, NodeUnpublishVolumeRequest)
        -> NodeUnpublishVolumeResponse = publish::unpublish;
    node_expand_volume("NodeExpandVolume", changes, NodeExpandVolumeRequest) -> NodeExpandVolumeResponse = expand::expand;
    node_get_volume_stats("NodeGetVolumeStats", looks, NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse = stats::stats;
}

fn capabilities() -> proto::NodeGetCapabilitiesResponse {
    let capability = |rpc: Rpc| proto::NodeServiceCapability {
        r#type: Some(Type::Rpc(node_service_capability::Rpc { r#type: rpc.into() })),
    };
    proto::NodeGetCapabilitiesResponse {
        capabilities: CAPABILITIES.into_iter().map(capability).collect(),
    }
}

#[cfg(test)]
mod tests;
