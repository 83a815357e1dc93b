//! Groups of flags, one a file.

pub mod api_server;
pub mod cluster;
pub mod controllers;
pub mod delegation;
pub mod logging;
pub mod no_effect;
pub mod node_deletion;
pub mod provider;
pub mod serving;
pub mod ssh_keys;
pub mod tagging;
pub mod tracing;
pub mod volumes;
pub mod webhooks;
