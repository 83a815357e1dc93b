//! Octavia's objects as far as they matter here, and the calls that read them. What changes them is [`crate::balancers::change`].

pub mod bodies;
pub mod features;

use cloudwit_guest_sdk::prelude::*;
use serde_json::Value;

use crate::api::wire::{Fields, Read, entries};
use crate::api::{Api, Endpoint};

/// Where all paths begin.
pub const LBAAS: &str = "/v2.0/lbaas/";

/// What can be done with a load balancer at this moment: `provisioning_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It can be changed.
    Active,
    /// Octavia works on it: it cannot be changed, nor anything below it.
    Pending,
    /// Octavia is deleting it.
    PendingDelete,
    /// It can only be deleted or failed over.
    Error,
    /// It is gone.
    Deleted,
}

/// A load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadBalancer {
    /// Id.
    pub id: String,
    /// Name; not unique in Octavia.
    pub name: String,
    /// Octavia's `provisioning_status`.
    pub status: String,
    /// Virtual IP.
    pub vip_address: String,
    /// Its port.
    pub vip_port_id: String,
    /// Its subnet.
    pub vip_subnet_id: String,
    /// Free texts.
    pub tags: Vec<String>,
}

/// One that was found. In a box, as it is handed from call to call.
pub type Found = Box<LoadBalancer>;

impl LoadBalancer {
    pub(crate) fn read(json: &Value) -> Read<Box<Self>> {
        Ok(Box::new(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            status: json.need("provisioning_status")?,
            vip_address: json.text_or_empty("vip_address"),
            vip_port_id: json.text_or_empty("vip_port_id"),
            vip_subnet_id: json.text_or_empty("vip_subnet_id"),
            tags: json.texts("tags"),
        }))
    }

    /// What can be done with it.
    pub fn phase(&self) -> Phase {
        match self.status.as_str() {
            "ACTIVE" => Phase::Active,
            "ERROR" => Phase::Error,
            "DELETED" => Phase::Deleted,
            "PENDING_DELETE" => Phase::PendingDelete,
            _ => Phase::Pending,
        }
    }
}

/// A listener.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listener {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `TCP`, `UDP`, `SCTP`, `HTTP`, `TERMINATED_HTTPS`.
    pub protocol: String,
    /// Port.
    pub port: i64,
    /// Connections at a time; -1 for no limit.
    pub connection_limit: i64,
    /// client data, member connect, member data, TCP inspect; milliseconds.
    pub timeouts: [i64; 4],
    /// Headers that are added to requests.
    pub insert_headers: Vec<(String, String)>,
    /// Barbican URL, or empty.
    pub tls_container: String,
    /// Who may connect; empty for all.
    pub allowed_cidrs: Vec<String>,
    /// Free texts.
    pub tags: Vec<String>,
    /// The pool that gets its traffic.
    pub pool_id: String,
}

/// The fields of [`Listener::timeouts`].
pub const TIMEOUTS: [&str; 4] = [
    "timeout_client_data",
    "timeout_member_connect",
    "timeout_member_data",
    "timeout_tcp_inspect",
];

impl Listener {
    pub(crate) fn read(json: &Value) -> Read<Self> {
        let headers = json.field("insert_headers").into_iter().flat_map(entries);
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            protocol: json.need("protocol")?,
            port: json.number("protocol_port").ok_or("it has no \"protocol_port\"")?,
            connection_limit: json.number("connection_limit").unwrap_or(-1),
            timeouts: TIMEOUTS.map(|key| json.number(key).unwrap_or_default()),
            insert_headers: headers
                .filter_map(|(name, value)| Some((name.to_string(), value.as_str()?.into())))
                .collect(),
            tls_container: json.text_or_empty("default_tls_container_ref"),
            allowed_cidrs: json.texts("allowed_cidrs"),
            tags: json.texts("tags"),
            pool_id: json.text_or_empty("default_pool_id"),
        })
    }
}

/// A pool, with its members and its monitor where they were read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Id.
    pub id: String,
    /// Name.
    pub name: String,
    /// `TCP`, `UDP`, `SCTP`, `HTTP`, `PROXY`, `PROXYV2`.
    pub protocol: String,
    /// `lb_algorithm`.
    pub method: String,
    /// Type of the session persistence, or empty.
    pub persistence: String,
    /// Id of the monitor, or empty.
    pub monitor_id: String,
    /// Listeners that send it traffic.
    pub listeners: Vec<String>,
    /// Members.
    pub members: Vec<Member>,
    /// Monitor.
    pub monitor: Option<Monitor>,
}

impl Pool {
    pub(crate) fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            protocol: json.need("protocol")?,
            method: json.text_or_empty("lb_algorithm"),
            persistence: json
                .field("session_persistence")
                .map(|value| value.text_or_empty("type"))
                .unwrap_or_default(),
            monitor_id: json.text_or_empty("healthmonitor_id"),
            listeners: json.ids("listeners"),
            members: Vec::new(),
            monitor: None,
        })
    }
}

/// A member of a pool. Two of the same Node, address and ports are equal for upstream, whatever their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Member {
    /// Id; empty for a desired one.
    pub id: String,
    /// Name of the Node.
    pub name: String,
    /// Address of the Node.
    pub address: String,
    /// Node port.
    pub port: i64,
    /// Where it is checked, if elsewhere.
    pub monitor_port: Option<i64>,
}

