//! `cloudwit install`.

pub mod apply;
pub mod bundle;
pub mod check;
pub mod command;
pub mod manifests;
pub mod ready;
#[cfg(test)]
pub mod tests;
pub mod webhooks;
pub mod yaml;
