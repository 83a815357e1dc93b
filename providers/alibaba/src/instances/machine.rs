//! An instance as ECS returns it, and what it means for its Node.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::api::inner;
use crate::provider_id;

/// What is read of an instance.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Machine {
    /// Id.
    pub instance_id: String,
    /// Name.
    pub instance_name: String,
    /// `Pending`, `Running`, `Starting`, `Stopping` or `Stopped`.
    pub status: String,
    /// Type.
    pub instance_type: String,
    /// Zone.
    pub zone_id: String,
    /// Region.
    pub region_id: String,
    /// Public addresses.
    #[serde(deserialize_with = "inner")]
    pub public_ip_address: Vec<String>,
    /// Addresses in the classic network.
    #[serde(deserialize_with = "inner")]
    pub inner_ip_address: Vec<String>,
    /// Elastic address.
    pub eip_address: Elastic,
    /// Address in the VPC.
    pub vpc_attributes: Vpc,
    /// Interfaces.
    #[serde(deserialize_with = "inner")]
    pub network_interfaces: Vec<Interface>,
}

/// An elastic address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Elastic {
    /// Empty for none.
    pub ip_address: String,
}

/// What is in a VPC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Vpc {
    /// Addresses in it.
    #[serde(deserialize_with = "inner")]
    pub private_ip_address: Vec<String>,
}

/// An interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Interface {
    /// `Primary` or `Secondary`.
    #[serde(rename = "Type")]
    pub kind: String,
    /// IPv6 addresses.
    #[serde(deserialize_with = "inner")]
    pub ipv6_sets: Vec<Ipv6>,
}

/// An IPv6 address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Ipv6 {
    /// The address.
    pub ipv6_address: String,
}

impl Machine {
    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` while an instance that runs has no private address.
    pub fn existing(&self) -> Result<Existing, Failure> {
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        let mut instance = Instance::new(provider_id(&self.region_id, &self.instance_id));
        instance.instance_type = text(&self.instance_type);
        instance.zone = text(&self.zone_id);
        instance.region = text(&self.region_id);
        instance.addresses = self.addresses();
        if self.status == "Stopped" {
            return Ok(Existing::Stopped(instance));
        }
        let mut addresses = instance.addresses.iter();
        if !addresses.any(|address| address.kind == AddressKind::InternalIp) {
            let id = &self.instance_id;
            return Err(Failure::unavailable(format!(
                "the instance {id} has no private address yet"
            )));
        }
        Ok(Existing::Running(instance))
    }

    /// Addresses inside.
    pub fn private(&self) -> impl Iterator<Item = &str> {
        let inner = self.inner_ip_address.iter();
        let all = inner.chain(&self.vpc_attributes.private_ip_address);
        all.map(String::as_str)
    }

    /// In upstream's order.
    fn addresses(&self) -> Vec<Address> {
        let public = self.public_ip_address.iter().map(String::as_str);
        let public = public.chain([self.eip_address.ip_address.as_str()]);
        let primary = self.network_interfaces.iter().find(|one| one.kind == "Primary");
        let v6 = primary.into_iter().flat_map(|primary| &primary.ipv6_sets);
        let external = public.filter_map(|ip| ip_address(AddressKind::ExternalIp, ip));
        let internal = self.private().chain(v6.map(|v6| v6.ipv6_address.as_str()));
        external
            .chain(internal.filter_map(|ip| ip_address(AddressKind::InternalIp, ip)))
            .collect()
    }
}
