//! Cloud Load Balancers (CLB): what is read of one, and the requests that read. One has one port; several share a virtual IP.

use std::collections::BTreeSet;
use std::net::IpAddr;

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::Rackspace;
use crate::identity::{BALANCERS, success};

/// Load balancers in a page: the most there are.
const PAGE: usize = 100;

/// One in a listing, which has neither nodes nor settings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    /// Id.
    pub id: u64,
    /// Name; several may have the same.
    #[serde(default)]
    pub name: String,
    /// See [`Phase`].
    #[serde(default)]
    pub status: String,
    /// Virtual IPs.
    #[serde(default)]
    pub virtual_ips: Vec<VirtualIp>,
}

/// A load balancer with everything below it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Clb {
    /// Id.
    pub id: u64,
    /// Port of its virtual IPs.
    pub port: u16,
    /// `TCP` or `UDP`, of those that are made here.
    pub protocol: String,
    /// See [`Phase`].
    pub status: String,
    /// `ROUND_ROBIN` and so on.
    #[serde(default)]
    pub algorithm: String,
    /// Seconds.
    #[serde(default)]
    pub timeout: i64,
    /// Virtual IPs.
    #[serde(default)]
    pub virtual_ips: Vec<VirtualIp>,
    /// Nodes behind it.
    #[serde(default)]
    pub nodes: Vec<Node>,
    /// Who may connect; all when it is empty.
    #[serde(default)]
    pub access_list: Vec<AccessItem>,
    /// Whether a client stays with a node.
    pub session_persistence: Option<Persistence>,
    /// Probes.
    pub health_monitor: Option<Monitor>,
}

/// A virtual IP. Its address family follows from the address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VirtualIp {
    /// Id, by which another load balancer shares it.
    pub id: u64,
    /// IPv4 or IPv6.
    pub address: IpAddr,
    /// `PUBLIC` or `SERVICENET`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Node {
    /// Id.
    pub id: u64,
    /// IPv4 or IPv6, or a host name of a node that was added by hand.
    pub address: String,
    /// Node port.
    pub port: u16,
    /// `ENABLED`, `DISABLED` or `DRAINING`.
    pub condition: String,
}

/// An item of an access list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AccessItem {
    /// Id.
    pub id: u64,
    /// A network or a single address.
    pub address: String,
    /// `ALLOW` or `DENY`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// Session persistence.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Persistence {
    /// `SOURCE_IP` or `HTTP_COOKIE`.
    pub persistence_type: String,
}

/// A health monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Monitor {
    /// `CONNECT`, `HTTP` or `HTTPS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Seconds between two probes.
    pub delay: i64,
    /// Seconds that a probe may take.
    pub timeout: i64,
    /// Failed probes after which a node gets no traffic.
    pub attempts_before_deactivation: i64,
}

/// What can be done with a load balancer in its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Takes changes.
    Active,
    /// Is built or changed: every change is refused.
    Busy,
    /// Can only be deleted.
    Error,
    /// The account is suspended, or it was for abuse.
    Suspended,
    /// Being deleted.
    Deleting,
    /// Shown for a while after its end.
    Deleted,
}

impl Phase {
    /// That of a status. An unknown one is taken for one that ends.
    pub fn of(status: &str) -> Self {
        match status.replace('-', "_").as_str() {
            "ACTIVE" => Self::Active,
            "ERROR" => Self::Error,
            "SUSPENDED" => Self::Suspended,
            "PENDING_DELETE" => Self::Deleting,
            "DELETED" => Self::Deleted,
            _ => Self::Busy,
        }
    }
}

impl Clb {
    /// What can be done with it.
    pub fn phase(&self) -> Phase {
        Phase::of(&self.status)
    }

    /// The ids of its virtual IPs.
    pub fn vip_ids(&self) -> BTreeSet<u64> {
        self.virtual_ips.iter().map(|vip| vip.id).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    load_balancers: Vec<Listed>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct One {
    load_balancer: Clb,
}

impl Rackspace {
    /// All load balancers of the account in this region, of others too.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn balancers(&self) -> Result<Vec<Listed>, Failure> {
        let mut all: Vec<Listed> = Vec::new();
        each_page::<Failure>(|marker| {
            let marker = marker.map(|id| format!("&marker={id}")).unwrap_or_default();
            let path = format!("/loadbalancers?limit={PAGE}{marker}");
            let page: Page = success(self.identity.send(BALANCERS, "GET", &path, None)?)?.json()?;
            let full = page.load_balancers.len() >= PAGE;
            let before = all.len();
            // A page begins with the load balancer that its marker names.
            for one in page.load_balancers {
                if all.iter().all(|known| known.id != one.id) {
                    all.push(one);
                }
            }
            let last = all.last().filter(|_| full && all.len() > before);
            Ok(last.map(|one| one.id.to_string()))
        })?;
        Ok(all)
    }

    /// One with everything below it; none when it is gone.
    ///
    /// # Errors
    /// The cloud's error.
    pub(crate) fn balancer(&self, id: u64) -> Result<Option<Clb>, Failure> {
        let path = format!("/loadbalancers/{id}");
        let response = self.identity.send(BALANCERS, "GET", &path, None)?;
        match success(response) {
            // A 404 without the cloud's own words is that of a proxy.
            Err(failure) if failure.is_not_found() && failure.code.is_some() => Ok(None),
            response => Ok(Some(response?.json::<One>()?.load_balancer)),
        }
    }
}
