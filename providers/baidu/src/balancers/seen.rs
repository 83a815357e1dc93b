//! What is read of a load balancer's parts.

use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;

use super::task::Next;

/// Tag of a BLB or EIP that Cloudwit made: the uid of the Service that it is for.
pub const SERVICE_TAG: &str = "cloudwit-service";

/// A load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Blb {
    pub blb_id: String,
    pub name: String,
    pub desc: Option<String>,
    pub status: String,
    /// In the VPC.
    pub address: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

/// A public address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Eip {
    pub eip: String,
    pub name: Option<String>,
    pub status: String,
    /// What it is bound to.
    pub instance_id: Option<String>,
    pub bandwidth_in_mbps: u32,
    pub payment_timing: Option<String>,
    pub billing_method: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

/// A tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Tag {
    pub tag_key: String,
    pub tag_value: String,
}

/// A listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Listener {
    /// `TCP` or `UDP`; it is in the path.
    #[serde(skip)]
    pub protocol: &'static str,
    pub listener_port: u16,
    pub backend_port: u16,
    pub scheduler: String,
    pub health_check_timeout_in_second: u32,
    pub health_check_interval: u32,
    pub unhealthy_threshold: u32,
    pub healthy_threshold: u32,
    /// Of UDP.
    pub health_check_string: Option<String>,
}

/// A machine behind a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Backend {
    pub instance_id: String,
}

/// Whether something can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    Ready,
    /// The cloud is changing it; with a message.
    Busy(String),
    /// It has to be corrected first, such as paid; with a message.
    Broken(String),
}

impl Standing {
    /// By its status (the API references of BLB and EIP, "BLBStatus" and "EipStatus").
    fn of(what: &str, id: &str, status: &str) -> Self {
        let text = || format!("the {what} {id} is {status}");
        match status {
            "available" | "binded" => Self::Ready,
            "paused" | "unavailable" => Self::Broken(text()),
            _ => Self::Busy(text()),
        }
    }

    /// What comes before a change; none where it can be changed.
    ///
    /// # Errors
    /// `failed-precondition` for what is broken.
    pub fn before_change<T>(self) -> Result<Option<Next<T>>, Failure> {
        match self {
            Self::Ready => Ok(None),
            Self::Busy(text) => Ok(Some(Next::Wait(text))),
            Self::Broken(text) => Err(Failure::failed_precondition(text)),
        }
    }

    /// The same before a deletion: what is broken can be deleted.
    pub fn before_deletion<T>(self) -> Option<Next<T>> {
        match self {
            Self::Busy(text) => Some(Next::Wait(text)),
            Self::Ready | Self::Broken(_) => None,
        }
    }
}

impl Blb {
    pub fn standing(&self) -> Standing {
        Standing::of("BLB", &self.blb_id, &self.status)
    }

    /// The uid of the Service that it is for; none where it has no such tag.
    pub fn owner(&self) -> Option<&str> {
        owner(self.tags.as_deref())
    }
}

impl Eip {
    pub fn standing(&self) -> Standing {
        Standing::of("EIP", &self.eip, &self.status)
    }

    /// What it is bound to, or is being.
    pub fn bound_to(&self) -> Option<&str> {
        self.instance_id.as_deref().filter(|id| !id.is_empty())
    }

    /// As with [`Blb::owner`].
    pub fn owner(&self) -> Option<&str> {
        owner(self.tags.as_deref())
    }
}

fn owner(tags: Option<&[Tag]>) -> Option<&str> {
    let tag = tags?.iter().find(|tag| tag.tag_key == SERVICE_TAG)?;
    Some(&tag.tag_value)
}
