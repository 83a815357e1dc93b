//! Groups of flags, one a file.

pub mod api_server;
pub mod cluster;
pub mod delegation;
pub mod logging;
pub mod no_effect;
pub mod provider;
pub mod serving;
pub mod tracing;
pub mod webhooks;
