//! Secrets that the host keeps, and tokens that the cloud gives.

pub mod jwt;
pub mod keys;
pub mod token;
