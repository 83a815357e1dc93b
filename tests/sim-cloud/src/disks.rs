//! Disks and snapshots, and their rules. They know machines by what they are told of them.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::cloud::{Refusal, refuse};
use crate::disk_wire::*;

const GIB: u64 = 1 << 30;

/// Sizes are multiples of it, and none is smaller.
pub(crate) const DISK_STEP: u64 = GIB;
/// No disk is larger.
pub(crate) const DISK_LARGEST: u64 = 16 << 40;

/// How disks behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSettings {
    /// Time from the creation of a disk or snapshot until it can be used.
    pub build_time: Duration,
    /// Time to attach or detach a disk.
    pub attach_time: Duration,
    /// Disks that a machine can have.
    pub per_machine: u32,
    /// Bytes that all disks of a zone can have.
    pub zone_quota: u64,
}

impl Default for DiskSettings {
    fn default() -> Self {
        Self {
            build_time: Duration::ZERO,
            attach_time: Duration::ZERO,
            per_machine: 16,
            zone_quota: 64 << 40,
        }
    }
}

/// SHA-256 of a passphrase, which itself is not kept.
type PassphraseHash = [u8; 32];

fn hash(passphrase: &str) -> PassphraseHash {
    Sha256::digest(passphrase).into()
}

/// All of them. Keys count up.
#[derive(Default)]
pub(crate) struct Disks {
    disks: BTreeMap<u64, HeldDisk>,
    snapshots: BTreeMap<u64, HeldSnapshot>,
    disks_made: u64,
    snapshots_made: u64,
    pub(crate) settings: DiskSettings,
}

struct HeldDisk {
    id: String,
    spec: DiskSpec,
    /// Of its passphrase; none where it is not encrypted.
    lock: Option<PassphraseHash>,
    usable_at: Instant,
    attachments: Vec<HeldAttachment>,
}

struct HeldAttachment {
    machine: String,
    read_only: bool,
    /// When it is attached, or gone.
    settled_at: Instant,
    leaving: bool,
}

struct HeldSnapshot {
    id: String,
    spec: SnapshotSpec,
    size: u64,
    created: u64,
    usable_at: Instant,
}

impl Disks {
    /// Empty, with the same settings.
    pub(crate) fn emptied(&self) -> Self {
        Self {
            settings: self.settings.clone(),
            ..Self::default()
        }
    }

    /// Forgets attachments that ended.
    fn settle(&mut self) {
        let now = Instant::now();
        for disk in self.disks.values_mut() {
            disk.attachments.retain(|one| !one.leaving || one.settled_at > now);
        }
    }

    /// Ends all that takes its time: disks and snapshots can be used, what is attached or detached is.
    pub(crate) fn finish(&mut self) {
        let now = Instant::now();
        for disk in self.disks.values_mut() {
            disk.usable_at = disk.usable_at.min(now);
            for one in &mut disk.attachments {
                one.settled_at = one.settled_at.min(now);
            }
        }
        for snapshot in self.snapshots.values_mut() {
            snapshot.usable_at = snapshot.usable_at.min(now);
        }
        self.settle();
    }

    pub(crate) fn all(&mut self) -> Vec<Disk> {
        self.settle();
        self.disks.values().map(HeldDisk::show).collect()
    }

    fn disk_mut(&mut self, id: &str) -> Result<&mut HeldDisk, Refusal> {
        match self.disks.values_mut().find(|disk| disk.id == id) {
            Some(disk) => Ok(disk),
            None => refuse(404, format!("there is no disk {id}")),
        }
    }

    fn used(&self, zone: &str) -> u64 {
        let disks = self.disks.values().filter(|disk| disk.spec.zone == zone);
        disks.map(|disk| disk.spec.size).sum()
    }

    /// Bytes that disks of this zone can still have.
    pub(crate) fn room(&self, zone: &str) -> u64 {
        self.settings.zone_quota.saturating_sub(self.used(zone))
    }

    fn check_size(&self, zone: &str, size: u64, before: u64) -> Result<(), Refusal> {
        if !(DISK_STEP..=DISK_LARGEST).contains(&size) || !size.is_multiple_of(DISK_STEP) {
            return refuse(
                416,
                format!("a disk of {size} bytes; steps of {DISK_STEP} up to {DISK_LARGEST}"),
            );
        }
        if size.saturating_sub(before) > self.room(zone) {
            return refuse(
                507,
                format!("the quota of zone {zone} is used up: {} bytes left", self.room(zone)),
            );
        }
        Ok(())
    }

