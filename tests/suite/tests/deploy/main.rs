//! What is under deploy: the manifests are what the chart renders, install puts them into a real API server, and their service account may do
//! all that the process needs and nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod accounts;
mod chart;
mod cluster;
mod dashboards;
mod deeds;
mod install;
mod rights;
mod taken_away;
