//! Cloudwit as a process between a cluster and a cloud, in the arrangements that tests share.

pub mod deployment;
pub mod installation;
pub mod rig;
pub mod site;
pub mod stand_in;
