//! The cloud-controller-manager as a library: [`start`], and what fuzzing calls.

mod api;
mod commands;
mod config;
mod election;
mod flags;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod process;
mod providers;
mod registry;
mod run;
mod serving;
mod ssh_keys;
mod start;
mod status;
mod telemetry;
mod volumes;
mod webhook;

pub use start::start;
