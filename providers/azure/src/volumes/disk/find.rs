//! How disks are looked up: a few one by one, many in lists of their resource groups.

use cloudwit_guest_sdk::prelude::*;

use super::Disk;
use super::ids::{self, DISK, is_id};
use crate::Azure;
use crate::arm::DISKS;

/// Up to so many disks of one resource group are requested one by one.
const FEW: usize = 3;

/// The failure for a disk that does not exist.
pub(crate) fn no_disk(id: &str) -> Failure {
    Failure::not_found(format!("there is no disk {id}"))
}

/// Disks by the requested ids.
#[derive(Debug, Default)]
pub(crate) struct Disks(Vec<(String, Result<Option<Disk>, Failure>)>);

impl Disks {
    /// The disk of an id; none where the cloud reports it as not found, and where it cannot have given the id out.
    ///
    /// # Errors
    /// The error of its look-up.
    pub(crate) fn get(&self, id: &str) -> Result<Option<&Disk>, Failure> {
        match self.0.iter().find(|(asked, _)| asked == id) {
            None => Ok(None),
            Some((_, Ok(found))) => Ok(found.as_ref()),
            Some((_, Err(failure))) => Err(failure.clone()),
        }
    }

    /// All that exist.
    pub(crate) fn found(&self) -> impl Iterator<Item = &Disk> {
        self.0.iter().filter_map(|(_, found)| found.as_ref().ok()?.as_ref())
    }
}

impl Azure {
    /// The disks of these ids. A failure of one, or of one resource group, is its own.
    ///
    /// # Errors
    /// What prevents every look-up.
    pub(crate) fn disks<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<Disks, Failure> {
        let mut collections: Vec<(String, Vec<&str>)> = Vec::new();
        for id in ids.filter(|id| is_id(id, DISK)) {
            let collection = ids::collection_of(id);
            match collections.iter_mut().find(|(known, _)| *known == collection) {
                Some((_, asked)) if asked.contains(&id) => {}
                Some((_, asked)) => asked.push(id),
                None => collections.push((collection, vec![id])),
            }
        }
        let mut disks = Disks::default();
        for (collection, asked) in collections {
            let mut listed: Vec<Disk> = Vec::new();
            if asked.len() > FEW {
                let read = self.arm.list(&collection, DISKS, &[], |value| {
                    let disk = Disk::read(&value);
                    if asked.iter().any(|id| id.eq_ignore_ascii_case(&disk.id)) {
                        listed.push(disk);
                    }
                    Ok(())
                });
                match read {
                    Err(failure) if failure.kind == FailureKind::Denied => {
                        let denied = |id: &str| (id.to_owned(), Err(failure.clone()));
                        disks.0.extend(asked.into_iter().map(denied));
                        continue;
                    }
                    Err(failure) if failure.is_shared() => return Err(failure),
                    // What the list does not have is requested by its id, since only that is a denial.
                    _ => {}
                }
            }
            for id in asked {
                let found = match listed.iter().find(|disk| disk.id.eq_ignore_ascii_case(id)) {
                    Some(disk) => Ok(Some(disk.clone())),
                    None => self.disk(id),
                };
                disks.0.push((id.to_owned(), found));
            }
        }
        Ok(disks)
    }

    /// The disk of this id; none where the cloud reports it as not found, and where it cannot have given the id out.
    ///
    /// # Errors
    /// Its error.
    pub(crate) fn disk(&self, id: &str) -> Result<Option<Disk>, Failure> {
        if !is_id(id, DISK) {
            return Ok(None);
        }
        Ok(self.arm.find(id, DISKS, &[])?.as_ref().map(Disk::read))
    }

    /// Path of a disk or snapshot of this name, in a resource group of the machines' subscription.
    pub(crate) fn disk_path(&self, group: Option<&str>, kind: &str, name: &str) -> String {
        let group = self.config.group(group.unwrap_or(&self.config.resource_group));
        format!("{}/{name}", ids::collection(&group, kind))
    }
}
