//! Readers of a Service: annotations, networks, the name of its load balancer, targets.

pub mod annotations;
pub mod cidr;
pub mod names;
pub mod ports;
pub mod targets;
