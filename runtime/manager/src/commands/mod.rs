//! Subcommands.

pub mod cloud;
pub mod cluster;
pub mod config;
pub mod csi;
pub mod csi_node;
pub mod explain;
pub mod explain_answer;
pub mod explain_fallback;
pub mod install;
pub mod provider;
pub mod shell;
