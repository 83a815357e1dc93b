//! Nodes and their addresses as a provider sees them.

use serde::{Deserialize, Serialize};

/// What kind of address it is; the names are those of `status.addresses[].type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddressKind {
    /// The machine's own host name.
    Hostname,
    /// An IP address inside the cluster's network.
    InternalIP,
    /// An IP address reachable from outside.
    ExternalIP,
    /// A DNS name that resolves inside.
    InternalDNS,
    /// A DNS name that resolves outside.
    ExternalDNS,
}

impl AddressKind {
    /// The word Kubernetes uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hostname => "Hostname",
            Self::InternalIP => "InternalIP",
            Self::ExternalIP => "ExternalIP",
            Self::InternalDNS => "InternalDNS",
            Self::ExternalDNS => "ExternalDNS",
        }
    }

    /// Reads the word Kubernetes uses.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Self::Hostname,
            Self::InternalIP,
            Self::ExternalIP,
            Self::InternalDNS,
            Self::ExternalDNS,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == text)
    }

    /// Whether the value has to be an IP address.
    pub fn is_ip(self) -> bool {
        matches!(self, Self::InternalIP | Self::ExternalIP)
    }
}

/// One address of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Address {
    /// What kind it is.
    pub kind: AddressKind,
    /// IP address without prefix length, or a name.
    pub value: String,
}

impl Address {
    /// An address of this kind and value.
    pub fn new(kind: AddressKind, value: impl Into<String>) -> Self {
        Self {
            kind,
            value: value.into(),
        }
    }
}

/// A Node, as far as a provider needs it to find the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRef {
    /// `metadata.name`.
    pub name: String,
    /// `spec.providerID` when set. Never `Some("")`.
    pub provider_id: Option<String>,
    /// `status.nodeInfo.systemUUID` when set.
    pub system_uuid: Option<String>,
    /// `status.addresses`; addresses of unknown kinds are left out.
    pub addresses: Vec<Address>,
    /// Value of the label [`PROVIDER`](crate::owners::PROVIDER). Only for finding the right provider, which does not see it.
    pub provider: Option<String>,
}
