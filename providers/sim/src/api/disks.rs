//! Disks and snapshots of the simulated cloud: wire types, and one function for each call.
//!
//! The status is specific about what is wrong with a disk; the SDK's own table of statuses is coarser.

use cloudwit_guest_sdk::http::Request;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde::{Deserialize, Serialize};

use super::{Api, Page, PartResult, joined};

/// A disk.
#[derive(Debug, Clone, Deserialize)]
pub struct Disk {
    /// Never reused.
    pub id: String,
    /// Whether it can be attached already.
    pub ready: bool,
    /// Its requested state.
    pub spec: DiskSpec,
    /// Machines it is attached to.
    pub attachments: Vec<DiskAttachment>,
}

/// What a disk shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// In bytes.
    pub size: u64,
    /// Zone.
    pub zone: String,
    /// `standard` or `fast`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Operations a second.
    pub iops: Option<u32>,
    /// Whether it can be attached to several machines.
    pub shared: bool,
    /// What it begins with.
    pub source: Option<DiskSource>,
    /// Whether it is encrypted, with the passphrase that comes in a header.
    #[serde(default)]
    pub encrypted: bool,
}

/// What a disk begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskSource {
    /// Another disk.
    Disk(String),
    /// A snapshot.
    Snapshot(String),
}

/// A machine that a disk is attached to.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskAttachment {
    /// Id of the machine.
    pub machine: String,
    /// Whether the machine can only read.
    pub read_only: bool,
}

/// What changes of a disk.
#[derive(Debug, Default, Serialize)]
pub struct DiskChange {
    /// New size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// New speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iops: Option<u32>,
}

/// A disk that goes to a machine, or comes from it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskMove<'a> {
    /// Id of the disk.
    pub disk: &'a str,
    /// Id of the machine.
    pub machine: &'a str,
    /// Whether the machine can only read.
    pub read_only: bool,
}

/// Moves of disks that belong into one request.
#[derive(Debug, Default, Serialize)]
pub struct DiskMoves<'a> {
    /// To machines.
    pub attach: Vec<DiskMove<'a>>,
    /// From machines.
    pub detach: Vec<DiskMove<'a>>,
}

/// One result for each of them.
#[derive(Debug, Deserialize)]
pub struct MoveResults {
    /// To machines.
    pub created: Vec<PartResult>,
    /// From machines.
    pub deleted: Vec<PartResult>,
}

/// A snapshot of a disk.
#[derive(Debug, Clone, Deserialize)]
pub struct DiskSnapshot {
    /// Never reused.
    pub id: String,
    /// Whether disks can be made of it already.
    pub ready: bool,
    /// The least size of such a disk.
    pub size: u64,
    /// In milliseconds since 1970.
    pub created: u64,
    /// Its requested state.
    pub spec: SnapshotSpec,
}

/// What a snapshot shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// Id of the disk.
    pub disk: String,
}

/// What there is room for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskLimits {
    /// Bytes.
    pub available: u64,
    /// Disks that a machine can have.
    pub per_machine: u32,
}

/// The kind of failure of a status about disks.
pub fn kind_of(status: u16) -> Option<FailureKind> {
    match status {
        404 => Some(FailureKind::NotFound),
        409 => Some(FailureKind::AlreadyExists),
        412 => Some(FailureKind::FailedPrecondition),
        416 => Some(FailureKind::OutOfRange),
        507 => Some(FailureKind::Exhausted),
        _ => None,
    }
}

/// Sends it, and classifies the answer by [`kind_of`].
fn send(request: Request) -> Result<Response, Failure> {
    let response = request.send_any()?;
    let kind = kind_of(response.status);
    response.success().map_err(|failure| match kind {
        Some(kind) => Failure { kind, ..failure },
        None => failure,
    })
}

/// The request with the passphrase of its encrypted disks, in Base64.
fn with(passphrase: Option<&Placeholder>, request: Request) -> Request {
    match passphrase {
        Some(passphrase) => request.header("x-disk-passphrase", passphrase.as_str()),
        None => request,
    }
}

/// Success also for what does not exist.
fn send_deletion(request: Request) -> Result<(), Failure> {
    match send(request) {
        Err(failure) if failure.is_not_found() => Ok(()),
        result => result.map(drop),
    }
}

/// A part of a list of disks or snapshots, and where the next begins.
pub type Part<T> = (Vec<T>, Option<String>);

