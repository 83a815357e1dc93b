//! Cloudwit installed on a cluster with one provider: what the tests of all real clouds stand on.
//!
//! The cloud is the caller's. It hands over what Cloudwit is told about it ([`CloudFiles`]) with each start, and has to outlive this: the
//! process ends first, then what it talked to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tempfile::TempDir;

use crate::api_server::pool::PooledApiServer;
use crate::foreign_events::is_of_the_api_server;
use crate::objects::{is_uninitialised, ready_condition};
use crate::programs;
use crate::programs::child::Child;
use crate::programs::guests;
use crate::scenes::deployment::{CloudFiles, Deployment};
use crate::wait::eventually;

/// How long anything may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(300);

/// Flags with which the controllers look often, believe what they see quickly and soon try again what failed.
const QUICK: [&str; 7] = [
    "--node-monitor-period=500ms",
    "--node-deletion-confirm-after=1s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "--node-status-update-frequency=1s",
    "--route-reconciliation-period=1s",
    "--max-retry-pause=1s",
];

/// A cluster without Nodes, and Cloudwit's files and process.
pub struct Installation {
    // First, so that it is gone when the others go.
    process: Option<Child>,
    /// With all rights.
    pub client: Client,
    /// Where secrets are written that the settings name.
    pub deployment: Deployment,
    server: PooledApiServer,
    _folder: TempDir,
}

/// A Warning, as `kubectl describe` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// One word, such as `SyncLoadBalancerFailed`.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// How often it was said.
    pub count: i32,
}

impl Installation {
    /// On an empty API server, with the component of the provider of this name; not started yet.
    ///
    /// # Errors
    ///
    /// When something cannot be built or started.
    pub async fn new(provider: &'static str) -> Result<Self> {
        Self::with(provider, move || guests::provider(provider)).await
    }