impl Member {
    pub(crate) fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            address: json.need("address")?,
            port: json.number("protocol_port").ok_or("it has no \"protocol_port\"")?,
            monitor_port: json.number("monitor_port"),
        })
    }

    /// Whether it is the same, but for the id.
    pub fn same(&self, other: &Self) -> bool {
        (&self.name, &self.address, self.port, self.monitor_port)
            == (&other.name, &other.address, other.port, other.monitor_port)
    }
}

/// A health monitor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Monitor {
    /// Id; empty for a desired one.
    pub id: String,
    /// Name.
    pub name: String,
    /// `TCP`, `UDP-CONNECT`, `SCTP`, `HTTP`.
    pub kind: String,
    /// `delay`, `timeout`, `max_retries`, `max_retries_down`.
    pub numbers: [i64; 4],
}

/// The fields of [`Monitor::numbers`].
pub const MONITOR_NUMBERS: [&str; 4] = ["delay", "timeout", "max_retries", "max_retries_down"];

impl Monitor {
    pub(crate) fn read(json: &Value) -> Read<Self> {
        Ok(Self {
            id: json.need("id")?,
            name: json.text_or_empty("name"),
            kind: json.need("type")?,
            numbers: MONITOR_NUMBERS.map(|key| json.number(key).unwrap_or_default()),
        })
    }
}

/// What is below a load balancer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Listeners of all Services that share it.
    pub listeners: Vec<Listener>,
    /// Pools of all Services that share it.
    pub pools: Vec<Pool>,
}

impl Tree {
    /// The pool that gets a listener's traffic.
    pub fn pool_of(&self, listener: &Listener) -> Option<&Pool> {
        self.pools
            .iter()
            .find(|pool| pool.id == listener.pool_id || pool.listeners.contains(&listener.id))
    }
}

/// The calls that read.
#[derive(Debug, Clone, Copy)]
pub struct Octavia<'a>(pub &'a Api);

impl Octavia<'_> {
    fn list<T>(
        &self,
        path: &str,
        collection: &str,
        filter: (&str, &str),
        read: fn(&Value) -> Read<T>,
    ) -> Result<Vec<T>, Failure> {
        let call = self.0.get(Endpoint::LoadBalancer, &format!("{LBAAS}{path}"));
        let call = if filter.0.is_empty() {
            call
        } else {
            call.query(filter.0, filter.1)
        };
        self.0.list(call, collection, read)
    }

    /// One load balancer.
    pub fn load_balancer(&self, id: &str) -> Result<Option<Box<LoadBalancer>>, Failure> {
        let path = format!("{LBAAS}loadbalancers/{}", cloudwit_guest_sdk::url::percent_encode(id));
        let found = self
            .0
            .get(Endpoint::LoadBalancer, &path)
            .read_optional(|json| LoadBalancer::read(json.need_field("loadbalancer")?))?;
        Ok(found.filter(|balancer| balancer.phase() != Phase::Deleted))
    }

    /// All load balancers of this name.
    pub fn named(&self, name: &str) -> Result<Vec<Found>, Failure> {
        self.balancers(("name", name))
    }

    /// All load balancers of the project.
    pub fn all(&self) -> Result<Vec<Found>, Failure> {
        self.balancers(("", ""))
    }

    fn balancers(&self, filter: (&str, &str)) -> Result<Vec<Found>, Failure> {
        let mut found = self.list("loadbalancers", "loadbalancers", filter, LoadBalancer::read)?;
        found.retain(|balancer| balancer.phase() != Phase::Deleted);
        Ok(found)
    }

    /// Listeners and pools, without members and monitors.
    pub fn tree(&self, balancer: &str) -> Result<Tree, Failure> {
        Ok(Tree {
            listeners: self.list("listeners", "listeners", ("loadbalancer_id", balancer), Listener::read)?,
            pools: self.list("pools", "pools", ("loadbalancer_id", balancer), Pool::read)?,
        })
    }

    /// Reads a pool's members and monitor.
    pub fn fill(&self, pool: &mut Pool) -> Result<(), Failure> {
        pool.members = self.list(&format!("pools/{}/members", pool.id), "members", ("", ""), Member::read)?;
        if !pool.monitor_id.is_empty() {
            let path = format!("{LBAAS}healthmonitors/{}", pool.monitor_id);
            let call = self.0.get(Endpoint::LoadBalancer, &path);
            pool.monitor = call.read_optional(|json| Monitor::read(json.need_field("healthmonitor")?))?;
        }
        Ok(())
    }

    /// The API's version: the last of its list, such as `(2, 30)` of `v2.30`.
    pub fn version(&self) -> Result<(u32, u32), Failure> {
        let id = self.0.get(Endpoint::LoadBalancer, "/").read(|json| {
            let last = json.items("versions").last().ok_or("it has no \"versions\"")?;
            last.need("id")
        })?;
        let numbers = id.strip_prefix('v').and_then(|id| id.split_once('.'));
        numbers
            .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)))
            .ok_or_else(|| Failure::unavailable(format!("Octavia's version \"{id}\" cannot be read")))
    }
}
