//! The inventory of a vcsim as an administrator of vCenter sees and changes it, by govc.

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use crate::clouds::vcsim::Vcsim;

/// A virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualMachine {
    /// Its place in the inventory, such as `/DC0/vm/DC0_H0_VM0`, by which govc finds it.
    pub path: String,
    /// Its name in the inventory.
    pub name: String,
    /// Its managed object, such as `vm-91`.
    pub reference: String,
    /// The id in its BIOS, from which provider ids are made.
    pub bios_uuid: String,
    /// The id that vCenter gave it.
    pub instance_uuid: String,
    /// `poweredOn`, `poweredOff` or `suspended`.
    pub power: String,
    /// Name and first address that the guest has told, if it has.
    pub guest: Option<(String, String)>,
}

impl VirtualMachine {
    /// As it stands in a Node.
    pub fn provider_id(&self) -> String {
        format!("vsphere://{}", self.bios_uuid)
    }
}

impl Vcsim {
    /// All machines, in the order of their paths.
    ///
    /// # Errors
    ///
    /// When vcsim does not answer.
    pub async fn machines(&self) -> Result<Vec<VirtualMachine>> {
        let paths = self.govc(&["find", "/", "-type", "m"]).await?;
        let properties = [
            "name",
            "config.uuid",
            "config.instanceUuid",
            "runtime.powerState",
            "guest.hostName",
            "guest.ipAddress",
        ];
        let collect = [&["object.collect", "-json", "-type", "m", "/"], properties.as_slice()].concat();
        let collected = self.govc(&collect).await?;
        // One document after the other.
        let documents = serde_json::Deserializer::from_str(&collected).into_iter::<Value>();
        let mut machines = documents
            .map(|document| machine(&document.context("reading what govc says")?, &paths))
            .collect::<Result<Vec<_>>>()?;
        machines.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(machines)
    }

    /// The machine with this name in the inventory.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn machine(&self, name: &str) -> Result<VirtualMachine> {
        let found = self.machines().await?.into_iter().find(|machine| machine.name == name);
        found.with_context(|| format!("vcsim has no machine {name}"))
    }

    /// Lets the machine's guest tell this host name and this address, as VMware Tools do some time after its start.
    ///
    /// # Errors
    ///
    /// When there is no such machine.
    pub async fn set_guest(&self, path: &str, host_name: &str, address: &str) -> Result<()> {
        let (name, address) = (
            format!("SET.guest.hostName={host_name}"),
            format!("SET.guest.ipAddress={address}"),
        );
        self.govc(&["vm.change", "-vm", path, "-e", &name, "-e", &address])
            .await
            .map(drop)
    }

    /// Makes a tag in a category, which is made too if it is not there, and attaches it to an object of the inventory (`/DC0`,
    /// `/DC0/host/DC0_C0`).
    ///
    /// # Errors
    ///
    /// When there is no such object.
    pub async fn tag(&self, category: &str, tag: &str, path: &str) -> Result<()> {
        let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
        if !lines(self.govc(&["tags.category.ls"]).await?).contains(&category.to_owned()) {
            self.govc(&["tags.category.create", category]).await?;
        }
        if !lines(self.govc(&["tags.ls", "-c", category]).await?).contains(&tag.to_owned()) {
            self.govc(&["tags.create", "-c", category, tag]).await?;
        }
        self.govc(&["tags.attach", "-c", category, tag, path]).await.map(drop)
    }

    /// Switches a machine off, hard.
    ///
    /// # Errors
    ///
    /// When there is no such machine or it is off already.
    pub async fn power_off(&self, path: &str) -> Result<()> {
        self.govc(&["vm.power", "-off", "-force", path]).await.map(drop)
    }

    /// Deletes a machine.
    ///
    /// # Errors
    ///
    /// When there is no such machine.
    pub async fn destroy(&self, path: &str) -> Result<()> {
        self.govc(&["vm.destroy", path]).await.map(drop)
    }
}

/// Reads one document of `object.collect`.
fn machine(document: &Value, paths: &str) -> Result<VirtualMachine> {
    let changes = document["changeSet"]
        .as_array()
        .with_context(|| format!("no properties in {document}"))?;
    let value = |name: &str| {
        let change = changes.iter().find(|change| change["name"] == name);
        change.and_then(|change| change["val"].as_str()).map(str::to_owned)
    };
    let needed = |name: &str| value(name).ok_or_else(|| anyhow!("no {name} in {document}"));
    let name = needed("name")?;
    let path = paths.lines().find(|path| path.rsplit('/').next() == Some(&name));
    Ok(VirtualMachine {
        path: path
            .with_context(|| format!("{name} has no place in the inventory"))?
            .to_owned(),
        reference: document["obj"]["value"].as_str().unwrap_or_default().to_owned(),
        bios_uuid: needed("config.uuid")?,
        instance_uuid: needed("config.instanceUuid")?,
        power: needed("runtime.powerState")?,
        guest: value("guest.hostName").zip(value("guest.ipAddress")),
        name,
    })
}
