//! Snapshots of disks.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::volumes::*;
use serde_json::{Value, json};

use crate::Azure;
use crate::arm::DISKS;
use crate::arm::ids::name;
use crate::volumes::GIB;
use crate::volumes::class::{Parameters, tags as class_tags};
use crate::volumes::disk::find::no_disk;
use crate::volumes::disk::ids::{DISK, SNAPSHOT, collection, group_of, is_group, is_id, is_name};
use crate::volumes::disk::{is_of_kubernetes, region, tags, text};
use crate::volumes::progress::Progress;

/// Parameters of a VolumeSnapshotClass.
const PARAMETERS: [&str; 9] = [
    "resourcegroup",
    "incremental",
    "tags",
    "tagvaluedelimiter",
    "networkaccesspolicy",
    "publicnetworkaccess",
    "dataaccessauthmode",
    "location",
    "useragent",
];

/// The tag with the disk's id, as upstream writes it.
const SOURCE: &str = "source_volume_id";

/// A snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DiskSnapshot {
    id: String,
    source: String,
    /// Size of the disk, in GiB.
    pub gib: u64,
    /// In milliseconds since 1970.
    created: u64,
    /// State of its last change, in small letters.
    state: String,
    /// Whether disks can be made of it.
    pub ready: bool,
    tags: BTreeMap<String, String>,
}

impl DiskSnapshot {
    fn read(value: &Value) -> Self {
        let state = text(value, "/properties/provisioningState").to_ascii_lowercase();
        // Those of types with a speed of their own are copied afterwards.
        let percent = value.pointer("/properties/completionPercent").and_then(Value::as_f64);
        Self {
            id: text(value, "/id").to_owned(),
            source: text(value, "/properties/creationData/sourceResourceId").to_owned(),
            gib: value
                .pointer("/properties/diskSizeGB")
                .and_then(Value::as_u64)
                .unwrap_or_default(),
            created: parse_rfc3339(text(value, "/properties/timeCreated"))
                .unwrap_or_default()
                .saturating_mul(1_000),
            ready: state == "succeeded" && percent.is_none_or(|percent| percent >= 100.0),
            state,
            tags: tags(value),
        }
    }

    /// In the contract's words, under this id.
    fn snapshot(&self, id: &str) -> Snapshot {
        Snapshot {
            id: id.into(),
            volume: self.source.clone(),
            size: self.gib.saturating_mul(GIB),
            created: self.created,
            ready: self.ready,
            extra: Vec::new(),
        }
    }
}

/// A desired snapshot. Pure.
struct Wanted {
    group: Option<String>,
    body: Value,
}

impl Wanted {
    /// Reads it; `disk` is of what.
    ///
    /// # Errors
    /// `invalid` with the parameter.
    fn read(new: &NewSnapshot, location: &str, is_stack: bool) -> Result<Self, Failure> {
        let given = Parameters::read(&new.parameters);
        given.known(&PARAMETERS)?;
        let group = given.get("resourcegroup");
        if let Some(group) = group.filter(|group| !is_group(group)) {
            return Err(Failure::invalid(format!(
                "parameter resourceGroup is \"{group}\", which is no name of a resource group"
            )));
        }
        if let Some(other) = given.get("location").filter(|other| region(other) != location) {
            return Err(Failure::invalid(format!(
                "parameter location is \"{other}\"; snapshots are in the region of their disks, {location}"
            )));
        }
        // Azure Stack has whole ones only.
        let incremental = given.word("incremental", &["true", "false"])? != Some("false") && !is_stack;
        let mut tags = class_tags::with_class(&new.tags, given.get("tags"), given.get("tagvaluedelimiter"))?;
        tags.insert(SOURCE.to_owned(), new.volume.clone());
        let mut body = json!({
            "location": location, "tags": tags,
            "properties": { "creationData": { "createOption": "Copy", "sourceResourceId": new.volume }, "incremental": incremental },
        });
        for (name, field, words) in [
            (
                "networkaccesspolicy",
                "networkAccessPolicy",
                &["AllowAll", "DenyAll"][..],
            ),
            ("publicnetworkaccess", "publicNetworkAccess", &["Enabled", "Disabled"]),
            (
                "dataaccessauthmode",
                "dataAccessAuthMode",
                &["None", "AzureActiveDirectory"],
            ),
        ] {
            if let Some(word) = given.word(name, words)? {
                body["properties"][field] = json!(word);
            }
        }
        Ok(Self {
            group: group.map(str::to_owned),
            body,
        })
    }
}

