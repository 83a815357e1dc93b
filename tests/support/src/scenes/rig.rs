//! Cloudwit on a real API server and the simulated cloud, as a process that can be killed anywhere and started again.
//!
//! Both ways out of the process lead through a [`Gate`], so a test chooses the request in which it dies. The tests of a file share one
//! API server and take turns; each begins with a cluster without Nodes and Services, and with a cloud of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use k8s_openapi::api::core::v1::{Event, LoadBalancerIngress, Node, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard};

use crate::foreign_events::is_of_the_api_server;
use crate::gate::Gate;
use crate::programs::child::Child;
use crate::programs::guests;
use crate::scenes::deployment::{Deployment, TOKEN};
use crate::wait::eventually;
use crate::{ApiServer, programs};

/// How long anything may take on a busy machine, where each process compiles the component anew.
pub const SOON: Duration = Duration::from_secs(300);

/// What keeps a Service until its load balancer is deleted (`k8s.io/cloud-provider/service/helpers`, `LoadBalancerCleanupFinalizer`).
pub const CLEANUP_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// Everything around the process, and the process while it runs.
pub struct Rig {
    /// Straight to the API server.
    pub client: Client,
    /// The cloud.
    pub cloud: SimCloud,
    /// Between the process and the API server.
    pub to_api: Gate,
    /// Between the process and the cloud.
    pub to_cloud: Gate,
    deployment: Deployment,
    kubeconfig: PathBuf,
    flags: Vec<String>,
    process: Option<Child>,
    // After the process, so that it is gone when they go.
    _folder: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Rig {
    /// Waits for its turn and prepares everything but the process, which will get these flags.
    ///
    /// # Errors
    ///
    /// When something cannot be started.
    pub async fn new(flags: &[&str]) -> Result<Self> {
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let (program, provider) =
            tokio::task::spawn_blocking(|| (programs::cloudwit(), guests::provider("sim"))).await?;
        let client = ApiServer::shared().await.client();
        empty(&client).await?;
        let options = SimCloudOptions {
            token: TOKEN.into(),
            ..SimCloudOptions::default()
        };
        let cloud = SimCloud::start(options).await.context("starting the cloud")?;
        let to_api = Gate::to(client.clone()).await?;
        let to_cloud = Gate::to(Client::try_from(Config::new(cloud.url().parse()?))?).await?;
        let folder = tempfile::tempdir().context("making a folder")?;
        let programs = program.parent().context("a program lies in a folder")?;
        let deployment = Deployment::new(&folder.path().join("cloudwit"), programs, &provider)?;
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, kubeconfig_of(&to_api.url())).context("writing the kubeconfig")?;
        Ok(Self {
            client,
            cloud,
            to_api,
            to_cloud,
            deployment,
            kubeconfig,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            process: None,
            _folder: folder,
            _turn: turn,
        })
    }

    /// Starts the process.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(&mut self) -> Result<()> {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let (process, _) = self
            .deployment
            .start_cloudwit(&self.kubeconfig, &self.to_cloud.url(), &flags)?;
        self.process = Some(process);
        Ok(())
    }

    /// Kills the process where it is. Both gates are open afterwards.
    ///
    /// # Errors
    ///
    /// When it does not run any more, with the end of its log.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("the process was not started")?.kill()?;
        self.to_api.open();
        self.to_cloud.open();
        Ok(())
    }

    /// What the process wrote to its log since its start.
    pub fn log(&self) -> String {
        let log = self.process.as_ref().map(Child::log);
        log.and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// The Services of the namespace `default`.
    pub fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client.clone())
    }

    /// All Nodes.
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// Waits until `wrong` finds nothing wrong any more.
    ///
    /// # Panics
    ///
    /// When it still does after [`SOON`], with what it says and the end of the process's log.
    pub async fn settled<Fut: Future<Output = Result<(), String>>>(&self, what: &str, mut wrong: impl FnMut() -> Fut) {
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, what, || {
            let look = wrong();
            async { look.await.map_err(|wrong| format!("{wrong}\n{}", log())) }
        })
        .await;
    }

    /// Reasons and how often they came, of the Events about the object with this uid.
    ///
    /// # Errors
    ///
    /// As the API server answers.
    pub async fn events(&self, uid: &str) -> Result<BTreeMap<String, i32>> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let about = ListParams::default().fields(&format!("involvedObject.uid={uid}"));
        let mut counts = BTreeMap::new();
        for event in events
            .list(&about)
            .await?
            .into_iter()
            .filter(|event| !is_of_the_api_server(event))
        {
            *counts.entry(event.reason.unwrap_or_default()).or_default() += event.count.unwrap_or(1);
        }
        Ok(counts)
    }
}

/// The addresses in a Service's status.
pub fn ingress(service: &Service) -> Vec<String> {
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
    let points: &[LoadBalancerIngress] = balancer
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    points.iter().filter_map(|point| point.ip.clone()).collect()
}

/// The first of them, once the Service has one.
pub fn address(service: &Service) -> Option<String> {
    ingress(service).into_iter().next()
}

/// Whether a Service carries the cleanup finalizer.
pub fn is_kept(service: &Service) -> bool {
    service.finalizers().iter().any(|name| name == CLEANUP_FINALIZER)
}

/// Takes away what earlier tests left behind.
async fn empty(client: &Client) -> Result<()> {
    let services: Api<Service> = Api::default_namespaced(client.clone());
    for service in services.list(&ListParams::default()).await? {
        let name = service.name_any();
        if name == "kubernetes" {
            continue;
        }
        let free = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        match services.patch(&name, &PatchParams::default(), &free).await {
            // What the test before began to delete may go meanwhile.
            Err(kube::Error::Api(error)) if error.code == 404 => continue,
            freed => freed.map(drop)?,
        }
        // One that was being deleted is gone with its last finalizer.
        let _ = services.delete(&name, &DeleteParams::default()).await;
    }
    Api::<Node>::all(client.clone())
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    Ok(())
}

/// Without credentials: the gate has its own.
fn kubeconfig_of(server: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "gate", "cluster": { "server": server } }],
        "users": [{ "name": "nobody", "user": {} }],
        "contexts": [{ "name": "gate", "context": { "cluster": "gate", "user": "nobody" } }],
        "current-context": "gate",
    })
    .to_string()
}
