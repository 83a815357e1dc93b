//! Machines, and whether they exist.

use std::collections::BTreeMap;

use crate::Address;

/// A machine of the cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instance {
    /// Value for `spec.providerID`, never empty.
    pub provider_id: String,
    /// Machine type.
    pub instance_type: Option<String>,
    /// Zone.
    pub zone: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Addresses, the most important first. Values of the IP kinds are IP addresses.
    pub addresses: Vec<Address>,
    /// Further labels for initialisation.
    pub labels: BTreeMap<String, String>,
}

/// Evidence that a machine is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Exactly this provider id was requested.
    ById,
    /// Only a search by name or the like found nothing.
    ByName,
}

/// What the cloud says about one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It exists and is not stopped.
    Running(Instance),
    /// It exists and is stopped.
    Stopped(Instance),
    /// It does not exist.
    Absent(Evidence),
}

impl Presence {
    /// The machine, when it exists.
    pub fn instance(&self) -> Option<&Instance> {
        match self {
            Self::Running(instance) | Self::Stopped(instance) => Some(instance),
            Self::Absent(_) => None,
        }
    }
}
