//! Operations on volumes: from a checked request to the cloud's answer.

pub mod batches;
pub mod failures;
pub mod operations;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod steps;
#[cfg(test)]
pub(crate) mod testing;
mod unread;
pub mod work;
