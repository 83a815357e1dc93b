//! What was asked of the cloud.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Operation;

/// Requests to `/v1` since the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// By operation; those that were never asked for are left out.
    pub operations: BTreeMap<Operation, OperationCount>,
    /// The most requests that were in flight at the same time.
    pub peak_in_flight: u64,
    /// Requests in flight now.
    pub in_flight: u64,
}

/// Requests of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationCount {
    /// All of them, including those that failed or were made to.
    pub requests: u64,
    /// Those that were made to fail by a [`Fault`](crate::Fault).
    pub injected_faults: u64,
    /// Those without the right token.
    pub unauthorized: u64,
}

impl Counters {
    /// Requests of all operations.
    pub fn total(&self) -> u64 {
        self.operations.values().map(|count| count.requests).sum()
    }

    /// Requests that were refused for their token.
    pub fn unauthorized(&self) -> u64 {
        self.operations.values().map(|count| count.unauthorized).sum()
    }

    /// Requests of one operation.
    pub fn requests(&self, operation: Operation) -> u64 {
        self.operations.get(&operation).map_or(0, |count| count.requests)
    }
}
