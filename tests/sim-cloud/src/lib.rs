//! A simulated cloud over HTTP: machines, load balancers, routes, disks, and faults on demand.
//!
//! ```text
//!   provider --- /v1/*, bearer token ---> traffic.rs ---> api.rs ------+
//!                                         count, latency,              v
//!                                         faults, token           cloud.rs  machines, load balancers, routes; disks.rs
//!   test ------- /control/*, SimCloud --> control.rs, lib.rs ----------^
//!   you -------- / ---------------------> page.rs  (plain HTML)
//! ```
//!
//! A cloud of its own with its own API, not a mock of one: tests change it as an administrator would (machines vanish, requests fail)
//! and read what was asked of it. Ids are counted, so that two runs give the same ones. Nothing is kept on disk.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

mod api;
mod cloud;
mod control;
mod counters;
mod disk_api;
mod disk_wire;
mod disks;
mod faults;
mod page;
mod small_api;
mod tokens;
mod traffic;
mod wire;

pub use counters::{Counters, OperationCount};
pub use disk_wire::{
    AttachmentState, Disk, DiskAttachment, DiskChange, DiskLimits, DiskMove, DiskSnapshot, DiskSource, DiskSpec,
    SnapshotSpec,
};
pub use disks::DiskSettings;
pub use faults::{Fault, FaultKind, Operation};
pub use small_api::{MachineKey, ManagedCluster};
pub use tokens::TokenUse;
pub use wire::{
    BalancerPort, BalancerSpec, BalancerState, LoadBalancer, Machine, MachineAddress, MachineState, Network,
    NewMachine, PortProtocol, Route, RouteSpec, Scheme, Zone,
};

use cloud::Cloud;
use small_api::Small;
use tokens::Tokens;
use traffic::Traffic;

/// How the cloud begins.
#[derive(Debug, Clone)]
pub struct SimCloudOptions {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The bearer token that `/v1` asks for.
    pub token: String,
    /// Time that each `/v1` request takes at least.
    pub latency: Duration,
    /// Time from the creation of a load balancer until it is active.
    pub balancer_build_time: Duration,
    /// Start of the random numbers that decide which requests an error rate hits.
    pub seed: u64,
}

impl Default for SimCloudOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: "sim-token".into(),
            latency: Duration::ZERO,
            balancer_build_time: Duration::ZERO,
            seed: 1,
        }
    }
}

/// What handlers and [`SimCloud`] share.
struct Shared {
    tokens: Tokens,
    cloud: Cloud,
    small: Small,
    traffic: Traffic,
}

