//! As much of a node plugin as csi-sanity needs to try a controller: who it is.

use std::path::Path;

use cloudwit_csi::Driver;
use cloudwit_csi::proto::identity_server::IdentityServer;
use cloudwit_csi::proto::node_server::{Node, NodeServer};
use cloudwit_csi::proto::*;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};

/// On a machine with this id, in this zone.
pub struct NodeStub {
    pub id: String,
    pub topology: Topology,
    pub most: i64,
}

/// Serves it, with the identity of the driver, for as long as the test runs.
pub fn serve(stub: NodeStub, driver: Driver, path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    let server = Server::builder()
        .add_service(IdentityServer::new(driver))
        .add_service(NodeServer::new(stub));
    drop(tokio::spawn(
        server.serve_with_incoming(UnixListenerStream::new(listener)),
    ));
}

macro_rules! not_here {
    ($($method:ident($request:ident) -> $response:ident;)*) => {
        #[tonic::async_trait]
        impl Node for NodeStub {
            async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Result<Response<NodeGetInfoResponse>, Status> {
                Ok(Response::new(NodeGetInfoResponse {
                    node_id: self.id.clone(),
                    max_volumes_per_node: self.most,
                    accessible_topology: Some(self.topology.clone()),
                }))
            }

            async fn node_get_capabilities(
                &self,
                _: Request<NodeGetCapabilitiesRequest>,
            ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
                Ok(Response::new(NodeGetCapabilitiesResponse::default()))
            }

            /// The clean-up of each spec asks for it: nothing was ever published.
            async fn node_unpublish_volume(
                &self,
                _: Request<NodeUnpublishVolumeRequest>,
            ) -> Result<Response<NodeUnpublishVolumeResponse>, Status> {
                Ok(Response::new(NodeUnpublishVolumeResponse {}))
            }

            $(async fn $method(&self, _: Request<$request>) -> Result<Response<$response>, Status> {
                Err(Status::unimplemented("only a controller is tried"))
            })*
        }
    };
}

not_here! {
    node_stage_volume(NodeStageVolumeRequest) -> NodeStageVolumeResponse;
    node_unstage_volume(NodeUnstageVolumeRequest) -> NodeUnstageVolumeResponse;
    node_publish_volume(NodePublishVolumeRequest) -> NodePublishVolumeResponse;
    node_get_volume_stats(NodeGetVolumeStatsRequest) -> NodeGetVolumeStatsResponse;
    node_get_volume_health(NodeGetVolumeHealthRequest) -> NodeGetVolumeHealthResponse;
    node_get_storage_health(NodeGetStorageHealthRequest) -> NodeGetStorageHealthResponse;
    node_expand_volume(NodeExpandVolumeRequest) -> NodeExpandVolumeResponse;
}