    /// The same with another component under that name.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub async fn with(provider: &str, component: impl FnOnce() -> PathBuf + Send + 'static) -> Result<Self> {
        let built = move || (programs::cloudwit(), component());
        let (program, component): (PathBuf, PathBuf) = tokio::task::spawn_blocking(built).await?;
        let server = PooledApiServer::get().await?;
        let folder = tempfile::tempdir().context("making a folder")?;
        let programs = program.parent().context("a program lies in a folder")?;
        Ok(Self {
            process: None,
            client: server.client(),
            deployment: Deployment::of(provider, &folder.path().join("run"), programs, &component)?,
            server,
            _folder: folder,
        })
    }

    /// Starts Cloudwit with these flags beside those that make the Nodes' controllers quick, and with the compiled code that other tests left; of two for the same thing the caller's counts.
    ///
    /// # Errors
    ///
    /// When a file cannot be written or the program cannot be started.
    pub fn start(&mut self, files: &CloudFiles, flags: &[&str]) -> Result<()> {
        let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
        let given: Vec<String> = flags.iter().map(|flag| name(flag)).collect();
        let cache = format!(
            "--cache-dir={}",
            xtask::workspace::target().join("tmp/code-cache").display()
        );
        let defaults = QUICK.iter().copied().chain([cache.as_str()]);
        let defaults = defaults.filter(|flag| !given.contains(&name(flag)));
        let flags: Vec<&str> = defaults.chain(flags.iter().copied()).collect();
        let (process, _) = self.deployment.start_on(self.server.kubeconfig(), files, &flags)?;
        self.process = Some(process);
        Ok(())
    }

    /// A kubeconfig with all rights.
    pub fn kubeconfig(&self) -> &Path {
        self.server.kubeconfig()
    }

    /// Ends the process as a power failure does.
    ///
    /// # Errors
    ///
    /// When it does not run any more, with the end of its log.
    pub fn kill(&mut self) -> Result<()> {
        self.process.take().context("the process was not started")?.kill()
    }

    /// What the process has logged since its start.
    pub fn log(&self) -> String {
        let log = self.process.as_ref().map(Child::log);
        log.and_then(|log| std::fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// Waits until `wrong` finds nothing wrong any more.
    ///
    /// # Panics
    ///
    /// When it still does after [`SOON`], with what it says and the end of the process's log.
    #[track_caller]
    pub fn settled<Fut: Future<Output = Result<(), String>>>(
        &self,
        what: &str,
        mut wrong: impl FnMut() -> Fut,
    ) -> impl Future<Output = ()> {
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, what, move || {
            let look = wrong();
            async move { look.await.map_err(|wrong| format!("{wrong}\n{}", log())) }
        })
    }

    /// All Nodes.
    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    /// A Node by its name.
    ///
    /// # Panics
    ///
    /// When the API server refuses.
    pub async fn node(&self, name: &str) -> Option<Node> {
        self.nodes().get_opt(name).await.expect("the API server answers")
    }

    /// Waits until the Node is initialised.
    ///
    /// # Panics
    ///
    /// When it is not after [`SOON`].
    #[track_caller]
    pub fn initialised(&self, name: &str) -> impl Future<Output = Node> {
        let nodes = self.nodes();
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        eventually(SOON, "the Node is initialised", move || {
            let (nodes, name) = (nodes.clone(), name.to_owned());
            async move {
                let node = nodes.get(&name).await.map_err(|error| error.to_string())?;
                if is_uninitialised(&node) {
                    Err(format!("it has the taint\n{}", log()))
                } else {
                    Ok(node)
                }
            }
        })
    }

    /// Waits until all Nodes are initialised.
    ///
    /// # Panics
    ///
    /// When some are not after [`SOON`].
    pub async fn all_initialised(&self) {
        self.settled("all Nodes are initialised", || async {
            let nodes = self.nodes().list(&ListParams::default()).await;
            let nodes = nodes.map_err(|error| error.to_string())?;
            match nodes.iter().filter(|node| is_uninitialised(node)).count() {
                0 => Ok(()),
                left => Err(format!("{left} are left")),
            }
        })
        .await;
    }

    /// Waits until the namespace `default` has no Service but the API server's own.
    ///
    /// # Panics
    ///
    /// When it has others after [`SOON`].
    pub async fn services_gone(&self) {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        self.settled("all Services are gone", || async {
            let left = services.list(&ListParams::default()).await;
            match left.map_err(|error| error.to_string())?.items.len() {
                0 | 1 => Ok(()),
                left => Err(format!("{left} are left")),
            }
        })
        .await;
    }

    /// Waits until the Node's annotation says this about what it waits for.
    ///
    /// # Panics
    ///
    /// When it does not after [`SOON`].
    pub async fn waits(&self, name: &str, parts: &[&str]) {
        self.settled("the Node says what it waits for", || async {
            let node = self.node(name).await.ok_or("there is no such Node")?;
            let waits = node.annotations().get("cloudwit.dev/waiting-for-cloud");
            let waits = waits.map(String::as_str).unwrap_or_default();
            match parts.iter().all(|part| waits.contains(part)) {
                true => Ok(()),
                false => Err(format!("{waits:?}")),
            }
        })
        .await;
    }

    /// The kubelet falls silent, as when its machine is off.
    ///
    /// # Panics
    ///
    /// When there is no such Node.
    pub async fn falls_silent(&self, name: &str) {
        let patch = Patch::Strategic(json!({ "status": { "conditions": [ready_condition(None)] } }));
        let patched = self.nodes().patch_status(name, &PatchParams::default(), &patch).await;
        patched.expect("the Node is there");
    }

    /// The Warnings about the Node, or the Service in the namespace `default`, of this name.
    ///
    /// # Panics
    ///
    /// When the API server refuses.
    pub async fn warnings(&self, name: &str) -> Vec<Warning> {
        let events: Api<Event> = Api::default_namespaced(self.client.clone());
        let about = ListParams::default().fields(&format!("involvedObject.name={name},type=Warning"));
        let events = events.list(&about).await.expect("the API server answers");
        let warning = |event: Event| Warning {
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            count: event.count.unwrap_or(1),
        };
        let ours = events.into_iter().filter(|event| !is_of_the_api_server(event));
        ours.map(warning).collect()
    }

    /// Waits until a Warning about this object has this reason and all these parts, and gives it.
    ///
    /// # Panics
    ///
    /// When there is none after [`SOON`], with those that there are.
    pub async fn warned(&self, name: &str, reason: &str, parts: &[&str]) -> Warning {
        let log = || self.process.as_ref().map(Child::log_end).unwrap_or_default();
        let fits =
            |warning: &Warning| warning.reason == reason && parts.iter().all(|part| warning.message.contains(part));
        eventually(SOON, &format!("{reason} about {name} says {parts:?}"), || async {
            let warnings = self.warnings(name).await;
            let found = warnings.iter().find(|warning| fits(warning)).cloned();
            found.ok_or_else(|| format!("{warnings:#?}\n{}", log()))
        })
        .await
    }
}
