//! Many Nodes that have joined and wait, tainted, when Cloudwit starts: how long, with how many calls of the cloud and of the
//! API server, with how much CPU time and memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{Counters, Operation, OperationCount, SimCloud, SimCloudOptions};
use cloudwit_test_support::deployment::{Deployment, TOKEN};
use cloudwit_test_support::objects::is_uninitialised;
use cloudwit_test_support::{ApiServer, NodeBuilder};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, Client};

use crate::Row;

/// No wave takes that long; without it a lost Node would hang the benchmark.
const LIMIT: Duration = Duration::from_secs(120);

/// Nodes that are made at the same time; more do not make the API server faster.
const MAKERS: usize = 16;

/// Makes the Nodes, starts Cloudwit, waits for the last Node.
pub async fn measure(provider: &Path, nodes: u16) -> Result<Vec<Row>> {
    let server = ApiServer::start().await?;
    let client = server.client();
    let cloud = SimCloud::start(SimCloudOptions {
        token: TOKEN.into(),
        ..SimCloudOptions::default()
    })
    .await?;
    cloud.add_numbered_machines("wave", nodes.into());
    let created = stream::iter(0..nodes)
        .map(|number| create(&client, number))
        .buffer_unordered(MAKERS);
    created.try_collect::<Vec<Node>>().await.context("making the Nodes")?;
    let version = Api::<Node>::all(client.clone())
        .list_metadata(&Default::default())
        .await?
        .metadata
        .resource_version;

    let programs = std::env::current_exe().context("looking for our own program")?;
    let programs = programs.parent().context("our own program is in no folder")?;
    let deployment = Deployment::new(&xtask::workspace::target().join("bench"), programs, provider)?;
    let before = requests(&client).await?;
    let server_before = server.usage();
    cloud.reset_counters();
    let started = Instant::now();
    let (cloudwit, _) =
        deployment.start_cloudwit(server.kubeconfig(), &cloud.url(), &["--configure-cloud-routes=false"])?;
    let waited = tokio::time::timeout(LIMIT, until_initialised(&client, nodes, &version.unwrap_or_default())).await;
    let Ok(waited) = waited else {
        bail!(
            "not all Nodes within {LIMIT:?}; the end of the log:\n{}",
            cloudwit.log_end()
        )
    };
    waited?;
    let time = started.elapsed();
    let used = xtask::process::usage(cloudwit.pid()).context("Cloudwit has ended")?;
    let mut rows = vec![("from the start to the last Node".into(), seconds(time.as_secs_f64()))];
    rows.extend(calls_of_the_cloud(&cloud.counters()));
    rows.push(("CPU of Cloudwit".into(), seconds(used.cpu_seconds)));
    let mebibytes = used.peak_memory as f64 / f64::from(1 << 20);
    rows.push(("peak memory of Cloudwit".into(), format!("{mebibytes:.1} MiB")));
    if let Some((now, then)) = server.usage().zip(server_before) {
        rows.push((
            "CPU of the API server".into(),
            seconds(now.cpu_seconds - then.cpu_seconds),
        ));
    }
    rows.extend(requests(&client).await?.into_iter().filter_map(|(what, count)| {
        let new = count - before.get(&what).copied().unwrap_or_default();
        (new > 0).then(|| (format!("API requests: {what}"), new.to_string()))
    }));
    Ok(rows)
}

fn calls_of_the_cloud(counters: &Counters) -> Vec<Row> {
    let row = |(operation, count): (&Operation, &OperationCount)| {
        (format!("cloud calls: {operation:?}"), count.requests.to_string())
    };
    counters.operations.iter().map(row).collect()
}

fn seconds(value: f64) -> String {
    format!("{value:.2} s")
}

async fn create(client: &Client, number: u16) -> kube::Result<Node> {
    // The simulated cloud counts its addresses and ids; what Cloudwit looks for here is the name.
    NodeBuilder::new(&format!("wave-{number}")).create(client).await
}

/// Watches from `version` on until every Node is without its taint and has an address from the cloud.
async fn until_initialised(client: &Client, nodes: u16, version: &str) -> Result<()> {
    let api = Api::<Node>::all(client.clone());
    let mut waiting: BTreeSet<String> = (0..nodes).map(|number| format!("wave-{number}")).collect();
    let parameters = WatchParams::default().disable_bookmarks();
    let mut events = pin!(api.watch(&parameters, version).await.context("watching the Nodes")?);
    while let Some(event) = events.try_next().await.context("watching the Nodes")? {
        let node = match event {
            WatchEvent::Added(node) | WatchEvent::Modified(node) => node,
            WatchEvent::Deleted(node) => bail!("{:?} was deleted", node.metadata.name),
            WatchEvent::Error(error) => bail!("the watch broke: {}", error.message),
            WatchEvent::Bookmark(_) => continue,
        };
        let addresses = node.status.clone().unwrap_or_default().addresses.unwrap_or_default();
        if !is_uninitialised(&node) && addresses.iter().any(|address| address.type_ == "InternalIP") {
            waiting.remove(node.metadata.name.as_deref().unwrap_or_default());
        }
        if waiting.is_empty() {
            return Ok(());
        }
    }
    bail!("the watch ended while {} Nodes waited", waiting.len())
}

/// Requests that the API server has served for Nodes, Events and Services, by verb, from its metrics. The watch and the metrics
/// of this benchmark are not counted.
async fn requests(client: &Client) -> Result<BTreeMap<String, u64>> {
    let metrics = client
        .request_text(kube::core::Request::new("/metrics").list(&Default::default())?)
        .await?;
    Ok(count(&metrics))
}

fn count(metrics: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in metrics
        .lines()
        .filter_map(|line| line.strip_prefix("apiserver_request_total{"))
    {
        let Some((labels, value)) = line.rsplit_once("} ") else {
            continue;
        };
        let label = |name: &str| {
            labels
                .split(',')
                .find_map(|label| label.strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"'))
        };
        let (Some(verb), Some(resource)) = (label("verb"), label("resource")) else {
            continue;
        };
        if ["nodes", "events", "services", "leases"].contains(&resource) && !["WATCH", "CONNECT"].contains(&verb) {
            let subresource = label("subresource")
                .filter(|name| !name.is_empty())
                .map(|name| format!("/{name}"));
            let what = format!("{verb} {resource}{}", subresource.unwrap_or_default());
            *counts.entry(what).or_default() += value.parse::<f64>().map_or(0, |value| value as u64);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let metrics = "# TYPE apiserver_request_total counter\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"status\",verb=\"PATCH\"} 3\n\
            apiserver_request_total{code=\"409\",resource=\"nodes\",subresource=\"status\",verb=\"PATCH\"} 2\n\
            apiserver_request_total{code=\"200\",resource=\"nodes\",subresource=\"\",verb=\"WATCH\"} 9\n\
            apiserver_request_total{code=\"200\",resource=\"pods\",subresource=\"\",verb=\"LIST\"} 9\n";
        assert_eq!(count(metrics), BTreeMap::from([("PATCH nodes/status".to_owned(), 5)]));
    }
}
