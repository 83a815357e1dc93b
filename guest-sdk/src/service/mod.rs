//! What a Service says: annotations, networks, and the name of its load balancer.

pub mod annotations;
pub mod cidr;
pub mod names;
