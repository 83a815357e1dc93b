//! A virtual machine as the property collector returns it.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::instances::addresses::GuestNic;
use crate::instances::guest_os;
use crate::instances::uuid::Uuid;
use crate::vcenter::properties::Object;
use crate::vcenter::soap::Reference;

/// The type of machines.
pub const KIND: &str = "VirtualMachine";

/// What is read of each machine. `config.extraConfig` is not in it: it is several times as long as all the rest.
pub const PROPERTIES: &[&str] = &[
    "name",
    "summary.config.uuid",
    "summary.config.guestId",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "guest.hostName",
    "guest.net",
    "runtime.powerState",
    "runtime.host",
    "resourcePool",
];

/// The two settings of a machine with its configured addresses.
pub const METADATA: [&str; 2] = ["guestinfo.metadata", "guestinfo.metadata.encoding"];

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its managed object.
    pub reference: Reference,
    /// Its name in the inventory.
    pub name: String,
    /// The id in its BIOS.
    pub uuid: Option<Uuid>,
    /// The type of its operating system, as the operator chose it.
    pub guest_id: String,
    /// Virtual CPUs.
    pub cpus: Option<u32>,
    /// Memory in MiB.
    pub memory_mb: Option<u64>,
    /// The guest's host name, once VMware Tools have reported it.
    pub host_name: Option<String>,
    /// Its cards, as the guest reports them.
    pub nics: Vec<GuestNic>,
    /// Whether it is switched on.
    pub on: bool,
    /// The machine it runs on.
    pub host: Option<Reference>,
    /// Where its CPU time comes from.
    pub pool: Option<Reference>,
    /// [`METADATA`], as far as it is there.
    pub metadata: [Option<String>; 2],
}

impl Machine {
    /// Reads one.
    ///
    /// # Errors
    /// `denied` when the user may not read it; `other` when the server left out what no machine is without.
    pub fn read(object: Object<'_>) -> Result<Self, Failure> {
        let reference = object
            .reference()
            .ok_or_else(|| Failure::other("the server told of an object without an id"))?;
        if let Some((path, kind)) = object.unreadable().find(|(path, _)| PROPERTIES.contains(path)) {
            let text = format!("{}: {path} cannot be read: {kind}", reference.value);
            let failure = match kind {
                "NoPermission" => Failure::denied(text),
                _ => Failure::other(text),
            };
            return Err(failure.with_code(kind));
        }
        let own = |path| object.text(path).map(String::from);
        let number = |path| object.text(path).and_then(|text| text.parse::<u64>().ok());
        let state = own("runtime.powerState")
            .ok_or_else(|| Failure::other(format!("{}: its power state is not told", reference.value)))?;
        Ok(Self {
            name: own("name").unwrap_or_else(|| reference.value.clone()),
            reference,
            uuid: object.text("summary.config.uuid").and_then(Uuid::parse),
            guest_id: own("summary.config.guestId").unwrap_or_default(),
            cpus: number("summary.config.numCpu").and_then(|count| u32::try_from(count).ok()),
            memory_mb: number("summary.config.memorySizeMB"),
            host_name: own("guest.hostName"),
            nics: object.value("guest.net").map(nics).unwrap_or_default(),
            on: state == "poweredOn",
            host: object.refers("runtime.host"),
            pool: object.refers("resourcePool"),
            metadata: METADATA.map(|key| setting(object, key)),
        })
    }

    /// `vsphere-vm.cpu-2.mem-4gb.os-ubuntu`, upstream's instance type; none while the server does not have the machine's settings.
    pub fn instance_type(&self) -> Option<String> {
        let (cpus, gib) = (self.cpus?.to_string(), (self.memory_mb? / 1024).to_string());
        let os = guest_os::short_name(&self.guest_id);
        Some(format!("vsphere-vm.cpu-{cpus}.mem-{gib}gb.os-{os}"))
    }
}

fn nics(net: &Element) -> Vec<GuestNic> {
    let nic = |nic: &Element| GuestNic {
        device: nic
            .text("deviceConfigId")
            .and_then(|id| id.parse().ok())
            .unwrap_or_default(),
        network: nic.text("network").unwrap_or_default().into(),
        addresses: nic
            .children("ipAddress")
            .map(|address| address.own_text().into())
            .collect(),
    };
    net.children("GuestNicInfo").map(nic).collect()
}

/// The path of a single setting.
pub fn setting_path(key: &str) -> String {
    format!("config.extraConfig[\"{key}\"]")
}

/// A setting, read alone or among all of them.
fn setting(object: Object<'_>, key: &str) -> Option<String> {
    if let Some(option) = object.value(&setting_path(key)) {
        return option.text("value").map(String::from);
    }
    let all = object.value("config.extraConfig")?;
    let option = all
        .children("OptionValue")
        .find(|option| option.text("key") == Some(key))?;
    option.text("value").map(String::from)
}
