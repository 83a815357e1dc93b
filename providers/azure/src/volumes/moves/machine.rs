//! A machine with its data disks, as it is read and written back. Pure.

use serde_json::{Value, json};

use crate::arm::ids::{folded, name};
use crate::volumes::disk::{Disk, region, text};

/// Logical unit numbers of data disks (Microsoft's API: 0 to 63).
const LUNS: u64 = 64;

/// A machine. Machines of both kinds of scale sets and others have the same data disks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DiskMachine {
    /// Its resource id.
    pub id: String,
    /// Version of what was read.
    pub etag: String,
    /// Name of its size.
    pub size: String,
    /// Its zone as topologies name it; empty for none.
    pub zone: String,
    location: String,
    state: String,
    /// Its data disks as the cloud describes them: they are written back as wholes.
    disks: Vec<Value>,
}

/// A data disk of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OnMachine {
    /// Logical unit number.
    pub lun: u64,
    /// Whether it is being detached.
    pub is_leaving: bool,
}

fn lun(disk: &Value) -> Option<u64> {
    disk.get("lun").and_then(Value::as_u64)
}

fn is_leaving(disk: &Value) -> bool {
    disk.get("toBeDetached").and_then(Value::as_bool) == Some(true)
}

fn is_disk(value: &Value, id: &str) -> bool {
    text(value, "/managedDisk/id").eq_ignore_ascii_case(id)
}

impl DiskMachine {
    /// Of the description of a machine.
    pub(crate) fn read(value: &Value) -> Self {
        let location = region(text(value, "/location"));
        let zone = match text(value, "/zones/0") {
            "" => String::new(),
            zone => format!("{location}-{zone}"),
        };
        let size = match text(value, "/properties/hardwareProfile/vmSize") {
            "" => text(value, "/sku/name"),
            size => size,
        };
        let disks = value
            .pointer("/properties/storageProfile/dataDisks")
            .and_then(Value::as_array);
        Self {
            id: text(value, "/id").to_owned(),
            etag: text(value, "/etag").to_owned(),
            size: size.to_owned(),
            zone,
            location,
            state: text(value, "/properties/provisioningState").to_ascii_lowercase(),
            disks: disks.cloned().unwrap_or_default(),
        }
    }

    /// Whether the cloud is changing it: it takes no other change meanwhile.
    pub(crate) fn is_changing(&self) -> bool {
        !matches!(self.state.as_str(), "succeeded" | "failed" | "canceled" | "")
    }

    /// Its data disk of this id.
    pub(crate) fn disk(&self, id: &str) -> Option<OnMachine> {
        let found = self.disks.iter().find(|disk| is_disk(disk, id))?;
        Some(OnMachine {
            lun: lun(found)?,
            is_leaving: is_leaving(found),
        })
    }

    /// How many data disks it has.
    pub(crate) fn count(&self) -> usize {
        self.disks.len()
    }

    /// Adds a disk, under the lowest number that is free; its number. None where none is.
    pub(crate) fn add(&mut self, disk: &Disk) -> Option<u64> {
        let number = (0..LUNS).find(|number| !self.disks.iter().any(|disk| lun(disk) == Some(*number)))?;
        let mut managed = json!({ "id": disk.id });
        if !disk.encryption_set.is_empty() {
            managed["diskEncryptionSet"] = json!({ "id": disk.encryption_set });
        }
        self.disks.push(json!({
            "lun": number, "name": name(&disk.id), "createOption": "Attach", "caching": disk.caching(),
            "writeAcceleratorEnabled": disk.is_accelerated(), "managedDisk": managed,
        }));
        Some(number)
    }

    /// Takes disks out. Azure Stack has no mark for those that leave: there they are left out.
    pub(crate) fn remove(&mut self, ids: &[&str], is_stack: bool) {
        let ids: Vec<String> = ids.iter().map(|id| folded(id)).collect();
        let leaves = |disk: &Value| ids.contains(&folded(text(disk, "/managedDisk/id")));
        if is_stack {
            self.disks.retain(|disk| !leaves(disk));
            return;
        }
        for disk in self.disks.iter_mut().filter(|disk| leaves(disk)) {
            disk["toBeDetached"] = json!(true);
        }
    }

    /// What is written: Azure keeps fields that are left out.
    pub(crate) fn body(&self) -> Value {
        json!({ "location": self.location, "properties": { "storageProfile": { "dataDisks": self.disks } } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> DiskMachine {
        DiskMachine::read(&json!({
            "id": "/vm", "location": "WestEurope", "zones": ["2"], "etag": "\"7\"", "sku": { "name": "Standard_D4s_v3" },
            "properties": { "provisioningState": "Updating", "storageProfile": { "dataDisks": [
                { "lun": 0, "managedDisk": { "id": "/disks/A" }, "diskSizeGB": 4 }, { "lun": 2, "managedDisk": { "id": "/disks/b" }, "toBeDetached": true },
            ] } },
        }))
    }

    fn disk(id: &str) -> Disk {
        Disk::read(&json!({ "id": id, "properties": { "encryption": { "diskEncryptionSetId": "/set" } } }))
    }

    #[test]
    fn lowest_free_number_is_taken_and_others_stay() {
        let mut machine = machine();
        assert_eq!(
            (machine.zone.as_str(), machine.size.as_str(), machine.is_changing()),
            ("westeurope-2", "Standard_D4s_v3", true)
        );
        assert_eq!(machine.disk("/disks/a").map(|disk| disk.lun), Some(0));
        assert!(machine.disk("/disks/B").is_some_and(|disk| disk.is_leaving));
        assert_eq!(
            (machine.add(&disk("/disks/c")), machine.add(&disk("/disks/d"))),
            (Some(1), Some(3))
        );
        let disks = machine.body()["properties"]["storageProfile"]["dataDisks"].clone();
        assert_eq!(disks[0]["diskSizeGB"], 4);
        assert_eq!(
            disks[2],
            json!({
                "lun": 1, "name": "c", "createOption": "Attach", "caching": "ReadOnly", "writeAcceleratorEnabled": false,
                "managedDisk": { "id": "/disks/c", "diskEncryptionSet": { "id": "/set" } },
            })
        );
        for number in 4..LUNS {
            assert_eq!(machine.add(&disk(&format!("/disks/{number}"))), Some(number));
        }
        assert_eq!(machine.add(&disk("/disks/more")), None);
    }

    #[test]
    fn disks_that_leave_are_marked_and_left_out_in_azure_stack() {
        let mut azure = machine();
        azure.remove(&["/DISKS/a"], false);
        assert!(azure.disk("/disks/a").is_some_and(|disk| disk.is_leaving));
        let mut stack = machine();
        stack.remove(&["/DISKS/a"], true);
        assert_eq!((stack.disk("/disks/a"), stack.count()), (None, 1));
    }
}
