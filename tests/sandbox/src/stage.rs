//! The processes of the sandbox: started in order, watched, ended in the opposite order. Each writes its log under
//! `target/sandbox`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, anyhow, bail};
use cloudwit_test_support::ApiServer;
use cloudwit_test_support::child::{Child, log_end};
use cloudwit_test_support::deployment::Deployment;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

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
pub struct Stage {
    cloudwit: Child,
    cloud: Child,
    /// None when the cluster is somebody else's.
    api_server: Option<ApiServer>,
    /// Held until the end, so that there is one sandbox at a time.
    _lock: File,
    kubeconfig: PathBuf,
    cloud_url: String,
    admin_url: String,
    client: Client,
}

impl Stage {
    /// Starts everything.
    pub async fn build(provider: &Path, kubeconfig: Option<&Path>, narrator: &Narrator) -> Result<Self> {
        let target = xtask::workspace::target();
        let lock = lock(&target)?;
        let programs = std::env::current_exe().context("looking for our own program")?;
        let programs = programs.parent().context("our own program is in no folder")?;
        let deployment = Deployment::new(&target.join("sandbox"), programs, provider)?;
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
        let (cloud, cloud_url) = deployment.start_cloud()?;
        narrator.say(&format!(
            "the simulated cloud is ready: {cloud_url}  log: {}",
            short(cloud.log())
        ));
        let (cloudwit, admin_url) = deployment.start_cloudwit(&kubeconfig, &cloud_url, &DEMO_FLAGS)?;
        narrator.say(&format!(
            "Cloudwit runs with the provider sim                   log: {}",
            short(cloudwit.log())
        ));
        Ok(Self {
            cloudwit,
            cloud,
            api_server,
            _lock: lock,
            kubeconfig,
            cloud_url,
            admin_url,
            client,
        })
    }

    /// A client of the cluster.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// URL of the simulated cloud.
    pub fn cloud_url(&self) -> &str {
        &self.cloud_url
    }

    /// Returns when a process has ended by itself, with the end of its log.
    pub async fn someone_ended(&mut self) -> Error {
        loop {
            for child in [&mut self.cloudwit, &mut self.cloud] {
                match child.ended() {
                    Ok(None) => {}
                    Ok(Some(status)) => return anyhow!("{} ended by itself ({status})", short(child.log())),
                    Err(error) => return error,
                }
            }
            tokio::time::sleep(WATCH).await;
        }
    }

    /// The last lines of all logs.
    pub fn log_ends(&self) -> String {
        let mut logs = vec![self.cloudwit.log(), self.cloud.log()];
        logs.extend(self.api_server.as_ref().map(|server| server.log()));
        let ends = logs
            .into_iter()
            .map(|log| format!("The end of {}:\n{}", short(log), log_end(log)));
        ends.collect::<Vec<_>>().join("\n\n")
    }

    /// How to go on by hand.
    pub fn explain(&self, narrator: &Narrator) {
        narrator.say("all of it worked, and now it is yours until Ctrl-C:");
        let kubectl = format!("kubectl --kubeconfig {}", short(&self.kubeconfig));
        for line in [
            format!("{kubectl} get nodes -o wide"),
            format!("{kubectl} get services,events"),
            format!("{kubectl} create service loadbalancer hello --tcp=80"),
            format!("the cloud as a page:   {}", self.cloud_url),
            format!("Cloudwit's metrics:    {}/metrics", self.admin_url),
        ] {
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

/// Two sandboxes would take each other's folder away.
fn lock(target: &Path) -> Result<File> {
    let file = target.join("sandbox.lock");
    let lock = File::create(&file).with_context(|| format!("making {}", file.display()))?;
    if lock.try_lock().is_err() {
        bail!(
            "a sandbox is running already; end it first (it holds {})",
            file.display()
        );
    }
    Ok(lock)
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
