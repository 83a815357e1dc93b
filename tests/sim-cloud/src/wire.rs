//! The API's words, as they stand in JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Zones, each with its region.
pub(crate) const ZONES: [(&str, &str); 3] = [("sim-1a", "sim-1"), ("sim-1b", "sim-1"), ("sim-2a", "sim-2")];

/// A zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// The region it lies in.
    pub region: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Unique, never used again.
    pub id: String,
    /// Free; need not be unique.
    pub name: String,
    /// Size.
    #[serde(rename = "type")]
    pub kind: String,
    /// Zone.
    pub zone: String,
    /// Region.
    pub region: String,
    /// Whether it runs.
    pub state: MachineState,
    /// Addresses.
    pub addresses: Vec<MachineAddress>,
    /// Free labels.
    pub labels: BTreeMap<String, String>,
    /// Tags, which are set and removed one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// It does.
    Running,
    /// It is switched off.
    Stopped,
}

/// An address of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineAddress {
    /// In which network.
    pub network: Network,
    /// The IP address.
    pub ip: String,
}

/// Where an address is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Inside the cloud.
    Private,
    /// Everywhere.
    Public,
}

/// A machine that is wanted. What is left out is filled in: the zones take turns, addresses are counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMachine {
    /// Name.
    pub name: String,
    /// Id; counted when left out.
    #[serde(default)]
    pub id: Option<String>,
    /// Size; `small` when left out.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// Zone; one of the three when left out. A zone that does not exist is of region `elsewhere`.
    #[serde(default)]
    pub zone: Option<String>,
    /// Addresses; a private one when left out.
    #[serde(default)]
    pub addresses: Option<Vec<MachineAddress>>,
    /// Labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Whether it is switched off.
    #[serde(default)]
    pub stopped: bool,
}

impl NewMachine {
    /// A machine of this name, everything else filled in.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// A load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// Unique, never used again.
    pub id: String,
    /// Whether it works already.
    pub state: BalancerState,
    /// Where it is reached, once it is active.
    pub address: Option<String>,
    /// What it was asked to be.
    pub spec: BalancerSpec,
}

/// Whether a load balancer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BalancerState {
    /// Not yet.
    Building,
    /// It does.
    Active,
}

/// What a load balancer shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BalancerSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// A free mark by which it can be found.
    #[serde(default)]
    pub owner: Option<String>,
    /// Who can reach it.
    pub scheme: Scheme,
    /// Ports.
    pub ports: Vec<BalancerPort>,
    /// Ids of machines.
    pub targets: Vec<String>,
    /// Who may connect, as CIDRs; empty means everybody.
    #[serde(default)]
    pub source_ranges: Vec<String>,
    /// Seconds for which a client stays with its machine.
    #[serde(default)]
    pub affinity_seconds: Option<u32>,
    /// Port to ask machines for their health.
    #[serde(default)]
    pub health_check_port: Option<u16>,
    /// The address to take; none for any.
    #[serde(default)]
    pub requested_address: Option<String>,
}

/// Who can reach a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Everybody.
    Public,
    /// Only machines of this cloud.
    Internal,
}

/// One port of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BalancerPort {
    /// Protocol.
    pub protocol: PortProtocol,
    /// Where it listens.
    pub port: u16,
    /// Where machines listen.
    pub node_port: u16,
}

/// The protocols of load balancers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A route to a Pod range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Unique, never used again.
    pub id: String,
    /// Whether its machine is gone.
    pub blackhole: bool,
    /// What it was asked to be.
    pub spec: RouteSpec,
}

/// What a route shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// The cluster it belongs to.
    pub cluster: String,
    /// Pod range as a CIDR; unique in its cluster.
    pub destination: String,
    /// Id of the machine.
    pub machine: String,
    /// A free text.
    #[serde(default)]
    pub node: String,
}

/// One page of a list.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// The token of the next page.
    pub(crate) next: Option<String>,
}

/// Many changes of routes; deletions come first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RouteChanges {
    #[serde(default)]
    pub(crate) create: Vec<RouteSpec>,
    /// Ids.
    #[serde(default)]
    pub(crate) delete: Vec<String>,
}

/// One result for each change, in order.
#[derive(Debug, Serialize)]
pub(crate) struct RouteResults {
    pub(crate) created: Vec<PartResult>,
    pub(crate) deleted: Vec<PartResult>,
}

/// The result of one change.
#[derive(Debug, Serialize)]
pub(crate) struct PartResult {
    /// As an HTTP status.
    pub(crate) status: u16,
    pub(crate) message: String,
}

/// Tags that machines get or lose.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TagChanges {
    /// Ids.
    pub(crate) instances: Vec<String>,
    #[serde(default)]
    pub(crate) set: BTreeMap<String, String>,
    /// Those that have exactly this value.
    #[serde(default)]
    pub(crate) remove: BTreeMap<String, String>,
}

/// One result for each machine, in order.
#[derive(Debug, Serialize)]
pub(crate) struct TagResults {
    pub(crate) results: Vec<PartResult>,
}

/// Other targets for a load balancer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTargets {
    pub(crate) targets: Vec<String>,
}
