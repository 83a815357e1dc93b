//! What is read of a load balancer's parts.

use serde::{Deserialize, Serialize};

use crate::api::wire;

/// Tag of a public address: the uid of the Service that it is for.
pub const SERVICE_TAG: &str = "cloudwit-service";

/// Tag of a public address that was free, named by the Service, and associated by Cloudwit.
pub const NAMED_TAG: &str = "cloudwit-associated";

/// A load balancer rule: one port of a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Rule {
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
    pub name: String,
    pub publicip: String,
    #[serde(deserialize_with = "wire::text")]
    pub publicipid: String,
    #[serde(deserialize_with = "wire::text")]
    pub publicport: String,
    #[serde(deserialize_with = "wire::text")]
    pub privateport: String,
    pub algorithm: String,
    pub protocol: String,
    pub cidrlist: String,
    #[serde(deserialize_with = "wire::text")]
    pub networkid: String,
    pub state: String,
}

/// A public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Address {
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
    pub ipaddress: String,
    /// Since when an account has it; none while it is free.
    pub allocated: Option<String>,
    pub state: String,
    pub issourcenat: bool,
    pub isstaticnat: bool,
    /// Of newer versions: whether any rule is for it.
    pub hasrules: bool,
    pub tags: Vec<Tag>,
}

/// A tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Tag {
    pub key: String,
    pub value: String,
}

/// A network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
    pub vpcid: Option<String>,
    pub aclid: Option<String>,
    service: Vec<Named>,
}

/// Something of which only the name matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    pub name: String,
}

/// Something of which only the id matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Identified {
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
}

/// A rule of the firewall, or of a network ACL: what may pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Opening {
    #[serde(deserialize_with = "wire::text")]
    pub id: String,
    pub protocol: String,
    #[serde(deserialize_with = "wire::text")]
    pub startport: String,
    #[serde(deserialize_with = "wire::text")]
    pub endport: String,
    pub cidrlist: String,
    /// Of a network ACL: `Allow` or `Deny`.
    pub action: String,
    /// Of a network ACL: `Ingress` or `Egress`.
    pub traffictype: String,
    /// Of a network ACL: why there is this rule. Cloudwit's have the load balancer's name.
    pub reason: Option<String>,
}

impl Rule {
    /// `tcp` or `udp`, also of one with the PROXY protocol.
    pub fn transport(&self) -> &str {
        match self.protocol.as_str() {
            "tcp-proxy" => "tcp",
            other => other,
        }
    }
}

impl Address {
    /// Whether it is for this Service.
    pub fn is_for(&self, uid: &str) -> bool {
        self.tags.iter().any(|tag| tag.key == SERVICE_TAG && tag.value == uid)
    }

    /// Whether it is for any Service.
    pub fn is_marked(&self) -> bool {
        self.tags.iter().any(|tag| tag.key == SERVICE_TAG)
    }

    /// Whether the Service named it, and Cloudwit associated it.
    pub fn was_named(&self) -> bool {
        self.tags.iter().any(|tag| tag.key == NAMED_TAG)
    }

    /// Whether it belongs to the account.
    pub fn is_allocated(&self) -> bool {
        self.allocated.as_deref().is_some_and(|since| !since.is_empty()) || self.state == "Allocated"
    }
}

impl Network {
    /// Whether it has this service, such as `Firewall`.
    pub fn has(&self, service: &str) -> bool {
        self.service.iter().any(|one| one.name == service)
    }
}

impl Opening {
    /// Whether it is for exactly this port.
    pub fn is_of(&self, protocol: &str, port: &str) -> bool {
        self.protocol.eq_ignore_ascii_case(protocol) && self.startport == port && self.endport == port
    }
}