impl Azure {
    /// The snapshot of this id; none where the cloud reports it as not found, and where it cannot have given the id out.
    ///
    /// # Errors
    /// The cloud's error.
    pub(super) fn snapshot(&self, id: &str) -> Result<Option<DiskSnapshot>, Failure> {
        if !is_id(id, SNAPSHOT) {
            return Ok(None);
        }
        let found = self.arm.find(id, DISKS, &[])?;
        let there = |snapshot: &DiskSnapshot| snapshot.state != "deleting";
        Ok(found.as_ref().map(DiskSnapshot::read).filter(there))
    }
}

impl VolumeSnapshots for Azure {
    fn create_snapshot(&self, new: &NewSnapshot, token: Option<&str>) -> Result<Snapshot, Failure> {
        let own = region(&self.config.location);
        if !is_id(&new.volume, DISK) {
            return Err(no_disk(&new.volume));
        }
        let disk = self.disk(&new.volume)?;
        let location = disk.as_ref().map_or(own.as_str(), |disk| disk.location.as_str());
        let wanted = Wanted::read(new, location, self.config.is_stack())?;
        let name = name_or_digest(self.context.keys(), "snapshot-", &new.name, is_name);
        // Beside its disk, as upstream's.
        let group = match wanted.group {
            Some(group) => self.config.group(&group),
            None => group_of(&new.volume).ok_or_else(|| no_disk(&new.volume))?,
        };
        let path = format!("{}/{name}", collection(&group, SNAPSHOT));
        let doing = format!("making the snapshot {name}");
        let progress = Progress::read(token);
        let passed = self.passed(&progress, &doing);
        let snapshot = match self.snapshot(&path)? {
            Some(snapshot) => snapshot,
            None => {
                // Nothing to see yet: the operation shows whether there will be.
                passed.clone()?;
                disk.ok_or_else(|| no_disk(&new.volume))?;
                self.change_disk("PUT", &path, Some(&wanted.body), (&Progress::default(), &doing))?;
                self.snapshot(&path)?
                    .ok_or_else(|| Progress::default().pending(None, &doing))?
            }
        };
        if !snapshot.source.eq_ignore_ascii_case(&new.volume) {
            return Err(Failure::already_exists(format!(
                "the snapshot {path} is there already, of {}",
                snapshot.source
            )));
        }
        match snapshot.state.as_str() {
            "succeeded" => Ok(Snapshot {
                volume: new.volume.clone(),
                ..snapshot.snapshot(&path)
            }),
            "failed" | "canceled" if is_of_kubernetes(&snapshot.tags) => {
                // Its name is in the way of another one.
                match self.delete_snapshot(&path, None) {
                    Err(failure) if !matches!(failure.kind, FailureKind::Pending(_)) => Err(failure),
                    _ => Err(passed
                        .err()
                        .unwrap_or_else(|| Failure::other(format!("{doing}: it failed, and is made anew")))),
                }
            }
            _ => Err(passed.err().unwrap_or_else(|| progress.pending(None, &doing))),
        }
    }

    fn delete_snapshot(&self, id: &str, token: Option<&str>) -> Result<(), Failure> {
        let (progress, doing) = (Progress::read(token), format!("deleting {id}"));
        self.passed(&progress, &doing)?;
        if self.snapshot(id)?.is_none() {
            return Ok(());
        }
        match self.change_disk("DELETE", id, None, (&progress, &doing)) {
            Err(failure) if failure.is_not_found() => Ok(()),
            result => result,
        }
    }

    fn get_snapshots(&self, ids: &[String]) -> Result<Each<Option<Snapshot>>, Failure> {
        let one = |id: &String| Ok(self.snapshot(id)?.map(|snapshot| snapshot.snapshot(id)));
        Ok(ids.iter().map(one).collect())
    }

    fn list_snapshots(&self, volume: Option<&str>, after: Option<&str>, limit: u32) -> Result<SnapshotPage, Failure> {
        let keep = |value: &Value| {
            let found = DiskSnapshot::read(value);
            let is_of = volume.is_none_or(|volume| found.source.eq_ignore_ascii_case(volume));
            let shown = found.state == "succeeded" && is_of_kubernetes(&found.tags) && is_of;
            shown.then(|| found.snapshot(&self.disk_path(None, SNAPSHOT, name(&found.id))))
        };
        let (snapshots, next) = self.page_of(SNAPSHOT, (after, limit), keep)?;
        Ok(SnapshotPage { snapshots, next })
    }
}

#[cfg(test)]
mod tests;
