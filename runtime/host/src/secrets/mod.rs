//! Secrets of an operator: kept, used in signatures and placeholders, redacted from texts.

pub(crate) mod config_secrets;
pub(crate) mod encoding;
pub(crate) mod forms;
pub mod keys;
pub(crate) mod placeholders;
pub(crate) mod redact;
pub(crate) mod secret;

#[cfg(test)]
mod encoding_tests;
#[cfg(test)]
mod keys_tests;
#[cfg(test)]
mod placeholders_tests;
#[cfg(test)]
pub(crate) mod redact_tests;
