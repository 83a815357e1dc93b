//! `cloudwit install`.

pub mod apply;
pub mod bundle;
pub mod check;
pub mod command;
pub mod manifests;
#[cfg(test)]
pub mod tests;
pub mod webhooks;
