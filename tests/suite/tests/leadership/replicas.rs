//! Replicas of the real process around one API server and one cloud, and work for them.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::gate::Gate;
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::programs::guests;
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, NodeBuilder, eventually, programs};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::api::ListParams;
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(180);

/// Machines in the cloud.
const MACHINES: u32 = 5000;

/// An election with more attempts than usual, in which a leader survives a pause of ten seconds: only those lose their Lease that a test takes it from.
pub const QUICK: [&str; 4] = [
    "--leader-elect=true",
    "--leader-elect-lease-duration=15s",
    "--leader-elect-renew-deadline=12s",
    "--leader-elect-retry-period=500ms",
];

/// The API server, the cloud, and a folder for each replica.
pub struct Stage {
    /// With an audit log.
    pub server: ApiServer,
    /// With all rights.
    pub client: Client,
    /// The cloud.
    pub cloud: SimCloud,
    deployments: [Deployment; 2],
    folder: TempDir,
    nodes: AtomicU32,
}

/// A process and its ways out.
pub struct Replica {
    /// The process.
    pub process: Child,
    /// Between it and the API server.
    pub to_api: Gate,
    /// Between it and the cloud.
    pub to_cloud: Gate,
}

impl Stage {
    pub async fn new() -> Self {
        let server = ApiServer::start_audited().await.unwrap();
        let client = server.client();
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.unwrap();
        cloud.add_numbered_machines("node", MACHINES as usize);
        let (program, provider) = tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("sim")))
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deployments = ["a", "b"]
            .map(|name| Deployment::new(&folder.path().join(name), program.parent().unwrap(), &provider).unwrap());
        Self {
            server,
            client,
            cloud,
            deployments,
            folder,
            nodes: AtomicU32::new(0),
        }
    }

    /// Starts a replica in one of the two places. A place has one replica at a time.
    pub async fn start(&self, place: usize, flags: &[&str]) -> Replica {
        self.start_after(place, flags, |_, _| {}).await
    }

    /// The same, with its ways to the API server and to the cloud prepared before it starts.
    pub async fn start_after(&self, place: usize, flags: &[&str], prepare: impl FnOnce(&Gate, &Gate)) -> Replica {
        let to_api = Gate::to(self.client.clone()).await.unwrap();
        let kubeconfig = self.kubeconfig(place, &to_api.url());
        let to_cloud = self.way_to_cloud().await;
        prepare(&to_api, &to_cloud);
        let (process, _) = self.deployments[place]
            .start_cloudwit(&kubeconfig, &to_cloud.url(), flags)
            .unwrap();
        Replica {
            process,
            to_api,
            to_cloud,
        }
    }

    /// Starts a replica without anything between it and the API server; its pages too.
    pub async fn start_directly(&self, flags: &[&str]) -> (Child, Gate, String) {
        let to_cloud = self.way_to_cloud().await;
        let (process, pages) = self.deployments[0]
            .start_cloudwit(self.server.kubeconfig(), &to_cloud.url(), flags)
            .unwrap();
        (process, to_cloud, pages)
    }

    async fn way_to_cloud(&self) -> Gate {
        let client = Client::try_from(Config::new(self.cloud.url().parse().unwrap())).unwrap();
        Gate::to(client).await.unwrap()
    }

    fn kubeconfig(&self, place: usize, server: &str) -> PathBuf {
        let file = self.folder.path().join(format!("kubeconfig-{place}"));
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "gate", "cluster": { "server": server } }],
            "contexts": [{ "name": "gate", "context": { "cluster": "gate", "user": "nobody" } }],
            "users": [{ "name": "nobody", "user": {} }],
            "current-context": "gate",
        });
        std::fs::write(&file, content.to_string()).unwrap();
        file
    }

    /// Who holds the Lease; empty for nobody.
    pub async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-system");
        let lease = leases.get_opt("cloud-controller-manager").await.unwrap_or_default();
        lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// A Node with a machine joins; gives its name.
    pub async fn join_node(&self) -> String {
        let name = format!("node-{}", self.nodes.fetch_add(1, Ordering::SeqCst) + 1);
        NodeBuilder::new(&name).create(&self.client).await.unwrap();
        name
    }

    /// A Node joins and is initialised by whoever leads.
    pub async fn work_is_done(&self) {
        let name = self.join_node().await;
        eventually(SOON, "the Node is initialised", || async {
            let node = self.nodes().get(&name).await.map_err(|error| error.to_string())?;
            if is_uninitialised(&node) {
                Err("it is not".to_owned())
            } else {
                Ok(())
            }
        })
        .await;
    }

    /// Nodes that wait to be initialised.
    pub async fn waiting_nodes(&self) -> Vec<String> {
        let nodes = self.nodes().list(&ListParams::default()).await.unwrap();
        let waiting = nodes.iter().filter(|node| is_uninitialised(node));
        waiting.map(ResourceExt::name_any).collect()
    }
}

/// The identity that a process has told in its log.
pub fn identity(process: &Child) -> Option<String> {
    let log = std::fs::read_to_string(process.log()).ok()?;
    let (_, rest) = log.split_once("identity=")?;
    let identity = rest.trim_start_matches('"');
    let end = identity.find(|c: char| c == '"' || c.is_whitespace())?;
    Some(identity[..end].to_owned())
}

/// Waits until a process has ended by itself.
pub async fn ended(process: &mut Child) -> ExitStatus {
    let log = process.log().to_owned();
    for _ in 0..600 {
        if let Some(status) = process.ended().unwrap() {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!(
        "it has not ended; {}",
        cloudwit_test_support::programs::child::log_end(&log)
    );
}
