//! Machines with their disks: by the BIOS UUID, which is what upstream's plugin calls a machine.

use std::collections::{BTreeMap, BTreeSet};

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::xml::Element;

use crate::Vsphere;
use crate::instances::inventory::Want;
use crate::instances::machine::KIND;
use crate::instances::named;
use crate::instances::uuid::Uuid;
use crate::vcenter::properties::{Along, Object, Query, retrieve};
use crate::vcenter::soap::{Reference, type_of};
use crate::volumes::cns::Cns;

/// Machines with all of their devices, in one page: ten to thirty kilobytes each.
const WITH_DEVICES: u32 = 20;

/// Machines of which only ids are read, in one page.
const IDS: u32 = 500;

/// A machine, and the volumes that are among its disks.
#[derive(Debug, Clone)]
pub(super) struct WithDisks {
    /// The place of its vCenter in the configuration.
    pub vcenter: usize,
    /// Its managed object.
    pub reference: Reference,
    /// UUIDs of the disks of volumes, by the ids of the volumes.
    pub disks: BTreeMap<String, String>,
}

/// Machines by their ids in CSINodes; none where every vCenter reports it as not found.
pub(super) type Machines = BTreeMap<String, Result<Option<WithDisks>, Failure>>;

/// The UUID of a disk as devices report it: `6000C298-595b-...` is `6000c298595b...` (upstream's `FormatDiskUUID`).
pub(super) fn disk_uuid(written: &str) -> String {
    let digits = written.chars().filter(|c| !matches!(c, '-' | ' '));
    digits.collect::<String>().to_ascii_lowercase()
}

/// The volumes among the devices of a machine.
fn disks(devices: &Element) -> BTreeMap<String, String> {
    let disk = |device: &Element| {
        let id = device.at(&["vDiskId", "id"])?.own_text();
        let uuid = device.at(&["backing", "uuid"]).map(|uuid| disk_uuid(uuid.own_text()));
        Some((id.to_owned(), uuid.unwrap_or_default()))
    };
    let all = devices.children("VirtualDevice");
    all.filter(|device| type_of(device) == Some("VirtualDisk"))
        .filter_map(disk)
        .collect()
}

impl Vsphere {
    /// The machines with these ids, each once.
    pub(super) fn machines<'m>(&self, ids: impl Iterator<Item = &'m str>) -> Machines {
        let mut machines = Machines::new();
        let mut wanted: Vec<(&str, Want)> = Vec::new();
        for id in ids {
            match Uuid::parse(id) {
                Some(uuid) if !wanted.iter().any(|(known, _)| *known == id) => wanted.push((id, Want::Id(uuid))),
                Some(_) => {}
                None => drop(machines.insert(id.into(), Ok(None))),
            }
        }
        let mut silent: Option<Failure> = None;
        for (place, vcenter) in self.settings.vcenters.iter().enumerate() {
            let open: Vec<&(&str, Want)> = wanted.iter().filter(|(id, _)| !machines.contains_key(*id)).collect();
            if open.is_empty() {
                break;
            }
            let wants: Vec<&Want> = open.iter().map(|(_, want)| want).collect();
            match self.unless_silent(vcenter, || self.inventory(vcenter).find(&wants)) {
                Err(failure) => silent = silent.or(Some(named(vcenter, failure))),
                Ok(found) => {
                    let mut here: Vec<(&str, Reference)> = Vec::new();
                    for ((id, _), found) in open.into_iter().zip(found) {
                        match found.as_deref() {
                            Ok([]) => {}
                            Ok([machine]) => here.push((id, machine.reference.clone())),
                            Ok(_) => {
                                let text = format!("several machines have the BIOS UUID {id}; give each its own");
                                machines.insert((*id).into(), Err(Failure::conflict(text)));
                            }
                            Err(failure) => drop(machines.insert((*id).into(), Err(failure.clone()))),
                        }
                    }
                    self.read_disks(place, &here, &mut machines);
                }
            }
        }
        for (id, _) in wanted {
            let missing = || silent.clone().map_or(Ok(None), Err);
            machines.entry(id.into()).or_insert_with(missing);
        }
        machines
    }

    fn read_disks(&self, place: usize, here: &[(&str, Reference)], machines: &mut Machines) {
        let references: Vec<Reference> = here.iter().map(|(_, reference)| reference.clone()).collect();
        let read = self.cns_at(place).and_then(|cns| cns.disks_of(&references));
        for (id, reference) in here {
            let one = match &read {
                Err(failure) => Err(failure.clone()),
                Ok(disks) => match disks.get(&reference.value) {
                    Some(disks) => Ok(Some(WithDisks {
                        vcenter: place,
                        reference: reference.clone(),
                        disks: disks.clone(),
                    })),
                    None => Err(Failure::conflict(format!("machine {id} vanished while it was read"))),
                },
            };
            machines.insert((*id).into(), one);
        }
    }
}

impl Cns<'_> {
    /// The volumes of these machines, by the ids of their managed objects.
    fn disks_of(&self, machines: &[Reference]) -> Result<BTreeMap<String, BTreeMap<String, String>>, Failure> {
        let mut all = BTreeMap::new();
        self.read_machines(
            machines,
            "config.hardware.device",
            WITH_DEVICES,
            &mut |machine, object| {
                if let Some(devices) = object.value("config.hardware.device") {
                    all.insert(machine, disks(devices));
                }
            },
        )?;
        Ok(all)
    }

    /// Ids in CSINodes of machines, by the ids of their managed objects.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn machine_ids(&self, machines: &BTreeSet<&str>) -> Result<BTreeMap<String, String>, Failure> {
        let machines: Vec<Reference> = machines.iter().map(|machine| Reference::new(KIND, machine)).collect();
        let mut ids = BTreeMap::new();
        self.read_machines(&machines, "summary.config.uuid", IDS, &mut |machine, object| {
            let uuid = object.text("summary.config.uuid").and_then(Uuid::parse);
            ids.extend(uuid.map(|uuid| (machine, uuid.to_string())));
        })?;
        Ok(ids)
    }

    fn read_machines(
        &self,
        machines: &[Reference],
        path: &str,
        page: u32,
        each: &mut dyn FnMut(String, Object<'_>),
    ) -> Result<(), Failure> {
        self.sessions.with(|session| {
            let query = Query {
                properties: &[(KIND, &[path])],
                from: machines,
                along: Along::These,
                page,
            };
            retrieve(&self.sessions, session, &query, &mut |object| {
                if let Some(machine) = object.reference() {
                    each(machine.value, object);
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_disks_with_an_id() {
        let devices = Element::parse(concat!(
            "<val xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">",
            "<VirtualDevice xsi:type=\"VirtualDisk\"><key>2000</key><backing><uuid>6000C29a-0000-1111-2222-333344445555</uuid></backing></VirtualDevice>",
            "<VirtualDevice xsi:type=\"VirtualDisk\"><key>2001</key><backing><uuid>6000C298-595b-f457-5739-e9105b2c0c2d</uuid></backing>",
            "<vDiskId><id>fcd-1</id></vDiskId></VirtualDevice>",
            "<VirtualDevice xsi:type=\"VirtualCdrom\"><key>3000</key></VirtualDevice></val>"
        ))
        .unwrap();
        let found = disks(&devices);
        assert_eq!(
            found,
            BTreeMap::from([("fcd-1".into(), "6000c298595bf4575739e9105b2c0c2d".into())])
        );
    }
}
