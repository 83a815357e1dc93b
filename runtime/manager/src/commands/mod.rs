//! Subcommands.

mod calls;
pub mod cloud;
pub mod cluster;
pub mod config;
mod conformance;
pub mod csi;
pub mod csi_node;
pub mod explain;
pub mod explain_answer;
pub mod explain_fallback;
pub mod install;
pub mod provider;
mod recordings;
pub mod shell;
