//! The simulated cloud's API: its wire types, and one function for each call.
//!
//! No decision is made here. Failures are right as they come: the SDK maps status and `Retry-After`.

pub mod disks;

use std::collections::BTreeMap;

use cloudwit_guest_sdk::http::paginate;
use cloudwit_guest_sdk::prelude::*;
use serde::{Deserialize, Serialize};

use crate::TOKEN;
use crate::config::Config;

/// A zone.
#[derive(Debug, Clone, Deserialize)]
pub struct Zone {
    /// Its name.
    pub name: String,
    /// The region it is in.
    pub region: String,
}

/// A machine.
#[derive(Debug, Clone, Deserialize)]
pub struct Machine {
    /// Never reused.
    pub id: String,
    /// Usually, but not by force, the Node's name.
    pub name: String,
    /// Size, such as `small`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Zone.
    pub zone: String,
    /// Region.
    pub region: String,
    /// Whether it runs.
    pub state: MachineState,
    /// Addresses, the most important first.
    pub addresses: Vec<MachineAddress>,
    /// Free labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MachineState {
    /// It does.
    Running,
    /// It is switched off.
    Stopped,
}

/// An address of a machine.
#[derive(Debug, Clone, Deserialize)]
pub struct MachineAddress {
    /// In which network.
    pub network: Network,
    /// The IP address.
    pub ip: String,
}

/// Where an address is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// Inside the cloud.
    Private,
    /// Everywhere.
    Public,
}

/// A load balancer.
#[derive(Debug, Clone, Deserialize)]
pub struct LoadBalancer {
    /// Never reused.
    pub id: String,
    /// Whether it works already.
    pub state: BalancerState,
    /// Where it is reached, once it is active.
    pub address: Option<String>,
    /// Its requested state.
    pub spec: BalancerSpec,
}

/// Whether a load balancer works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BalancerState {
    /// Not yet.
    Building,
    /// It does.
    Active,
}

/// The spec of a load balancer. One type for desired and observed state, so that `!=` finds every difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerSpec {
    /// Unique in its cluster.
    pub name: String,
    /// The cluster it belongs to.
    pub cluster: String,
    /// The uid of the Service it belongs to; none when it has no owner.
    pub owner: Option<String>,
    /// Who can reach it.
    pub scheme: Scheme,
    /// Ports in the Service's order.
    pub ports: Vec<BalancerPort>,
    /// Ids of the machines it sends traffic to, sorted.
    pub targets: Vec<String>,
    /// Who may connect, as CIDRs; empty means all.
    pub source_ranges: Vec<String>,
    /// Seconds for which a client stays with its machine.
    pub affinity_seconds: Option<u32>,
    /// Port of health checks; none for the traffic's own port.
    pub health_check_port: Option<u16>,
    /// The address to take; none for any.
    pub requested_address: Option<String>,
}

/// Who can reach a load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// All clients.
    Public,
    /// Only machines of this cloud.
    Internal,
}

/// One port of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BalancerPort {
    /// `tcp` or `udp`.
    pub protocol: PortProtocol,
    /// Where it listens.
    pub port: u16,
    /// Where machines listen.
    pub node_port: u16,
}

/// The protocols the cloud supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PortProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// A route.
#[derive(Debug, Clone, Deserialize)]
pub struct CloudRoute {
    /// Never reused.
    pub id: String,
    /// Whether its machine is gone.
    pub blackhole: bool,
    /// Its requested state.
    pub spec: RouteSpec,
}

/// What a route shall be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteSpec {
    /// The cluster it belongs to.
    pub cluster: String,
    /// Pod range as a CIDR.
    pub destination: String,
    /// Id of the machine.
    pub machine: String,
    /// Name of the Node, a free text to the cloud.
    pub node: String,
}

/// The cloud's answer to many changes of routes.
#[derive(Debug, Default, Deserialize)]
pub struct RouteResults {
    /// For each creation.
    pub created: Vec<PartResult>,
    /// For each deletion.
    pub deleted: Vec<PartResult>,
}

/// One part of an answer to many changes.
#[derive(Debug, Deserialize)]
pub struct PartResult {
    /// As an HTTP status.
    pub status: u16,
    /// What went wrong.
    #[serde(default)]
    pub message: String,
}

/// Which tags machines get or lose.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TagChanges {
    /// These, in place of other values.
    Set(BTreeMap<String, String>),
    /// Those that have these values.
    Remove(BTreeMap<String, String>),
}

#[derive(Serialize)]
struct TagRequest<'a> {
    instances: &'a [&'a str],
    #[serde(flatten)]
    changes: &'a TagChanges,
}

#[derive(Deserialize)]
struct TagResults {
    results: Vec<PartResult>,
}

#[derive(Serialize)]
struct RouteChanges<'a> {
    create: &'a [RouteSpec],
    delete: &'a [&'a str],
}

#[derive(Serialize)]
struct Targets<'a> {
    targets: &'a [String],
}

/// One page of a list.
#[derive(Deserialize)]
struct Page<T> {
    items: Vec<T>,
    next: Option<String>,
}

/// A key that all machines take.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MachineKey {
    /// Whom it lets in.
    pub user: String,
    /// As a line of `authorized_keys`.
    pub public_key: String,
}

/// A cluster that the cloud manages.
#[derive(Debug, Clone, Deserialize)]
pub struct ManagedCluster {
    /// Its name.
    pub name: String,
    /// Where its control plane is; none while it is being built.
    pub host: Option<String>,
    /// The port there.
    pub port: Option<u16>,
}

