//! The hub: its namespaces hold the control plane, the cloud and Cloudwit, and it starts the machines.

mod actuator;
mod control_plane;
pub(crate) mod files;
pub(crate) mod images;
pub(crate) mod kubectl;
pub(crate) mod machine;
pub(crate) mod network;
mod pki;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use crate::checks::{Checks, Takeover};
use crate::cloud::Cloud;
use crate::cloud::traffic::Traffic;
use crate::hub::actuator::{Actuator, Images};
use crate::hub::control_plane::ControlPlane;
use crate::hub::kubectl::Kubectl;
use crate::hub::pki::Pki;
use crate::manager::chart::Chart;
use crate::manager::pods;
use crate::manager::pods::{NAMESPACE, Pods};
use crate::manager::upstream::{self, Upstream};
use crate::manager::{Manager, Process};
use crate::process::{call, own_namespaces};
use crate::volumes::{self, SidecarFiles, Sidecars};
use crate::waiting::Narrator;

/// The port of the simulated cloud on all addresses of the hub.
const CLOUD_PORT: u16 = 7000;

/// How long the simulated cloud may take to start.
const START: Duration = Duration::from_secs(60);

/// What the sandbox is told.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The component of the provider `sim`.
    #[arg(long, value_name = "FILE")]
    pub provider: PathBuf,
    /// The unpacked parts of a Node.
    #[arg(long, value_name = "FOLDER")]
    pub parts: PathBuf,
    /// The program of `tests/kubernetes`.
    #[arg(long, value_name = "FILE")]
    pub kubernetes: PathBuf,
    /// What volumes need beside Cloudwit.
    #[command(flatten)]
    pub sidecars: SidecarFiles,
    /// The static binary of Cloudwit, to run it as Pods.
    #[arg(long, value_name = "FILE", requires_all = ["upstream", "helm"])]
    pub image: Option<PathBuf>,
    /// The program of `tests/peer`, which takes the Pods' place for a while.
    #[arg(long, value_name = "FILE", requires = "image")]
    pub upstream: Option<PathBuf>,
    /// Helm, which installs Cloudwit after that.
    #[arg(long, value_name = "FILE", requires = "image")]
    pub helm: Option<PathBuf>,
    /// End when the process that started us does.
    #[arg(long, hide = true)]
    pub with_parent: bool,
    /// End after the last check instead of staying until Ctrl-C.
    #[arg(long)]
    pub once: bool,
}

