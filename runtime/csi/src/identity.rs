//! The identity service: who answers, what it can, and whether it is ready.

use std::collections::HashMap;

use tonic::{Request, Response, Status};

use crate::codes;
use crate::driver::Driver;
use crate::proto::identity_server::Identity;
use crate::proto::plugin_capability::service::Type as Service;
use crate::proto::plugin_capability::volume_expansion::Type as Expansion;
use crate::proto::plugin_capability::{self, Type};
use crate::proto::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginCapability, ProbeRequest, ProbeResponse,
};
use cloudwit_model::volume::VolumeFeature;

#[tonic::async_trait]
impl Identity for Driver {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: self.name.clone(),
            vendor_version: self.version.clone(),
            manifest: HashMap::new(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let description = self.description().await.map_err(codes::of_error)?;
        let mut capabilities = vec![service(Service::ControllerService)];
        if !description.topology_keys.is_empty() {
            capabilities.push(service(Service::VolumeAccessibilityConstraints));
        }
        if self.abilities().expansion {
            let online = description.has(VolumeFeature::ExpandOnline);
            let r#type = if online { Expansion::Online } else { Expansion::Offline }.into();
            let expansion = plugin_capability::VolumeExpansion { r#type };
            capabilities.push(PluginCapability {
                r#type: Some(Type::VolumeExpansion(expansion)),
            });
        }
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    /// Ready while the provider can be called at all. Whether its cloud can be reached shows in each answer.
    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        self.description().await.map_err(codes::of_error)?;
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}

fn service(service: Service) -> PluginCapability {
    let r#type = service.into();
    PluginCapability {
        r#type: Some(Type::Service(plugin_capability::Service { r#type })),
    }
}
