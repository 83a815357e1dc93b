//! One size of `growth`: makes the Nodes, lets Cloudwit initialise them, and starts it again in the cluster that came of it.

use std::collections::HashSet;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cloudwit_sim_cloud::{Operation, SimCloud, SimCloudOptions};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::{Deployment, TOKEN};
use cloudwit_test_support::{ApiServer, NodeBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::oneshot;
use xtask::run::process::{Usage, usage};
use xtask::run::progress::Progress;

use crate::measure::observer::is_initialised;
use crate::measure::refreshes::calls_for;
use crate::scene::contestant::Contestants;
use crate::scene::run_folder::RunFolder;

/// Nodes that are made at the same time.
const MAKERS: usize = 32;

/// No size takes that long; without it a lost Node would hang the benchmark.
const LIMIT: Duration = Duration::from_secs(900);

/// Until an idle process has given back what its work needed.
const REST: Duration = Duration::from_secs(10);

/// Without a call to the cloud for that long, a refresh is over.
const QUIET: Duration = Duration::from_secs(3);

/// From one look at the cloud's counters to the next.
const LOOK: Duration = Duration::from_millis(50);

/// Between two refreshes after the restart.
const REFRESH: &str = "--node-status-update-frequency=20s";

/// What came of one size. Times in seconds, memory in bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grown {
    /// The size.
    pub nodes: usize,
    /// From the start of Cloudwit to the last Node.
    pub time: f64,
    /// CPU time of Cloudwit for it.
    pub cpu: f64,
    /// CPU time of API server and etcd for it, serving this benchmark's one watch included.
    pub server_cpu: f64,
    /// Largest resident memory.
    pub peak_memory: f64,
    /// Resident memory after a rest.
    pub settled_memory: f64,
    /// POST, PUT, PATCH and server-side apply on Nodes and Events.
    pub api_writes: f64,
    /// Requests to the cloud.
    pub cloud_calls: f64,
    /// From the start to the last call of the first refresh, when every Node of the cluster is initialised already.
    pub restart_time: f64,
    /// Largest resident memory in that.
    pub restart_peak_memory: f64,
    /// Resident memory after it.
    pub restart_memory: f64,
    /// Requests to the cloud in one refresh of all addresses.
    pub refresh_calls: f64,
    /// CPU time of one.
    pub refresh_cpu: f64,
}

/// Measures one size.
///
/// # Errors
///
/// When the Nodes cannot be made, or are not all initialised in time.
pub async fn grow(contestants: &Contestants, nodes: usize) -> Result<Grown> {
    let server = ApiServer::start().await?;
    let options = SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    };
    let cloud = SimCloud::start(options).await.context("starting the cloud")?;
    cloud.add_numbered_machines("node", nodes);
    make_nodes(&server.client(), nodes).await?;
    let folder = RunFolder::new("growth")?;
    let (binary, provider) = (&contestants.binary, &contestants.provider);
    let deployment = Deployment::new(&folder.path().join("run"), binary.folder(), provider)?;
    let size = Size {
        nodes,
        server,
        cloud,
        deployment,
    };
    let mut grown = Grown {
        nodes,
        ..Grown::default()
    };
    size.initialise(&mut grown)
        .await
        .with_context(|| format!("{nodes} Nodes"))?;
    size.restart(&mut grown)
        .await
        .with_context(|| format!("{nodes} Nodes, restart"))?;
    drop(size);
    folder.done()?;
    Ok(grown)
}

async fn make_nodes(client: &Client, nodes: usize) -> Result<()> {
    // Names only: Node and machine find each other by it.
    let made = stream::iter(0..nodes).map(|number| async move {
        let node = NodeBuilder::new(&format!("node-{number}"));
        node.create(client).await.map(drop)
    });
    let mut made = made.buffer_unordered(MAKERS);
    let (mut progress, mut count) = (Progress::start("Nodes are made"), 0);
    while made.try_next().await.context("making the Nodes")?.is_some() {
        count += 1;
        progress.show(&format!("{count} of {nodes}"));
    }
    progress.finish("done");
    Ok(())
}

struct Size {
    nodes: usize,
    server: ApiServer,
    cloud: SimCloud,
    deployment: Deployment,
}

impl Size {
    fn start(&self, flags: &[&str]) -> Result<Child> {
        let mut all = vec!["--configure-cloud-routes=false"];
        all.extend(flags);
        let (server, cloud) = (self.server.kubeconfig(), self.cloud.url());
        Ok(self.deployment.start_cloudwit(server, &cloud, &all)?.0)
    }

    async fn initialise(&self, grown: &mut Grown) -> Result<()> {
        let (listed, all_listed) = oneshot::channel();
        let waiting = tokio::spawn(until_initialised(self.server.client(), self.nodes, listed));
        all_listed.await.context("the watch ended before it listed the Nodes")?;
        let writes = writes(&self.server.client()).await?;
        let server = self.server.usage();
        self.cloud.reset_counters();
        let begin = Instant::now();
        let cloudwit = self.start(&[])?;
        let Ok(waited) = tokio::time::timeout(LIMIT, waiting).await else {
            bail!("not all within {LIMIT:?}; the end of the log:\n{}", cloudwit.log_end());
        };
        waited.context("waiting for the Nodes")??;
        grown.time = begin.elapsed().as_secs_f64();
        let used = used(&cloudwit)?;
        grown.cpu = used.cpu_seconds;
        if let Some((now, then)) = self.server.usage().zip(server) {
            grown.server_cpu = now.cpu_seconds - then.cpu_seconds;
        }
        grown.cloud_calls = self.cloud.counters().total() as f64;
        tokio::time::sleep(REST).await;
        // Events come a little later than what they tell.
        grown.api_writes = self::writes(&self.server.client()).await? - writes;
        let used = self::used(&cloudwit)?;
        grown.peak_memory = used.peak_memory as f64;
        grown.settled_memory = used.memory as f64;
        end(cloudwit).await
    }

