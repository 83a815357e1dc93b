//! The hub: its namespaces hold the control plane, the cloud and Cloudwit, and it starts the machines.

use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use cloudwit_test_support::deployment::Deployment;

use crate::actuator::Actuator;
use crate::checks::Checks;
use crate::cloud::Cloud;
use crate::control_plane::ControlPlane;
use crate::pki::Pki;
use crate::process::{call, own_namespaces};
use crate::traffic::Traffic;
use crate::waiting::Narrator;
use crate::{files, network};

/// Short periods, so that what happens takes seconds. An operator's own are minutes: see `cloudwit --help`.
const DEMO_FLAGS: [&str; 6] = [
    "--node-monitor-period=1s",
    "--route-reconciliation-period=2s",
    "--node-deletion-confirm-after=2s",
    "--node-deletion-grace-period=0s",
    "--node-deletion-max-percent=100",
    "-v=2",
];

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
    /// How many machines join.
    #[arg(long, default_value_t = 2)]
    pub nodes: u8,
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
    let deployment = Deployment::new(&xtask::workspace::target().join("sandbox"), programs, &options.provider)?;
    let folder = deployment.folder();
    let names = [
        "kubernetes",
        "kubernetes.default.svc",
        network::HUB,
        network::KUBERNETES_SERVICE,
    ];
    let pki = Pki::create(&folder.join("pki"), &names)?;
    let kubeconfig = files::kubeconfig(folder, &pki, "admin")?;
    let kubectl = files::kubectl(folder, &kubeconfig)?;
    narrator.say("the control plane starts (etcd, kube-apiserver, kube-controller-manager, kube-scheduler)");
    let (plane, client) = ControlPlane::start(&options.kubernetes, folder, &pki, &kubeconfig).await?;
    narrator.say("the API server is ready");
    let (_cloud, url) = deployment.start_cloud()?;
    let (cloudwit, _) = deployment.start_cloudwit(&kubeconfig, &url, &DEMO_FLAGS)?;
    narrator.say("the simulated cloud and Cloudwit run");
    let cloud = Cloud::new(url)?;
    let mut actuator = Actuator::new(cloud.clone(), folder, &options.parts, &options.kubernetes, pki)?;
    let checks = Checks::new(client, cloud, narrator, Traffic::start(folder)?, options.nodes);
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
            if !cloudwit.runs() {
                break anyhow!("Cloudwit has ended by itself; see {}", cloudwit.log().display());
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
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