/// Runs until all was checked (`--once`), standard input closes, or something fails. Our end is that of all processes of our namespace.
///
/// # Errors
///
/// When something cannot be started. What fails later is printed, and ends the process with exit code 1.
pub fn run(options: &Options) -> Result<()> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    own_namespaces()?;
    // kube-controller-manager makes a folder there.
    call("mount -t tmpfs tmpfs /usr/libexec")?;
    network::prepare()?;
    std::thread::spawn(move || {
        // Whatever is read, only the end counts.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    let runtime = tokio::runtime::Runtime::new().context("starting the runtime")?;
    runtime.block_on(cluster(options))
}

async fn cluster(options: &Options) -> Result<()> {
    let narrator = Narrator::start();
    let programs = std::env::current_exe().context("looking for our own program")?;
    let programs = programs.parent().context("our own program is in no folder")?;
    let deployment = Deployment::new(&xtask::commands::sandbox::folder(), programs, &options.provider)?;
    let folder = deployment.folder();
    let names = [
        "kubernetes",
        "kubernetes.default.svc",
        network::HUB,
        network::KUBERNETES_SERVICE,
    ];
    let pki = Pki::create(&folder.join("pki"), &names)?;
    let kubeconfig = files::kubeconfig(folder, &pki, "admin")?;
    let kubectl = files::kubectl(folder, &options.kubernetes, &kubeconfig)?;
    narrator.say("the control plane starts (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)");
    let (plane, client) = ControlPlane::start(&options.kubernetes, folder, &pki, &kubeconfig).await?;
    narrator.say("the API server is ready");
    let _cloud = start_cloud(programs, folder)?;
    // Its administration is for loopback only.
    let url = format!("http://127.0.0.1:{CLOUD_PORT}");
    let cloud = Cloud::new(url.clone())?;
    let mut archives = vec![options.parts.join("image.tar")];
    let as_pods = options
        .image
        .as_ref()
        .zip(options.upstream.as_ref())
        .zip(options.helm.as_ref());
    let administrator = Kubectl::new(&options.kubernetes, &kubeconfig);
    let mut later = Vec::new();
    let (manager, mut sidecars) = match as_pods {
        Some(((binary, upstream), helm)) => {
            archives.push(images::archive(pods::IMAGE, binary, folder)?);
            archives.push(images::archive(upstream::IMAGE, upstream, folder)?);
            let spaces: Api<Namespace> = Api::all(client.clone());
            let there = async || Ok(spaces.get_opt(NAMESPACE).await?);
            narrator.until("the API server has made its namespaces", there).await?;
            let kubectl = administrator.clone();
            let takeover = Box::new(Takeover {
                upstream: Upstream::new(kubectl.clone(), folder, CLOUD_PORT)?,
                chart: Chart::new(
                    helm,
                    kubectl.clone(),
                    folder,
                    &kubeconfig,
                    &options.provider,
                    CLOUD_PORT,
                )?,
            });
            let pods = Pods::start(
                client.clone(),
                kubectl,
                binary,
                folder,
                &kubeconfig,
                &options.provider,
                CLOUD_PORT,
            )?;
            narrator.say("the simulated cloud runs, and `cloudwit install --apply` has installed Cloudwit");
            later = volumes::archives(&options.sidecars, binary, &options.parts, folder)?;
            // The others are in the Pods of the chart.
            let sidecars = Sidecars::start_controller(&options.sidecars, folder, &kubeconfig, &administrator)?;
            (Manager::Pods { pods, takeover }, sidecars)
        }
        None => {
            let sockets = folder.join("csi");
            let process = Process::start(deployment.clone(), kubeconfig.clone(), url, sockets.clone())?;
            let sidecars = Sidecars::start(&options.sidecars, &sockets, folder, &kubeconfig, &administrator)?;
            narrator.say("the simulated cloud, Cloudwit, and the sidecars for volumes run");
            (Manager::Process(process), sidecars)
        }
    };
    // The chart has a Pod for it.
    let cloudwit = options.image.is_none().then(|| programs.join("cloudwit"));
    let images = Images { first: archives, later };
    let mut actuator = Actuator::new(cloud.clone(), folder, options, images, pki, cloudwit)?;
    let traffic = Traffic::start(folder)?;
    let provider = std::fs::read(&options.provider).context("reading the provider")?;
    let checks = Checks::new(client, cloud, narrator, traffic, &manager, provider, administrator);
    let story = async {
        checks.run().await?;
        if options.once {
            return Ok(());
        }
        narrator.say("all of it worked, and now it is yours until Ctrl-C:");
        println!("          {} get nodes,pods,services -o wide", kubectl.display());
        std::future::pending().await
    };
    let watch = async {
        loop {
            if let Some(log) = plane.ended() {
                break anyhow!("the process that writes {} has ended by itself", log.display());
            }
            if let Some(why) = manager.ended() {
                break anyhow!(why);
            }
            if let Err(error) = sidecars.tend() {
                break error;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    let done = tokio::select! {
        done = story => done,
        done = actuator.follow() => done,
        gone = watch => Err(gone),
    };
    // All at once, as a power failure would: nothing of the cluster is needed any more.
    std::process::exit(match done {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("sandbox: {error:#}");
            1
        }
    })
}

/// Reachable from the machines, so that Pods on them can use it.
fn start_cloud(programs: &Path, folder: &Path) -> Result<Child> {
    let flags = [format!("--token={TOKEN}"), format!("--listen=0.0.0.0:{CLOUD_PORT}")];
    let cloud = Child::start(&programs.join("cloudwit-sim-cloud"), &flags, &folder.join("cloud.log"))?;
    cloud.said("READY", START)?;
    Ok(cloud)
}