/// A running cloud. It stops when this is dropped.
pub struct SimCloud {
    address: SocketAddr,
    token: String,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl SimCloud {
    /// Starts it.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start(options: SimCloudOptions) -> std::io::Result<Self> {
        let SimCloudOptions {
            listen,
            token,
            latency,
            balancer_build_time,
            seed,
        } = options;
        let listener = TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            tokens: Tokens::new(token.clone()),
            cloud: Cloud::new(balancer_build_time),
            small: Small::default(),
            traffic: Traffic::new(latency, seed),
        });
        let app = api::router(&shared)
            .merge(control::router(&shared))
            .merge(page::router(&shared));
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        let server = tokio::spawn(async move {
            // Ends with the listener only, and that lives as long as the task.
            let _ = axum::serve(listener, service).await;
        });
        Ok(Self {
            address,
            token,
            shared,
            server,
        })
    }

    /// The API's base URL, without a slash at its end; the HTML page is at its root.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The bearer token that was taken at the start.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// From now on takes these bearer tokens and no others.
    pub fn set_tokens<S: Into<String>>(&self, tokens: impl IntoIterator<Item = S>) {
        self.shared.tokens.set(tokens.into_iter().map(Into::into).collect());
    }

    /// How often and when each bearer token was sent, taken or not.
    pub fn token_uses(&self) -> BTreeMap<String, TokenUse> {
        self.shared.tokens.uses()
    }

    /// Adds machines. The answer has their order.
    pub fn add_machines(&self, machines: impl IntoIterator<Item = NewMachine>) -> Vec<Machine> {
        self.shared.cloud.add_machines(machines)
    }

    /// Adds so many machines named `PREFIX-0`, `PREFIX-1` and so on, spread over the zones.
    pub fn add_numbered_machines(&self, prefix: &str, count: usize) -> Vec<Machine> {
        self.add_machines((0..count).map(|number| NewMachine::named(format!("{prefix}-{number}"))))
    }

    /// Deletes the machines with these ids or names; answers how many there were. Their routes become black holes.
    pub fn delete_machines<S: AsRef<str>>(&self, ids_or_names: impl IntoIterator<Item = S>) -> usize {
        self.shared.cloud.delete_machines(ids_or_names)
    }

    /// Switches machines off or on; answers how many there were.
    pub fn set_state<S: AsRef<str>>(&self, ids_or_names: impl IntoIterator<Item = S>, state: MachineState) -> usize {
        self.shared.cloud.set_state(ids_or_names, state)
    }

    /// All machines, ordered by creation.
    pub fn machines(&self) -> Vec<Machine> {
        self.shared.cloud.machines()
    }

    /// All load balancers, ordered by creation.
    pub fn load_balancers(&self) -> Vec<LoadBalancer> {
        self.shared.cloud.load_balancers()
    }

    /// Puts a load balancer into the cloud that no provider made, for instance one to adopt. Its build time counts from now.
    ///
    /// # Errors
    /// When the API would refuse it, with the API's words.
    pub fn add_load_balancer(&self, spec: BalancerSpec) -> Result<LoadBalancer, String> {
        self.shared
            .cloud
            .create_load_balancer(spec)
            .map_err(|refusal| refusal.message)
    }

    /// How many load balancers were ever made, those that are gone included.
    pub fn load_balancers_made(&self) -> u64 {
        self.shared.cloud.load_balancers_made()
    }

    /// Deletes a load balancer as an administrator does, past everybody who looks after it.
    ///
    /// # Errors
    /// When there is none with this id.
    pub fn delete_load_balancer(&self, id: &str) -> Result<(), String> {
        self.shared
            .cloud
            .delete_load_balancer(id)
            .map_err(|refusal| refusal.message)
    }

    /// Gives a load balancer another address, as an administrator who moves it does.
    ///
    /// # Errors
    /// When there is none with this id.
    pub fn set_load_balancer_address(&self, id: &str, address: &str) -> Result<(), String> {
        self.shared
            .cloud
            .set_address(id, address)
            .map_err(|refusal| refusal.message)
    }

    /// Changes a load balancer as an administrator does, past everybody who looks after it.
    ///
    /// # Errors
    /// When there is none with this id, or the API would refuse it.
    pub fn change_load_balancer(&self, id: &str, spec: BalancerSpec) -> Result<(), String> {
        let changed = self.shared.cloud.update_load_balancer(id, spec);
        changed.map(|_| ()).map_err(|refusal| refusal.message)
    }

    /// Makes all load balancers active that are still being built.
    pub fn finish_load_balancers(&self) {
        self.shared.cloud.finish_load_balancers();
    }

    /// From now on, the time from the creation of a load balancer until it is active.
    pub fn set_balancer_build_time(&self, time: Duration) {
        self.shared.cloud.set_balancer_build_time(time);
    }

    /// All routes, ordered by creation.
    pub fn routes(&self) -> Vec<Route> {
        self.shared.cloud.routes()
    }

    /// Puts a route into the cloud that no provider made, for instance one to adopt.
    ///
    /// # Errors
    /// When the API would refuse it, with the API's words.
    pub fn add_route(&self, route: RouteSpec) -> Result<(), String> {
        self.shared.cloud.create_route(route).map_err(|refusal| refusal.message)
    }

    /// How many routes were ever made, those that are gone included.
    pub fn routes_made(&self) -> u64 {
        self.shared.cloud.routes_made()
    }

    /// All disks, ordered by creation.
    pub fn disks(&self) -> Vec<Disk> {
        self.shared.cloud.with_disks(|disks, _| disks.all())
    }

    /// How many disks were ever made, those that are gone included.
    pub fn disks_made(&self) -> u64 {
        self.shared.cloud.with_disks(|disks, _| disks.made())
    }

    /// All snapshots, ordered by creation.
    pub fn disk_snapshots(&self) -> Vec<DiskSnapshot> {
        self.shared.cloud.with_disks(|disks, _| disks.snapshots())
    }

    /// Keys that all machines take, ordered by their addition.
    pub fn ssh_keys(&self) -> Vec<MachineKey> {
        self.shared.small.keys()
    }

    /// Takes all keys away, as an administrator does, past everybody who looks after them.
    pub fn remove_ssh_keys(&self) {
        self.shared.small.remove_keys();
    }

    /// The clusters that the cloud says it manages.
    pub fn set_clusters(&self, clusters: Vec<ManagedCluster>) {
        self.shared.small.set_clusters(clusters);
    }

    /// From now on disks behave so.
    pub fn set_disk_settings(&self, settings: DiskSettings) {
        self.shared.cloud.with_disks(|disks, _| disks.settings = settings);
    }

    /// Ends what takes its time with disks, snapshots and attachments.
    pub fn finish_disks(&self) {
        self.shared.cloud.with_disks(|disks, _| disks.finish());
    }

    /// Deletes a disk as an administrator does, attached or not; answers whether there was one.
    pub fn delete_disk(&self, id: &str) -> bool {
        self.shared.cloud.with_disks(|disks, _| disks.remove(id))
    }

    /// Sets the faults, replacing those that were.
    pub fn set_faults(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.traffic.set_faults(faults.into_iter().collect());
    }

    /// Sets the time that each request takes at least.
    pub fn set_latency(&self, latency: Duration) {
        self.shared.traffic.set_latency(latency);
    }

    /// What was asked since the start or the last [`reset_counters`](Self::reset_counters).
    pub fn counters(&self) -> Counters {
        self.shared.traffic.counters()
    }

    /// Sets the counters to nought.
    pub fn reset_counters(&self) {
        self.shared.traffic.reset_counters();
    }

    /// Empties the cloud, removes faults and latency, sets the counters to nought. Ids start again.
    pub fn reset(&self) {
        self.shared.reset();
    }
}

impl Shared {
    fn reset(&self) {
        self.cloud.reset();
        self.small.remove_keys();
        self.traffic.reset();
    }
}

impl Drop for SimCloud {
    fn drop(&mut self) {
        self.server.abort();
    }
}
