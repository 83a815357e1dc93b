//! The simulated cloud as a program. Prints `PORT=<n>` and `READY` on standard output once it listens.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use cloudwit_sim_cloud::{DiskSettings, ManagedCluster, SimCloud, SimCloudOptions};

/// A simulated cloud over HTTP: machines, load balancers, routes, disks, and faults on demand.
#[derive(Debug, Parser)]
struct Args {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Bearer token of the API.
    #[arg(long, default_value = "sim-token", env = "SIM_CLOUD_TOKEN", hide_env_values = true)]
    token: String,
    /// Milliseconds that each request takes at least.
    #[arg(long, default_value_t = 0)]
    latency_ms: u64,
    /// Milliseconds from the creation of a load balancer until it is active.
    #[arg(long, default_value_t = 2000)]
    balancer_build_ms: u64,
    /// Milliseconds from the creation of a disk or snapshot until it can be used, and to attach or detach a disk.
    #[arg(long, default_value_t = 1000)]
    disk_ms: u64,
    /// Machines to begin with, named PREFIX-0 and so on.
    #[arg(long, default_value_t = 0)]
    machines: usize,
    /// Names of the machines to begin with.
    #[arg(long, default_value = "node")]
    machine_prefix: String,
    /// A cluster that the cloud says it manages, NAME=HOST:PORT. May be given again.
    #[arg(long = "cluster", value_name = "NAME=HOST:PORT", value_parser = cluster)]
    clusters: Vec<ManagedCluster>,
    /// Start of the random numbers that decide which requests an error rate hits.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn cluster(text: &str) -> Result<ManagedCluster, String> {
    let parts = text
        .split_once('=')
        .and_then(|(name, at)| Some((name, at.rsplit_once(':')?)));
    let (name, (host, port)) = parts.ok_or("give NAME=HOST:PORT")?;
    Ok(ManagedCluster {
        name: name.to_owned(),
        host: Some(host.trim_matches(['[', ']']).to_owned()),
        port: Some(port.parse().map_err(|_| format!("{port:?} is no port"))?),
    })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Args {
        listen,
        token,
        latency_ms,
        balancer_build_ms,
        disk_ms,
        machines,
        machine_prefix,
        clusters,
        seed,
    } = Args::parse();
    let cloud = SimCloud::start(SimCloudOptions {
        listen,
        token,
        latency: Duration::from_millis(latency_ms),
        balancer_build_time: Duration::from_millis(balancer_build_ms),
        seed,
    })
    .await?;
    cloud.set_disk_settings(DiskSettings {
        build_time: Duration::from_millis(disk_ms),
        attach_time: Duration::from_millis(disk_ms),
        ..DiskSettings::default()
    });
    cloud.set_clusters(clusters);
    cloud.add_numbered_machines(&machine_prefix, machines);
    println!("PORT={}\nREADY", cloud.address().port());
    eprintln!("simulated cloud: {}/", cloud.url());
    tokio::signal::ctrl_c().await?;
    Ok(())
}
