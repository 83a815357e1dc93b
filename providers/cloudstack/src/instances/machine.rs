//! A machine as CloudStack returns it, and what it means for its Node.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::names::label_value;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::types::ip_address;
use serde::Deserialize;

use crate::PROVIDER_ID_PREFIX;
use crate::api::wire;

/// Longest value of a label.
const LABEL: usize = 63;

/// What is read of a virtual machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// UUID.
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
    /// Name; that of its Node, in whatever case.
    pub name: String,
    /// `Running`, `Stopped` and so on.
    pub state: String,
    /// Name of its zone.
    pub zonename: String,
    /// Name of its service offering.
    pub serviceofferingname: String,
    /// Address of static NAT.
    pub publicip: Option<String>,
    /// Interfaces; the first one is that of Kubernetes, as upstream has it.
    pub nic: Vec<Interface>,
}

/// What is read of an interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// IPv4 address.
    pub ipaddress: Option<String>,
    /// IPv6 address.
    pub ip6address: Option<String>,
    /// Network.
    #[serde(deserialize_with = "wire::text")]
    pub networkid: String,
}

impl Machine {
    /// What is reported to the controller.
    ///
    /// # Errors
    /// `unavailable` while a machine that runs has no address.
    pub fn existing(&self, region: Option<&str>) -> Result<Existing, Failure> {
        let stopped = matches!(self.state.as_str(), "Stopped" | "Shutdown" | "Destroyed" | "Expunging");
        let mut instance = Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.id));
        instance.instance_type = Some(self.instance_type()).filter(|text| !text.is_empty());
        instance.zone = Some(label_value(&self.zonename)).filter(|zone| !zone.is_empty());
        instance.region = region.map(str::to_owned).or_else(|| instance.zone.clone());
        instance.addresses = self.addresses();
        if stopped {
            return Ok(Existing::Stopped(instance));
        }
        if instance
            .addresses
            .iter()
            .all(|address| address.kind != AddressKind::InternalIp)
        {
            return Err(Failure::unavailable(format!(
                "the virtual machine {} ({}) has no address yet",
                self.name, self.id
            )));
        }
        Ok(Existing::Running(instance))
    }

    /// Upstream removes all that its expression finds, which is all but letters and digits.
    fn instance_type(&self) -> String {
        let kept = self.serviceofferingname.chars().filter(char::is_ascii_alphanumeric);
        kept.take(LABEL).collect()
    }

    /// `hostname` is the name of the hypervisor's host, so the machine's own name is the host name.
    fn addresses(&self) -> Vec<Address> {
        let first = self.nic.first();
        let v4 = first.and_then(|nic| nic.ipaddress.as_deref());
        let v6 = first.and_then(|nic| nic.ip6address.as_deref());
        let ip = |kind: AddressKind, text: Option<&str>| text.and_then(|text| ip_address(kind, text));
        let mut addresses: Vec<Address> = ip(AddressKind::InternalIp, v4).into_iter().collect();
        addresses.push(Address::new(AddressKind::Hostname, &self.name));
        addresses.extend(ip(AddressKind::ExternalIp, self.publicip.as_deref()));
        addresses.extend(ip(AddressKind::InternalIp, v6));
        addresses
    }
}
