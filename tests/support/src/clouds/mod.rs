//! The clouds that the tests run on: servers by third parties, and stand-ins of ours where there is none.

pub mod mimic;
pub mod moto;
pub mod openstack;
pub mod stand_in;
pub mod vcsim;
