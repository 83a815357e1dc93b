//! Disks come into being and go: found by their name, else created once.
//!
//! ```text
//!   name -> disks of this name with the volume's tag -> one: is it as desired? is it ready?
//!                                                    -> none: POST with the tag    -> a task: pending until it is over
//! ```
//!
//! The cloud has the disk from the request on, in the state `CREATING`, so a lost answer makes no second one. It has the disk still, in the state `ERROR`, when it
//! gave the creation up. That there is no room is answered once that disk is deleted.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::volumes::*;
use serde_json::json;

use crate::Photon;
use crate::api::BUSY;
use crate::task::{BEGUN, POLL, Task};
use crate::volumes::GIB;
use crate::volumes::disk::{CLUSTER_TAG, Disk, DiskState, KIND, NAME_TAG, NO_DISK};

/// Parameter of a StorageClass: name of the flavor. The in-tree plugin had it, in whatever case.
const FLAVOR: &str = "flavor";

/// The in-tree plugin's for the file system, which the sidecar reads.
const FS_TYPE: &str = "fstype";

/// Longest name of a disk (Photon Controller's `DiskCreateSpec`: 1 to 63 letters, digits and `-`, the first a letter).
const LONGEST_NAME: usize = 63;

/// How the token begins while what is left of a creation is deleted that found no room; the cloud's words follow. No task has such an id.
const FULL: &str = "full: ";

/// More of the cloud's words is not in the token.
const LONGEST_REASON: usize = 1_000;

/// A desired volume, by the cloud's rules. Pure.
#[derive(Debug)]
pub(crate) struct Wanted<'n> {
    /// The volume's name.
    name: &'n str,
    size: SizeRange,
    /// None where the class names none.
    flavor: Option<String>,
}

impl<'n> Wanted<'n> {
    /// Reads it.
    ///
    /// # Errors
    /// `invalid` with what the cloud does not have.
    pub(crate) fn read(new: &'n NewVolume) -> Result<Self, Failure> {
        let parameters = known(&new.parameters)?;
        known_parameters(&new.mutable_parameters, &[])?;
        if new.source.is_some() {
            let text = "Photon Controller makes no disk of a snapshot or of another disk";
            return Err(Failure::invalid(text));
        }
        let flavor = parameter(&parameters, FLAVOR).filter(|flavor| !flavor.is_empty());
        Ok(Self {
            name: &new.name,
            size: new.size,
            flavor: flavor.map(str::to_owned),
        })
    }

    /// How a disk that has the name differs from this; empty where it does not.
    pub(crate) fn differences(&self, disk: &Disk) -> Vec<String> {
        let mut differences = Vec::new();
        if !self.size.contains(disk.bytes()) {
            let most = self.size.at_most.map(|most| format!(" and at most {most}"));
            let (least, most) = (self.size.at_least, most.unwrap_or_default());
            differences.push(format!(
                "it has {} bytes, wanted are at least {least}{most}",
                disk.bytes()
            ));
        }
        if let Some(flavor) = self.flavor.as_ref().filter(|flavor| **flavor != disk.flavor) {
            differences.push(format!("its flavor is {}, wanted is {flavor}", disk.flavor));
        }
        differences
    }
}

/// Parameters of a class under their names in small letters.
///
/// # Errors
/// `invalid` with those that there are not.
pub(super) fn known(parameters: &[Pair]) -> Result<Vec<Pair>, Failure> {
    let lower = |pair: &Pair| Pair::new(pair.key.to_ascii_lowercase(), &pair.value);
    let parameters: Vec<Pair> = parameters.iter().map(lower).collect();
    known_parameters(&parameters, &[FLAVOR, FS_TYPE])?;
    Ok(parameters)
}

/// Whether the cloud takes this name of a disk.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    name.len() <= LONGEST_NAME && name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(plain)
}

impl Photon {
    /// Creates a disk, or finds the one of this name.
    ///
    /// # Errors
    /// As the contract's `volumes.create`.
    pub(super) fn create_disk(&self, new: &NewVolume, token: Option<&str>) -> Result<Volume, Failure> {
        let wanted = Wanted::read(new)?;
        let disk_name = name_or_digest(self.context.keys(), "vol-", wanted.name, is_name);
        let doing = format!("creating the disk {disk_name}");
        if let Some(why) = token.and_then(|token| token.strip_prefix(FULL)) {
            return Err(self.given_up(&disk_name, wanted.name, Failure::exhausted(why)));
        }
        if let Err(failure) = self.api.passed(token, &doing) {
            return Err(self.given_up(&disk_name, wanted.name, failure));
        }
        let disk = match self.disk_of_name(&wanted, &disk_name)? {
            Some(disk) => disk,
            None => {
                let task = self.begin(&wanted, &disk_name, &new.tags)?;
                if let Err(failure) = task.passed(&doing) {
                    return Err(self.given_up(&disk_name, wanted.name, failure));
                }
                let made = task.entity().map(|id| self.disk(id)).transpose()?.flatten();
                made.ok_or_else(|| Failure::pending(POLL, BEGUN, &doing))?
            }
        };
        match disk.state {
            DiskState::Creating => Err(Failure::pending(POLL, BEGUN, doing)),
            _ => Ok(disk.volume()),
        }
    }

