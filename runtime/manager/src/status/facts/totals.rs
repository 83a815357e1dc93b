//! How much there is in the cluster, and what a search has found.

use serde::Serialize;

use crate::status::causes::Affected;
use crate::status::facts::Listed;

/// How much there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Nodes.
    pub nodes: NodeTotals,
    /// Services.
    pub services: ServiceTotals,
    /// Routes, of all providers together; none before they were compared, and where none are made.
    pub routes: Option<RouteTotals>,
}

/// How many Nodes the cluster has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeTotals {
    /// All.
    pub total: usize,
    /// Those that are Ready.
    pub ready: usize,
    /// Those that wait to be initialised.
    pub uninitialised: usize,
}

/// How many Services the cluster has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceTotals {
    /// All.
    pub total: usize,
    /// Those of type LoadBalancer.
    pub load_balancers: usize,
    /// Of these, those with an address.
    pub with_address: usize,
}

/// How many routes there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTotals {
    /// Destinations of all Nodes.
    pub desired: usize,
    /// Those whose route is not there yet.
    pub missing: usize,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Search {
    /// The part of a name that was looked for.
    pub query: String,
    /// Nodes, then Services.
    pub found: Listed<Affected>,
}
