//! What `cargo xtask image` runs: starts a binary of Cloudwit in a root that has nothing in it but the files its Deployment mounts, on a real
//! API server and the simulated cloud, and measures start, memory and the size of its image.
//!
//! The root is emptier than that of a container: no `/dev`, no `/etc/resolv.conf`; only `/proc`, through which the process finds its own binary to compile
//! components in a child process.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use cloudwit_bench::image_layer;
use cloudwit_sim_cloud::{SimCloud, SimCloudOptions};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::TOKEN;
use cloudwit_test_support::{ApiServer, NodeBuilder, within};
use k8s_openapi::api::core::v1::Node;
use kube::Api;

/// How long a start may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Until an idle process has given back what its start needed.
const REST: Duration = Duration::from_secs(10);

/// Replaces itself by a command (`$@`) in a root (`$0`) with the system's `/proc`, in a mount namespace of its own.
const IN_ROOT: &str = r#"mount --rbind /proc "$0/proc" && exec chroot "$0" "$@""#;

#[derive(Debug, Parser)]
struct Args {
    /// The static binary.
    binary: PathBuf,
    /// The component of the provider `sim`.
    provider: PathBuf,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { binary, provider } = Args::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        bail!("another TLS crypto provider is installed already");
    }
    let server = ApiServer::start().await?;
    let options = SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.context("starting the cloud")?;
    cloud.add_numbered_machines("node", 3);
    let nodes: Api<Node> = Api::all(server.client());
    let folder = tempfile::tempdir().context("making a folder")?;
    let root = Root::new(folder.path(), &binary, &provider, &server, &cloud.url())?;

    let (cold, process) = root.first_reconcile("node-1", &nodes, &server).await?;
    drop(process);
    let (warm, process) = root.first_reconcile("node-2", &nodes, &server).await?;
    tokio::time::sleep(REST).await;
    let memory = resident(process.pid())?;
    let layer = image_layer::of(&binary)?;
    println!(
        "image with nothing else: {} bytes, packed {}",
        layer.unpacked, layer.packed
    );
    println!(
        "start to the first Node initialised, provider compiled: {} ms",
        cold.as_millis()
    );
    println!(
        "start to the first Node initialised, compile cache warm: {} ms",
        warm.as_millis()
    );
    println!(
        "idle, {} s later: {:.1} MiB resident",
        REST.as_secs(),
        memory as f64 / 1024.0
    );
    Ok(())
}

/// A root folder.
struct Root {
    folder: PathBuf,
    log: PathBuf,
}

impl Root {
    fn new(folder: &Path, binary: &Path, provider: &Path, server: &ApiServer, cloud: &str) -> Result<Self> {
        let root = folder.join("root");
        for inside in [
            "etc/cloudwit/config",
            "etc/cloudwit/providers",
            "etc/cloudwit/secrets",
            "var/cache/cloudwit",
            "proc",
        ] {
            fs::create_dir_all(root.join(inside)).with_context(|| format!("making {inside}"))?;
        }
        let copies = [
            (binary, "cloudwit"),
            (provider, "etc/cloudwit/providers/sim.wasm"),
            (server.kubeconfig(), "etc/cloudwit/kubeconfig"),
        ];
        for (from, to) in copies {
            fs::copy(from, root.join(to)).with_context(|| format!("copying {}", from.display()))?;
        }
        fs::write(root.join("etc/cloudwit/secrets/token"), TOKEN).context("writing the token")?;
        let file = root.join("etc/cloudwit/config/cloudwit.yaml");
        fs::write(file, configuration(cloud)).context("writing the configuration")?;
        Ok(Self {
            folder: root,
            log: folder.join("log"),
        })
    }

    /// A Node waits; the process starts; the time until the Node is initialised.
    async fn first_reconcile(&self, name: &str, nodes: &Api<Node>, server: &ApiServer) -> Result<(Duration, Child)> {
        NodeBuilder::new(name).create(&server.client()).await?;
        let arguments = [
            "--map-root-user",
            "--mount",
            "/bin/sh",
            "-c",
            IN_ROOT,
            &self.folder.display().to_string(),
            "/cloudwit",
            "--config=/etc/cloudwit/config/cloudwit.yaml",
            "--provider-dir=/etc/cloudwit/providers",
            "--cache-dir=/var/cache/cloudwit",
            "--kubeconfig=/etc/cloudwit/kubeconfig",
            "--configure-cloud-routes=false",
            "--leader-elect=false",
            "--secure-port=0",
            "--admin-address=off",
        ]
        .map(str::to_owned);
        let began = Instant::now();
        let process = Child::start(Path::new("/usr/bin/unshare"), &arguments, &self.log)?;
        let initialised = within(LIMIT, || async {
            nodes.get(name).await.is_ok_and(|node| !is_uninitialised(&node))
        });
        if let Err(last) = initialised.await {
            bail!(
                "{name} was not initialised ({last}); the end of the log:\n{}",
                process.log_end()
            );
        }
        Ok((began.elapsed(), process))
    }
}

fn configuration(cloud: &str) -> String {
    let port = cloud.rsplit(':').next().unwrap_or_default();
    format!(
        "apiVersion: cloudwit.dev/v1alpha1\nkind: CloudwitConfiguration\nproviders:\n  - name: sim\n    component: sim.wasm\n    \
         cloudConfig: '{{\"endpoint\": \"{cloud}\"}}'\n    grants:\n      http:\n        \
         - {{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}\n      secrets:\n        \
         - {{name: token, file: /etc/cloudwit/secrets/token, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n"
    )
}

/// Resident memory in KiB.
fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process is gone")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.context("the system does not tell the memory of a process")
}