    async fn restart(&self, grown: &mut Grown) -> Result<()> {
        self.cloud.reset_counters();
        let begin = Instant::now();
        let cloudwit = self.start(&[REFRESH])?;
        let last = self.refresh(&cloudwit).await?;
        grown.restart_time = (last - begin).as_secs_f64();
        let (before, calls) = (used(&cloudwit)?, self.cloud.counters().total());
        grown.restart_peak_memory = before.peak_memory as f64;
        grown.restart_memory = before.memory as f64;
        self.refresh(&cloudwit).await?;
        grown.refresh_cpu = used(&cloudwit)?.cpu_seconds - before.cpu_seconds;
        grown.refresh_calls = (self.cloud.counters().total() - calls) as f64;
        end(cloudwit).await
    }

    /// Waits until the cloud is asked about all machines, and then is not asked for a while; when the last call came. A long list of Nodes takes
    /// its time after the provider's first call, so quiet alone is not the end.
    async fn refresh(&self, cloudwit: &Child) -> Result<Instant> {
        let lookups = || self.cloud.counters().requests(Operation::ListInstances);
        let (before, all) = (lookups(), calls_for(self.nodes));
        let (begin, mut seen, mut last) = (Instant::now(), before, Instant::now());
        while seen < before + all || last.elapsed() < QUIET {
            ensure!(
                begin.elapsed() < LIMIT,
                "no refresh within {LIMIT:?}:\n{}",
                cloudwit.log_end()
            );
            let now = lookups();
            if now != seen {
                (seen, last) = (now, Instant::now());
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(last)
    }
}

fn used(cloudwit: &Child) -> Result<Usage> {
    usage(cloudwit.pid()).with_context(|| format!("Cloudwit has ended:\n{}", cloudwit.log_end()))
}

async fn end(mut cloudwit: Child) -> Result<()> {
    cloudwit.signal("TERM")?;
    let begin = Instant::now();
    while cloudwit.ended()?.is_none() {
        ensure!(
            begin.elapsed() < LIMIT,
            "Cloudwit does not end:\n{}",
            cloudwit.log_end()
        );
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Watches until every Node is [initialised](is_initialised); tells `listed` once it knows all that are there. A watch that
/// breaks is taken up again.
async fn until_initialised(client: Client, nodes: usize, listed: oneshot::Sender<()>) -> Result<()> {
    let (mut done, mut listed) = (HashSet::new(), Some(listed));
    let mut progress = Progress::start("Nodes are initialised");
    let mut events = pin!(watcher(Api::<Node>::all(client), watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::InitApply(node) | Event::Apply(node)) if is_initialised(&node) => {
                done.insert(node.name_any());
            }
            Ok(Event::InitDone) => {
                // Nobody listens any more when the measurement was given up.
                let _ = listed.take().map(|listed| listed.send(()));
            }
            Ok(Event::Delete(node)) => bail!("{} was deleted", node.name_any()),
            Ok(_) => {}
            // It lists anew by itself; the pause keeps it from doing so in a loop.
            Err(_) => tokio::time::sleep(LOOK).await,
        }
        if done.len() == nodes {
            progress.finish("done");
            return Ok(());
        }
        progress.show(&format!("{} of {nodes}", done.len()));
    }
    bail!("the watch ended with {} Nodes done", done.len())
}

/// Writes of Nodes and Events that the API server has served, from its metrics.
async fn writes(client: &Client) -> Result<f64> {
    let request = kube::core::Request::new("/metrics").list(&Default::default())?;
    Ok(count_writes(&client.request_text(request).await?))
}

fn count_writes(metrics: &str) -> f64 {
    let lines = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("apiserver_request_total{"));
    let counted = lines.filter_map(|line| {
        let (labels, value) = line.rsplit_once("} ")?;
        let is = |name: &str, values: &[&str]| {
            values
                .iter()
                .any(|value| labels.contains(&format!("{name}=\"{value}\"")))
        };
        let written = is("verb", &["POST", "PUT", "PATCH", "APPLY"]) && is("resource", &["nodes", "events"]);
        written.then(|| value.parse::<f64>().ok())?
    });
    counted.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_nodes_and_events_are_counted_and_nothing_else() {
        let metrics = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"status\",verb=\"PATCH\"} 3\n\
            apiserver_request_total{code=\"409\",resource=\"nodes\",subresource=\"\",verb=\"APPLY\"} 2\n\
            apiserver_request_total{code=\"201\",resource=\"events\",subresource=\"\",verb=\"POST\"} 4\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"\",verb=\"LIST\"} 9\n\
            apiserver_request_total{code=\"200\",resource=\"leases\",subresource=\"\",verb=\"PUT\"} 9\n";
        assert_eq!(count_writes(metrics), 9.0);
    }
}