    /// Creates a disk. Names are unique in a cluster.
    pub(crate) fn create(&mut self, spec: DiskSpec, passphrase: Option<&str>) -> Result<Disk, Refusal> {
        let taken = |other: &&HeldDisk| other.spec.cluster == spec.cluster && other.spec.name == spec.name;
        if let Some(other) = self.disks.values().find(taken) {
            return refuse(409, format!("disk {} is named {} already", other.id, spec.name));
        }
        let least = match &spec.source {
            Some(DiskSource::Disk(id)) => self.disk_mut(id)?.spec.size,
            Some(DiskSource::Snapshot(id)) => self.snapshot(id)?.size,
            None => 0,
        };
        if spec.size < least {
            return refuse(
                416,
                format!("its source has {least} bytes, and the disk is to have {}", spec.size),
            );
        }
        self.check_size(&spec.zone, spec.size, 0)?;
        let lock = match (spec.encrypted, passphrase) {
            (true, None) => return refuse(422, "an encrypted disk needs a passphrase"),
            (true, Some(passphrase)) => Some(hash(passphrase)),
            (false, _) => None,
        };
        self.disks_made += 1;
        let disk = HeldDisk {
            id: format!("disk-{}", self.disks_made),
            spec,
            lock,
            usable_at: Instant::now() + self.settings.build_time,
            attachments: Vec::new(),
        };
        let shown = disk.show();
        self.disks.insert(self.disks_made, disk);
        Ok(shown)
    }

    /// How many there ever were.
    pub(crate) fn made(&self) -> u64 {
        self.disks_made
    }

    /// Grows a disk, or changes its speed.
    pub(crate) fn change(&mut self, id: &str, change: &DiskChange) -> Result<Disk, Refusal> {
        self.settle();
        let spec = self.disk_mut(id)?.spec.clone();
        if let Some(size) = change.size {
            if size < spec.size {
                return refuse(
                    416,
                    format!("disk {id} has {} bytes and cannot shrink to {size}", spec.size),
                );
            }
            self.check_size(&spec.zone, size, spec.size)?;
        }
        let disk = self.disk_mut(id)?;
        disk.spec.size = change.size.unwrap_or(spec.size);
        disk.spec.iops = change.iops.or(spec.iops);
        Ok(disk.show())
    }

    /// Deletes a disk that is not attached.
    pub(crate) fn delete(&mut self, id: &str, passphrase: Option<&str>) -> Result<(), Refusal> {
        self.settle();
        let disk = self.disk_mut(id)?;
        disk.unlock(passphrase)?;
        if let Some(attachment) = disk.attachments.first() {
            return refuse(412, format!("disk {id} is attached to machine {}", attachment.machine));
        }
        self.remove(id);
        Ok(())
    }

