//! The APIs of one vCenter: sessions, SOAP and what is read with it, and tags, which only its REST API has.

pub mod ancestors;
pub mod properties;
pub mod session;
pub mod soap;
pub mod tags;
