//! Certificates and options of TLS.

pub mod client_authorities;
pub mod clients;
pub mod options;
pub mod pairs;
