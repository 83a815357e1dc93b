//! Cloudwit under test: a process beside the machines, or Pods on them.

pub(crate) mod chart;
pub(crate) mod pods;
pub(crate) mod upstream;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::Deployment;

use crate::checks::Takeover;
use crate::manager::pods::Pods;

/// Short periods, so that what happens takes seconds. An operator's own are minutes: see `cloudwit --help`.
pub const DEMO_FLAGS: [&str; 6] = [
    "--node-monitor-period=1s",
    "--route-reconciliation-period=2s",
    "--node-deletion-confirm-after=2s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "-v=2",
];

/// Cloudwit.
pub enum Manager {
    /// One process with the rights of an administrator, without election.
    Process(Process),
    /// As users run it, and who takes its place for a while.
    Pods {
        /// Cloudwit.
        pods: Pods,
        /// The others.
        takeover: Box<Takeover>,
    },
}

/// The process, and what it is started from.
pub struct Process {
    deployment: Deployment,
    kubeconfig: PathBuf,
    cloud: String,
    sockets: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// Starts it on the cloud at this URL; it serves volumes on a socket in this folder.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(deployment: Deployment, kubeconfig: PathBuf, cloud: String, sockets: PathBuf) -> Result<Self> {
        let process = Self {
            deployment,
            kubeconfig,
            cloud,
            sockets,
            child: Mutex::new(None),
        };
        *process.child() = Some(process.started()?);
        Ok(process)
    }

    fn started(&self) -> Result<Child> {
        let sockets = format!("--csi-socket-dir={}", self.sockets.display());
        let flags = [DEMO_FLAGS.as_slice(), &[sockets.as_str()]].concat();
        let (child, _) = self.deployment.start_cloudwit(&self.kubeconfig, &self.cloud, &flags)?;
        Ok(child)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Manager {
    /// Why it does not work any more, if it has ended by itself.
    pub fn ended(&self) -> Option<String> {
        match self {
            Self::Process(process) => {
                let child = process.child();
                let gone = child.as_ref().filter(|child| !child.runs())?;
                Some(format!("Cloudwit has ended by itself; see {}", gone.log().display()))
            }
            // Kubernetes starts them again.
            Self::Pods { .. } => None,
        }
    }

    /// Replaces the provider's component, as a file or in its ConfigMap. When it is taken, the log says so.
    ///
    /// # Errors
    ///
    /// When it cannot be replaced.
    pub async fn replace_component(&self, content: &[u8]) -> Result<()> {
        match self {
            Self::Process(process) => {
                let folder = process.deployment.folder();
                let new = process.deployment.write("sim.wasm.new", "")?;
                std::fs::write(&new, content).context("writing a component")?;
                std::fs::rename(&new, folder.join("providers/sim.wasm")).context("replacing a component")
            }
            Self::Pods { pods, .. } => pods.install(content),
        }
    }

    /// What it has logged, a text for each that runs now.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn logs(&self) -> Result<Vec<String>> {
        match self {
            Self::Process(process) => {
                let log = process.child().as_ref().map(|child| child.log().to_owned());
                let log = log.context("Cloudwit does not run")?;
                let text = std::fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
                Ok(vec![text])
            }
            Self::Pods { pods, .. } => pods.logs().await,
        }
    }

    /// Kills the process, which is started again, or the Pod that leads. Says in a few words what it did.
    ///
    /// # Errors
    ///
    /// When it cannot be killed or started.
    pub async fn kill(&self) -> Result<String> {
        match self {
            Self::Process(process) => {
                let mut child = process.child();
                if let Some(child) = child.take() {
                    child.kill()?;
                }
                *child = Some(process.started()?);
                Ok("the process is killed, and started again".to_owned())
            }
            Self::Pods { pods, .. } => pods.kill_leader().await,
        }
    }
}
