//! One file or folder for each command that builds and runs something; what is published is in [`crate::release`].

pub mod bench;
pub mod check;
pub mod clouds;
pub mod fuzz;
pub mod image;
pub mod manifests;
pub mod real;
pub mod sandbox;
pub mod soak;
pub mod test;