    /// Removes a disk, attached or not; whether there was one.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let before = self.disks.len();
        self.disks.retain(|_, disk| disk.id != id);
        self.disks.len() < before
    }

    /// Attaches a disk to a machine in this zone; none where there is no such machine. 202 while it is not done.
    pub(crate) fn attach(
        &mut self,
        wanted: &DiskMove,
        zone: Option<&str>,
        passphrase: Option<&str>,
    ) -> Result<u16, Refusal> {
        self.settle();
        let (now, settings) = (Instant::now(), self.settings.clone());
        let has = |disk: &&HeldDisk| disk.attachments.iter().any(|one| one.machine == wanted.machine);
        let on_machine = self.disks.values().filter(has).count();
        let disk = self.disk_mut(&wanted.disk)?;
        let Some(zone) = zone else {
            return refuse(404, format!("there is no machine {}", wanted.machine));
        };
        disk.unlock(passphrase)?;
        let id = &disk.id;
        if disk.usable_at > now {
            return refuse(412, format!("disk {id} is being created"));
        }
        if let Some(there) = disk.attachments.iter().find(|one| one.machine == wanted.machine) {
            return match there {
                HeldAttachment { leaving: true, .. } => refuse(412, format!("disk {id} is being detached")),
                _ if there.read_only != wanted.read_only => {
                    refuse(409, format!("disk {id} is attached in another way"))
                }
                _ => Ok(if there.settled_at > now { 202 } else { 200 }),
            };
        }
        if zone != disk.spec.zone {
            return refuse(
                422,
                format!("disk {id} is in zone {}, the machine in {zone}", disk.spec.zone),
            );
        }
        if let Some(other) = disk.attachments.first().filter(|_| !disk.spec.shared) {
            return refuse(412, format!("disk {id} is attached to machine {}", other.machine));
        }
        if on_machine >= usize::try_from(settings.per_machine).unwrap_or(usize::MAX) {
            return refuse(
                507,
                format!("machine {} has {on_machine} disks already", wanted.machine),
            );
        }
        disk.attachments.push(HeldAttachment {
            machine: wanted.machine.clone(),
            read_only: wanted.read_only,
            settled_at: now + settings.attach_time,
            leaving: false,
        });
        Ok(if settings.attach_time.is_zero() { 200 } else { 202 })
    }

    /// Detaches a disk from a machine. 202 while it is not done; success for what is not attached.
    pub(crate) fn detach(&mut self, unwanted: &DiskMove) -> u16 {
        self.settle();
        let (now, time) = (Instant::now(), self.settings.attach_time);
        let Ok(disk) = self.disk_mut(&unwanted.disk) else {
            return 200;
        };
        let Some(there) = disk.attachments.iter_mut().find(|one| one.machine == unwanted.machine) else {
            return 200;
        };
        if !there.leaving {
            (there.leaving, there.settled_at) = (true, now + time);
        }
        self.settle();
        if time.is_zero() { 200 } else { 202 }
    }

    /// A machine is gone, and with it its attachments.
    pub(crate) fn forget_machine(&mut self, id: &str) {
        for disk in self.disks.values_mut() {
            disk.attachments.retain(|one| one.machine != id);
        }
    }

    fn snapshot(&self, id: &str) -> Result<&HeldSnapshot, Refusal> {
        match self.snapshots.values().find(|snapshot| snapshot.id == id) {
            Some(snapshot) => Ok(snapshot),
            None => refuse(404, format!("there is no snapshot {id}")),
        }
    }

    pub(crate) fn snapshots(&self) -> Vec<DiskSnapshot> {
        self.snapshots.values().map(HeldSnapshot::show).collect()
    }

    /// Makes a snapshot. Names are unique in a cluster.
    pub(crate) fn create_snapshot(&mut self, spec: SnapshotSpec) -> Result<DiskSnapshot, Refusal> {
        let taken = |other: &&HeldSnapshot| other.spec.cluster == spec.cluster && other.spec.name == spec.name;
        if let Some(other) = self.snapshots.values().find(taken) {
            return refuse(409, format!("snapshot {} is named {} already", other.id, spec.name));
        }
        let size = self.disk_mut(&spec.disk)?.spec.size;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.snapshots_made += 1;
        let snapshot = HeldSnapshot {
            id: format!("snap-{}", self.snapshots_made),
            spec,
            size,
            created: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            usable_at: Instant::now() + self.settings.build_time,
        };
        let shown = snapshot.show();
        self.snapshots.insert(self.snapshots_made, snapshot);
        Ok(shown)
    }

    pub(crate) fn delete_snapshot(&mut self, id: &str) -> Result<(), Refusal> {
        self.snapshot(id)?;
        self.snapshots.retain(|_, snapshot| snapshot.id != id);
        Ok(())
    }
}

impl HeldDisk {
    /// Refuses another passphrase than that of the disk.
    fn unlock(&self, passphrase: Option<&str>) -> Result<(), Refusal> {
        let id = &self.id;
        match (self.lock, passphrase) {
            (None, _) => Ok(()),
            (Some(lock), Some(passphrase)) if hash(passphrase) == lock => Ok(()),
            (Some(_), Some(_)) => refuse(403, format!("disk {id} has another passphrase")),
            (Some(_), None) => refuse(403, format!("disk {id} is encrypted, and its passphrase is missing")),
        }
    }

    fn show(&self) -> Disk {
        let now = Instant::now();
        let attachment = |one: &HeldAttachment| DiskAttachment {
            machine: one.machine.clone(),
            read_only: one.read_only,
            state: match one {
                HeldAttachment { leaving: true, .. } => AttachmentState::Detaching,
                one if one.settled_at > now => AttachmentState::Attaching,
                _ => AttachmentState::Attached,
            },
        };
        Disk {
            id: self.id.clone(),
            ready: self.usable_at <= now,
            spec: self.spec.clone(),
            attachments: self.attachments.iter().map(attachment).collect(),
        }
    }
}

impl HeldSnapshot {
    fn show(&self) -> DiskSnapshot {
        DiskSnapshot {
            id: self.id.clone(),
            ready: self.usable_at <= Instant::now(),
            size: self.size,
            created: self.created,
            spec: self.spec.clone(),
        }
    }
}
