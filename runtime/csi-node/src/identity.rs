//! The identity service of the plugin: as the controller's, since both are one driver.

use std::collections::HashMap;

use cloudwit_csi::proto::identity_server::Identity;
use cloudwit_csi::proto::plugin_capability::service::Type as Service;
use cloudwit_csi::proto::plugin_capability::{self, Type};
use cloudwit_csi::proto::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};
use tonic::{Request, Response, Status};

use crate::plugin::Plugin;

#[tonic::async_trait]
impl Identity for Plugin {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: self.options.driver.clone(),
            vendor_version: self.options.version.clone(),
            manifest: HashMap::new(),
        }))
    }

    /// The interface requires the capabilities of the whole driver from each of its parts.
    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let mut services = vec![Service::ControllerService];
        if self.info.now().is_ok_and(|node| !node.topology.is_empty()) {
            services.push(Service::VolumeAccessibilityConstraints);
        }
        let capability = |service: Service| PluginCapability {
            r#type: Some(Type::Service(plugin_capability::Service { r#type: service.into() })),
        };
        Ok(Response::new(GetPluginCapabilitiesResponse {
            capabilities: services.into_iter().map(capability).collect(),
        }))
    }

    /// Ready from the first moment on: what is staged can be unstaged without the machine's id.
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}
