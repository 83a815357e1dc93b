//! A machine as BCC returns it, and what it means for its Node.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::PROVIDER_ID_PREFIX;

/// States of machines that do not run (BCC's API reference, "InstanceStatus").
const STOPPED: [&str; 3] = ["Stopped", "Expired", "Recycled"];

/// What is read of a machine. Texts that are missing are null or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Machine {
    /// `i-...`.
    pub id: String,
    /// Name in the console; several may have the same.
    pub name: Option<String>,
    /// Name in the operating system.
    pub hostname: Option<String>,
    /// `Running`, `Stopped` and so on.
    pub status: String,
    /// `cn-bj-a`.
    pub zone_name: Option<String>,
    /// Primary address.
    pub internal_ip: Option<String>,
    /// Address of its EIP.
    pub public_ip: Option<String>,
    /// IPv6 address.
    pub ipv6: Option<String>,
    /// `bcc.g5.c2m8`; of older machines nothing.
    pub spec: Option<String>,
    /// `N5` and so on.
    pub instance_type: Option<String>,
    /// Its VPC.
    pub vpc_id: Option<String>,
    /// Its subnet.
    pub subnet_id: Option<String>,
}

fn text(value: &Option<String>) -> Option<&str> {
    value.as_deref().map(str::trim_ascii).filter(|text| !text.is_empty())
}

impl Machine {
    /// Whether a Node of this name is on it: by its address, as Nodes of Baidu's container engine are called, by its host name, or by its name where
    /// it has no host name.
    pub fn is_called(&self, name: &str) -> bool {
        let host = text(&self.hostname).or(text(&self.name));
        text(&self.internal_ip) == Some(name) || host.is_some_and(|host| host.eq_ignore_ascii_case(name))
    }

    /// Whether the cloud calls it deleted.
    pub fn is_deleted(&self) -> bool {
        self.status == "Deleted"
    }

    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` while a machine that runs has no address.
    pub fn existing(&self, region: &str) -> Result<Existing, Failure> {
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.id));
        let kind = text(&self.spec).or(text(&self.instance_type)).unwrap_or("BCC");
        instance.instance_type = Some(label_value(kind));
        instance.zone = text(&self.zone_name).map(label_value).filter(|zone| !zone.is_empty());
        instance.region = Some(region.to_owned());
        instance.addresses = self.addresses();
        if STOPPED.contains(&self.status.as_str()) {
            return Ok(Existing::Stopped(instance));
        }
        let internal = |address: &Address| address.kind == AddressKind::InternalIp;
        if !instance.addresses.iter().any(internal) {
            let text = format!("the machine {} has no address yet", self.id);
            return Err(Failure::unavailable(text));
        }
        Ok(Existing::Running(instance))
    }

    /// The host name is the address, as Baidu's own controller has it: names of machines resolve nowhere.
    fn addresses(&self) -> Vec<Address> {
        let ip = |kind: AddressKind, value: &Option<String>| text(value).and_then(|text| ip_address(kind, text));
        let internal = ip(AddressKind::InternalIp, &self.internal_ip);
        let hostname = internal
            .as_ref()
            .map(|ip| Address::new(AddressKind::Hostname, &ip.value));
        let external = ip(AddressKind::ExternalIp, &self.public_ip);
        let v6 = ip(AddressKind::InternalIp, &self.ipv6);
        [internal, hostname, external, v6].into_iter().flatten().collect()
    }
}