    /// The disk that has the name.
    fn disk_of_name(&self, wanted: &Wanted<'_>, disk_name: &str) -> Result<Option<Disk>, Failure> {
        let mut disks = self.disks_named(disk_name, wanted.name)?;
        if disks.iter().any(|disk| disk.state == DiskState::Error) {
            let text = format!("creating the disk {disk_name}: the cloud gave it up; it is deleted and made anew");
            return Err(self.given_up(disk_name, wanted.name, Failure::other(text)));
        }
        if let [one, other, ..] = disks.as_slice() {
            return Err(Failure::conflict(format!(
                "the persistent disks {} and {} both have the name {disk_name}; delete the one that no PersistentVolume has",
                one.id, other.id
            )));
        }
        let Some(disk) = disks.pop() else { return Ok(None) };
        let differences = wanted.differences(&disk);
        if differences.is_empty() {
            return Ok(Some(disk));
        }
        Err(Failure::already_exists(format!(
            "the persistent disk {} has the name {disk_name} already: {}",
            disk.id,
            differences.join("; ")
        )))
    }

    fn begin(&self, wanted: &Wanted<'_>, disk_name: &str, about: &[Pair]) -> Result<Task, Failure> {
        let flavor = match &wanted.flavor {
            Some(flavor) => flavor.clone(),
            None => self.only_flavor()?,
        };
        let about = about.iter().map(|tag| format!("{}={}", tag.key, tag.value));
        let own = [
            format!("{NAME_TAG}{}", wanted.name),
            format!("{CLUSTER_TAG}{}", self.cluster),
        ];
        let tags: Vec<String> = own.into_iter().chain(about).collect();
        let spec = json!({
            "name": disk_name,
            "kind": KIND,
            "flavor": flavor,
            "capacityGb": wanted.size.at_least.div_ceil(GIB),
            "tags": tags,
        });
        let path = format!("/projects/{}/disks", self.api.project()?);
        let task = self.api.request("POST", &path, Some(&spec), &[])?;
        task.ok_or_else(|| Failure::other("the cloud did not answer with a task"))
    }

    /// The flavor of disks where there is but one, for classes that name none.
    fn only_flavor(&self) -> Result<String, Failure> {
        let flavors = self.api.listed(&format!("/flavors?kind={KIND}"))?;
        let of_disks = |flavor: &&serde_json::Value| flavor["kind"] == KIND;
        let names = flavors
            .iter()
            .filter(of_disks)
            .filter_map(|flavor| flavor["name"].as_str());
        match names.collect::<Vec<_>>().as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(Failure::invalid(format!("the cloud has no flavor of the kind {KIND}"))),
            several => Err(Failure::invalid(format!(
                "the StorageClass needs the parameter {FLAVOR}; there are {}",
                several.join(", ")
            ))),
        }
    }

    /// Deletes what is left of a creation that ended in this failure, so that its name is free, and gives the failure back. While the cloud works on it, nothing is
    /// left yet. `exhausted` is final, so it is `pending` until nothing is left.
    fn given_up(&self, disk_name: &str, volume: &str, failure: Failure) -> Failure {
        if matches!(
            failure.kind,
            FailureKind::Pending(_) | FailureKind::RateLimited | FailureKind::Unavailable
        ) {
            return failure;
        }
        let mut left = match self.disks_named(disk_name, volume) {
            Ok(disks) => disks,
            Err(unknown) if failure.kind == FailureKind::Exhausted => return unknown,
            Err(_) => return failure,
        };
        left.retain(|disk| match disk.state {
            DiskState::Error => self.delete_disk(&disk.id, None).is_err_and(|failure| {
                info!(
                    disk = disk.id,
                    reason = failure.message,
                    "what is left of a disk is not deleted yet"
                );
                true
            }),
            _ => true,
        });
        if failure.kind != FailureKind::Exhausted || left.is_empty() {
            return failure;
        }
        let why = &failure.message;
        let why = &why[..why.floor_char_boundary(LONGEST_REASON)];
        Failure::pending(
            POLL,
            format!("{FULL}{why}"),
            format!("what is left of {disk_name} is deleted; {why}"),
        )
    }

    /// Deletes a disk. That it was deleted already is success.
    ///
    /// # Errors
    /// As the contract's `volumes.delete`.
    pub(super) fn delete_disk(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let doing = format!("deleting the disk {id}");
        self.api.passed(token, &doing)?;
        let Some(disk) = self.disk(id)? else { return Ok(()) };
        if let Some(machine) = disk.machines().first() {
            return Err(Failure::failed_precondition(format!(
                "the persistent disk {id} is attached to the virtual machine {machine}"
            )));
        }
        if disk.state == DiskState::Creating {
            return Err(Failure::pending(POLL, BEGUN, format!("{doing}: it is being created")));
        }
        let task = self
            .api
            .request::<Task>("DELETE", &format!("/disks/{id}"), None, &[NO_DISK]);
        let task = task.map_err(|failure| when_free(failure, &doing))?;
        task.map_or(Ok(()), |task| task.passed(&doing))
    }
}

/// Something else is done with the disk or its machine: requested again a little later.
pub(super) fn when_free(failure: Failure, doing: &str) -> Failure {
    match failure.code.as_deref() {
        Some(BUSY) => Failure::pending(POLL, BEGUN, format!("{doing}: {}", failure.message)),
        _ => failure,
    }
}

#[cfg(test)]
mod tests;
