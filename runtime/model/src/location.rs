//! Location of the machine that a process runs on, and the trait of clouds that report it.

use crate::{Answer, Instance};

/// The calling machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineLocation {
    /// The name of its Node; [a good one](crate::dns_name::is_node_name).
    pub node: String,
    /// Its data in the cloud.
    pub instance: Instance,
}

/// A cloud that reports the location of its machines. Read only, so it needs no gate.
pub trait Location: Send + Sync {
    /// The machine that this process runs on and that calls itself `hostname`.
    fn locate<'a>(&'a self, hostname: &'a str) -> Answer<'a, MachineLocation>;
}
