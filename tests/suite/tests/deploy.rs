//! What is under deploy: the manifests are what the chart renders, install puts them into a real API server, and their service account may do
//! all that the process needs and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "deploy/accounts.rs"]
mod accounts;
#[path = "deploy/chart.rs"]
mod chart;
#[path = "deploy/cluster.rs"]
mod cluster;
#[path = "deploy/dashboards.rs"]
mod dashboards;
#[path = "deploy/deeds.rs"]
mod deeds;
#[path = "deploy/install.rs"]
mod install;
#[path = "deploy/rights.rs"]
mod rights;
#[path = "deploy/taken_away.rs"]
mod taken_away;