/// The calling machine. Needs no token.
///
/// # Errors
/// `not-found` when the cloud has no machine of this name.
pub fn metadata(config: &Config, context: Context, hostname: &str) -> Result<Machine, Failure> {
    let endpoint = config.metadata_endpoint.as_ref().unwrap_or(&config.endpoint);
    let http = context.http().base(endpoint);
    http.get("/v1/metadata").query("hostname", hostname).send()?.json()
}

/// The calls.
#[derive(Debug)]
pub struct Api {
    http: Http,
    region: Option<String>,
    page_size: u16,
}

impl Api {
    /// A client for this configuration.
    ///
    /// # Errors
    /// `denied` when the token is not granted.
    pub fn new(config: Config, context: Context) -> Result<Self, Failure> {
        let token = context.keys().placeholder(TOKEN)?;
        Ok(Self {
            http: context.http().base(&config.endpoint).bearer(&token),
            region: config.region,
            page_size: config.page_size,
        })
    }

    /// How many machines can be requested at once.
    pub fn page_size(&self) -> usize {
        self.page_size.into()
    }

    /// All zones; a cheap call, which also shows whether address and token are right.
    pub fn zones(&self) -> Result<Vec<Zone>, Failure> {
        let page: Page<Zone> = self.http.get("/v1/zones").send()?.json()?;
        Ok(page.items)
    }

    /// The machines with these ids, wherever they are; those without a machine are left out.
    pub fn machines_by_id(&self, ids: &[impl AsRef<str>]) -> Result<Vec<Machine>, Failure> {
        let ids = joined(ids);
        self.list(|| self.http.get("/v1/instances").query("ids", &ids))
    }

    /// The machines with these names where the cluster is. Several can have one name.
    pub fn machines_by_name(&self, names: &[impl AsRef<str>]) -> Result<Vec<Machine>, Failure> {
        let names = joined(names);
        self.list(|| {
            let request = self.http.get("/v1/instances").query("names", &names);
            request.query_opt("region", self.region.as_ref())
        })
    }

    /// Changes the tags of these machines, with one result for each.
    pub fn change_tags(&self, ids: &[&str], changes: &TagChanges) -> Result<Vec<PartResult>, Failure> {
        let request = TagRequest {
            instances: ids,
            changes,
        };
        let answer: TagResults = self.http.post("/v1/instances/tags").json(&request).send()?.json()?;
        Ok(answer.results)
    }

    /// The load balancers of this cluster that match `parameter`.
    pub fn load_balancers(&self, cluster: &str, parameter: &str, value: &str) -> Result<Vec<LoadBalancer>, Failure> {
        self.list(|| {
            self.http
                .get("/v1/load-balancers")
                .query("cluster", cluster)
                .query(parameter, value)
        })
    }

    /// A load balancer by its id.
    pub fn load_balancer(&self, id: &str) -> Result<Option<LoadBalancer>, Failure> {
        self.http
            .get(&balancer_path(id))
            .send_optional()?
            .map(|response| response.json())
            .transpose()
    }

    /// Makes a load balancer.
    pub fn create_load_balancer(&self, spec: &BalancerSpec) -> Result<LoadBalancer, Failure> {
        self.http.post("/v1/load-balancers").json(spec).send()?.json()
    }

    /// Makes a load balancer the error of `spec`.
    pub fn update_load_balancer(&self, id: &str, spec: &BalancerSpec) -> Result<LoadBalancer, Failure> {
        self.http.put(&balancer_path(id)).json(spec).send()?.json()
    }

    /// Changes only the targets.
    pub fn update_targets(&self, id: &str, targets: &[String]) -> Result<(), Failure> {
        let path = format!("{}/targets", balancer_path(id));
        self.http.put(&path).json(&Targets { targets }).send().map(drop)
    }

    /// Deletes a load balancer; one that does not exist is deleted.
    pub fn delete_load_balancer(&self, id: &str) -> Result<(), Failure> {
        self.http.delete(&balancer_path(id)).send_optional().map(drop)
    }

    /// The routes of this cluster.
    pub fn routes(&self, cluster: &str) -> Result<Vec<CloudRoute>, Failure> {
        self.list(|| self.http.get("/v1/routes").query("cluster", cluster))
    }

    /// Deletes routes by id, then creates others; all in one request.
    pub fn change_routes(&self, create: &[RouteSpec], delete: &[&str]) -> Result<RouteResults, Failure> {
        self.http
            .post("/v1/routes/batch")
            .json(&RouteChanges { create, delete })
            .send()?
            .json()
    }

    /// The clusters that the cloud manages.
    pub fn clusters(&self) -> Result<Vec<ManagedCluster>, Failure> {
        self.list(|| self.http.get("/v1/clusters"))
    }

    /// The keys that all machines take.
    pub fn ssh_keys(&self) -> Result<Vec<MachineKey>, Failure> {
        self.list(|| self.http.get("/v1/ssh-keys"))
    }

    /// Adds a key for all machines.
    pub fn add_ssh_key(&self, key: &MachineKey) -> Result<(), Failure> {
        self.http.post("/v1/ssh-keys").json(key).send().map(drop)
    }

    /// All pages of a list.
    fn list<T: serde::de::DeserializeOwned>(
        &self,
        request: impl Fn() -> cloudwit_guest_sdk::http::Request,
    ) -> Result<Vec<T>, Failure> {
        paginate(|token| {
            let page: Page<T> = request()
                .query("limit", self.page_size)
                .query_opt("token", token)
                .send()?
                .json()?;
            Ok((page.items, page.next))
        })
    }
}

fn joined(keys: &[impl AsRef<str>]) -> String {
    keys.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(",")
}

fn balancer_path(id: &str) -> String {
    format!("/v1/load-balancers/{}", cloudwit_guest_sdk::url::percent_encode(id))
}
