//! The processes of the sandbox: started in order, watched, ended in the opposite order. Each writes its log into one
//! folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow};
use cloudwit_test_support::ApiServer;
use cloudwit_test_support::programs::child::{Child, log_end};
use cloudwit_test_support::scenes::deployment::Deployment;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::clouds::Cloud;
use crate::narrator::Narrator;

/// Short periods, so that the story takes seconds. An operator's own are minutes: see `cloudwit --help`.
const DEMO_FLAGS: [&str; 8] = [
    "--leader-elect=true",
    "--node-monitor-period=1s",
    "--node-status-update-frequency=10s",
    "--route-reconciliation-period=2s",
    "--node-deletion-confirm-after=2s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "-v=2",
];

/// How often it is looked whether all processes still run.
const WATCH: Duration = Duration::from_millis(200);

/// Everything that runs. Dropped in the order of the fields: first who writes, last who stores.
pub struct Stage<C> {
    cloudwit: Child,
    cloud: C,
    /// None when the cluster is somebody else's.
    api_server: Option<ApiServer>,
    /// Held until the end, so that there is one sandbox at a time.
    _lock: File,
    kubeconfig: PathBuf,
    admin_url: String,
    client: Client,
}

impl<C: Cloud> Stage<C> {
    /// Starts everything.
    pub async fn build(folder: &Path, provider: &Path, kubeconfig: Option<&Path>, narrator: &Narrator) -> Result<Self> {
        let lock = xtask::commands::sandbox::lock(folder)?;
        let programs = std::env::current_exe().context("looking for our own program")?;
        let programs = programs.parent().context("our own program is in no folder")?;
        let deployment = Deployment::of(C::PROVIDER, folder, programs, provider)?;
        let folder = deployment.folder();

        let (kubeconfig, api_server) = match kubeconfig {
            Some(file) => (file.to_owned(), None),
            None => {
                let log = folder.join("api-server.log");
                let server = ApiServer::start_in(folder.join("api-server"), log.clone()).await?;
                narrator.say(&format!(
                    "the API server (etcd, kube-apiserver) is ready        log: {}",
                    short(&log)
                ));
                (server.kubeconfig().to_owned(), Some(server))
            }
        };
        let client = connect(&kubeconfig).await?;
        let cloud = C::start(&deployment).await?;
        narrator.say(&format!(
            "{} is ready: {}  log: {}",
            C::NAME,
            cloud.url(),
            short(&cloud.log())
        ));
        let files = cloud.files(&deployment).await?;
        let (cloudwit, admin_url) = deployment.start_on(&kubeconfig, &files, &DEMO_FLAGS)?;
        narrator.say(&format!(
            "Cloudwit runs with the provider {:22} log: {}",
            C::PROVIDER,
            short(cloudwit.log())
        ));
        Ok(Self {
            cloudwit,
            cloud,
            api_server,
            _lock: lock,
            kubeconfig,
            admin_url,
            client,
        })
    }

    /// A client of the cluster.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The cloud.
    pub fn cloud(&self) -> &C {
        &self.cloud
    }

    /// Returns when a process has ended by itself; names its log.
    pub async fn someone_ended(&self) -> Error {
        loop {
            for (runs, log) in [
                (self.cloudwit.runs(), self.cloudwit.log().to_owned()),
                (self.cloud.runs(), self.cloud.log()),
            ] {
                if !runs {
                    return anyhow!("the process that writes {} has ended by itself", short(&log));
                }
            }
            tokio::time::sleep(WATCH).await;
        }
    }

    /// The last lines of all logs.
    pub fn log_ends(&self) -> String {
        let mut logs = vec![self.cloudwit.log().to_owned(), self.cloud.log()];
        logs.extend(self.api_server.as_ref().map(|server| server.log().to_owned()));
        let ends = logs
            .into_iter()
            .map(|log| format!("The end of {}:\n{}", short(&log), log_end(&log)));
        ends.collect::<Vec<_>>().join("\n\n")
    }

    /// How to go on by hand.
    pub fn explain(&self, narrator: &Narrator) {
        narrator.say("all of it worked, and now it is yours until Ctrl-C:");
        let kubectl = format!("kubectl --kubeconfig {}", short(&self.kubeconfig));
        narrator.detail(&format!("{kubectl} get nodes -o wide"));
        narrator.detail(&format!("{kubectl} get services,events"));
        narrator.detail(&format!("{kubectl} create service loadbalancer hello --tcp=80"));
        narrator.detail(&format!("Cloudwit's metrics:    {}/metrics", self.admin_url));
        for line in self.cloud.looks() {
            narrator.detail(&line);
        }
    }
}

/// A path as one types it in the root of the repository.
fn short(path: &Path) -> String {
    path.strip_prefix(xtask::workspace::root())
        .unwrap_or(path)
        .display()
        .to_string()
}

async fn connect(kubeconfig: &Path) -> Result<Client> {
    let wrong = || format!("--kubeconfig={}: cannot be used", kubeconfig.display());
    let content = Kubeconfig::read_from(kubeconfig).with_context(wrong)?;
    let config = Config::from_custom_kubeconfig(content, &KubeConfigOptions::default())
        .await
        .with_context(wrong)?;
    let client = Client::try_from(config).with_context(wrong)?;
    client
        .apiserver_version()
        .await
        .with_context(|| format!("{}: no API server answers", kubeconfig.display()))?;
    Ok(client)
}
