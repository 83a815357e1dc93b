//! The APIs of one vCenter: sessions, SOAP and what is read with it, and tags, which only its REST API tells.

pub mod ancestors;
pub mod properties;
pub mod session;
pub mod soap;
pub mod tags;
