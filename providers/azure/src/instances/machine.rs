//! A virtual machine as the cloud returns it, and in the contract's terms.

use cloudwit_guest_sdk::lookup::Existing;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::PROVIDER_ID_PREFIX;
use crate::arm::ids;

/// A machine.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Its resource id, the group in small letters.
    pub id: String,
    /// Its name; of one in a uniform scale set `SET_NUMBER`.
    pub name: String,
    /// What it calls itself, in small letters.
    pub computer_name: String,
    /// Ids of its interfaces, the primary one first.
    pub interfaces: Vec<String>,
    /// How it runs, where that came along.
    pub view: View,
    location: String,
    zone: Option<String>,
    size: Option<String>,
}

/// How a machine runs.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Whether the cloud reported it at all.
    pub known: bool,
    /// `running`, `deallocated` and so on.
    power: String,
    /// Whether the last change of the machine is done.
    settled: bool,
    /// Number of the fault domain.
    fault_domain: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Wire {
    id: String,
    name: String,
    location: String,
    zones: Vec<String>,
    sku: Sku,
    properties: Properties,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Sku {
    name: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Properties {
    hardware_profile: Hardware,
    os_profile: Os,
    network_profile: NetworkProfile,
    instance_view: Option<InstanceView>,
    provisioning_state: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Hardware {
    vm_size: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Os {
    computer_name: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct NetworkProfile {
    network_interfaces: Vec<Interface>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Interface {
    id: String,
    properties: InterfaceProperties,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InterfaceProperties {
    primary: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct InstanceView {
    platform_fault_domain: Option<u64>,
    statuses: Vec<Status>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    code: String,
}

impl Machine {
    /// Of an answer or an item of a list.
    ///
    /// # Errors
    /// `other` when it is no machine.
    pub fn read(value: &Value) -> Result<Self, Failure> {
        let wire = Wire::deserialize(value).map_err(|mistake| {
            Failure::other(format!(
                "the cloud's description of a virtual machine is odd: {mistake}"
            ))
        })?;
        let view = View::of(&wire);
        let mut interfaces = wire.properties.network_profile.network_interfaces;
        // The only one need not be marked.
        interfaces.sort_by_key(|interface| interface.properties.primary != Some(true));
        Ok(Self {
            id: ids::with_small_group(&wire.id),
            name: wire.name,
            computer_name: wire.properties.os_profile.computer_name.to_ascii_lowercase(),
            interfaces: interfaces.into_iter().map(|interface| interface.id).collect(),
            view,
            location: wire.location.to_ascii_lowercase(),
            zone: wire.zones.into_iter().next(),
            size: wire.properties.hardware_profile.vm_size.or(wire.sku.name),
        })
    }

    /// In the contract's words.
    pub fn existing(&self, view: &View, addresses: Vec<Address>) -> Existing {
        let instance = Instance {
            instance_type: self.size.clone(),
            zone: Some(self.zone(view)),
            region: Some(self.location.clone()),
            addresses,
            ..Instance::new(format!("{PROVIDER_ID_PREFIX}{}", self.id))
        };
        if view.stopped() {
            Existing::Stopped(instance)
        } else {
            Existing::Running(instance)
        }
    }

    /// The availability zone; where there is none the fault domain.
    fn zone(&self, view: &View) -> String {
        match &self.zone {
            Some(zone) => format!("{}-{zone}", self.location),
            None => view.fault_domain.unwrap_or(0).to_string(),
        }
    }
}

impl View {
    fn of(wire: &Wire) -> Self {
        let Some(view) = &wire.properties.instance_view else {
            return Self::default();
        };
        let codes = view.statuses.iter().map(|status| status.code.as_str());
        let power = codes.filter_map(|code| code.strip_prefix("PowerState/")).next_back();
        Self {
            known: true,
            power: power.unwrap_or_default().to_ascii_lowercase(),
            settled: wire.properties.provisioning_state.eq_ignore_ascii_case("Succeeded"),
            fault_domain: view.platform_fault_domain,
        }
    }

    /// As upstream: while the machine is being changed it counts as running.
    fn stopped(&self) -> bool {
        self.settled && matches!(self.power.as_str(), "stopped" | "deallocated" | "deallocating")
    }
}
