//! Operations on volumes.

use serde::Serialize;

use crate::status::facts::{Listed, Moment};

/// The volumes of one CSI driver.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverFacts {
    /// Its name.
    pub driver: String,
    /// The provider whose volumes it serves.
    pub provider: String,
    /// Operations under way, the oldest first.
    pub operations: Listed<VolumeOperation>,
    /// The last failure of each volume and snapshot that no success followed, the latest first.
    pub failed: Listed<VolumeFailure>,
}

/// An operation on a volume or snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeOperation {
    /// What is done: `attach volume vol-1 to node-1`.
    pub work: String,
    /// Since when.
    pub since: Moment,
    /// What the cloud is waited for.
    pub waits_for: Option<String>,
    /// When the next call is.
    pub next: Option<Moment>,
    /// Requests of sidecars that wait for it.
    pub waiting: usize,
}

/// A failed operation on a volume or snapshot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeFailure {
    /// What was tried.
    pub work: String,
    /// When it failed the last time.
    pub at: Moment,
    /// What the cloud answered.
    pub error: String,
    /// How often it has failed in a row.
    pub times: u32,
}