impl Api {
    /// Zones of a disk where none are requested.
    pub fn zone_names(&self) -> Result<Vec<String>, Failure> {
        Ok(self.zones()?.into_iter().map(|zone| zone.name).collect())
    }

    /// The disks with these ids; those that do not exist are left out.
    pub fn disks_by_id(&self, ids: &[&str]) -> Result<Vec<Disk>, Failure> {
        let ids = joined(ids);
        self.list(|| self.http.get("/v1/disks").query("ids", &ids))
    }

    /// The disk of this name.
    pub fn disk_by_name(&self, cluster: &str, name: &str) -> Result<Option<Disk>, Failure> {
        let found = self.list(|| {
            let request = self.http.get("/v1/disks").query("cluster", cluster);
            request.query("name", name)
        });
        Ok(found?.pop())
    }

    /// A part of the cluster's disks.
    pub fn disks(&self, cluster: &str, after: Option<&str>, limit: u32) -> Result<Part<Disk>, Failure> {
        part(self.http.get("/v1/disks").query("cluster", cluster), after, limit)
    }

    /// Makes a disk; with the passphrase if it is encrypted.
    pub fn create_disk(&self, spec: &DiskSpec, passphrase: Option<&Placeholder>) -> Result<Disk, Failure> {
        send(with(passphrase, self.http.post("/v1/disks")).json(spec))?.json()
    }

    /// Changes a disk.
    pub fn change_disk(&self, id: &str, change: &DiskChange) -> Result<Disk, Failure> {
        send(self.http.put(&disk_path(id)).json(change))?.json()
    }

    /// Deletes a disk.
    pub fn delete_disk(&self, id: &str, passphrase: Option<&Placeholder>) -> Result<(), Failure> {
        send_deletion(with(passphrase, self.http.delete(&disk_path(id))))
    }

    /// Attaches and detaches disks.
    pub fn move_disks(&self, moves: &DiskMoves<'_>, passphrase: Option<&Placeholder>) -> Result<MoveResults, Failure> {
        send(with(passphrase, self.http.post("/v1/disks/batch")).json(moves))?.json()
    }

    /// How much room there is, in a zone or everywhere.
    pub fn disk_limits(&self, zone: Option<&str>) -> Result<DiskLimits, Failure> {
        send(self.http.get("/v1/disk-limits").query_opt("zone", zone))?.json()
    }

    /// The snapshots with these ids; those that do not exist are left out.
    pub fn snapshots_by_id(&self, ids: &[&str]) -> Result<Vec<DiskSnapshot>, Failure> {
        let ids = joined(ids);
        self.list(|| self.http.get("/v1/snapshots").query("ids", &ids))
    }

    /// The snapshot of this name.
    pub fn snapshot_by_name(&self, cluster: &str, name: &str) -> Result<Option<DiskSnapshot>, Failure> {
        let found = self.list(|| {
            let request = self.http.get("/v1/snapshots").query("cluster", cluster);
            request.query("name", name)
        });
        Ok(found?.pop())
    }

    /// A part of the cluster's snapshots, or of those of one disk.
    pub fn snapshots(
        &self,
        cluster: &str,
        disk: Option<&str>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Part<DiskSnapshot>, Failure> {
        let request = self.http.get("/v1/snapshots").query("cluster", cluster);
        part(request.query_opt("disk", disk), after, limit)
    }

    /// Makes a snapshot.
    pub fn create_snapshot(&self, spec: &SnapshotSpec) -> Result<DiskSnapshot, Failure> {
        send(self.http.post("/v1/snapshots").json(spec))?.json()
    }

    /// Deletes a snapshot.
    pub fn delete_snapshot(&self, id: &str) -> Result<(), Failure> {
        send_deletion(self.http.delete(&format!("/v1/snapshots/{}", percent_encode(id))))
    }
}

/// One page. The cloud answers 400 to a token that is none of its own.
fn part<T: serde::de::DeserializeOwned>(request: Request, after: Option<&str>, limit: u32) -> Result<Part<T>, Failure> {
    let response = request.query("limit", limit).query_opt("token", after).send_any()?;
    let status = response.status;
    let response = response.success().map_err(|failure| match status {
        400 => Failure::new(FailureKind::Aborted, failure.message),
        _ => failure,
    })?;
    let page: Page<T> = response.json()?;
    Ok((page.items, page.next))
}

fn disk_path(id: &str) -> String {
    format!("/v1/disks/{}", percent_encode(id))
}
