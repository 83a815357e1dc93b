//! The machine that a process runs on, and the door to clouds that tell it who it is.

use crate::{Answer, Instance};

/// The machine that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineLocation {
    /// The name of its Node; [a good one](crate::dns_name::is_node_name).
    pub node: String,
    /// What its cloud knows about it.
    pub instance: Instance,
}

/// A cloud whose machines can ask who they are. Only asks, so it stands behind no gate.
pub trait Location: Send + Sync {
    /// The machine that this process runs on and that calls itself `hostname`.
    fn locate<'a>(&'a self, hostname: &'a str) -> Answer<'a, MachineLocation>;
}
