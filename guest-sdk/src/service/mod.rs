//! What a Service says: annotations, networks, the name of its load balancer, and the targets behind it.

pub mod annotations;
pub mod cidr;
pub mod names;
pub mod ports;
pub mod targets;
