//! The API server: where it is, credentials, transport, limits and metrics of its clients.

pub mod accounts;
pub mod config;
pub mod credentials;
pub mod exec_plugin;
pub mod metrics;
pub mod request_budget;
pub mod response_limits;
pub mod server;
pub mod transport;
