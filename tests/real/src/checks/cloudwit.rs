//! Cloudwit itself: how it starts and is restricted as Pods, and that swaps and failures of it cost no request.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};

use super::{Checks, UNINITIALIZED};
use crate::checks::workload;
use crate::cloud::client::now;
use crate::manager::Manager;
use crate::manager::pods::{Pods, is_ready};
use crate::process::with_command_line;

/// What `cloudwit install` makes unless it is told otherwise.
const REPLICAS: usize = 2;

/// A custom section of a component, which changes its bytes and nothing that it does.
const SECTION: [u8; 10] = [0, 8, 7, b's', b'a', b'n', b'd', b'b', b'o', b'x'];

/// How Cloudwit's log names a swap.
const SWAPPED: &str = "swapped";

/// How long the cloud's API is away.
const AWAY: Duration = Duration::from_secs(10);

/// The memory limit of a container with one provider and default limits, in bytes: `docs/guide/install.md`, "Memory".
const DEFAULT_LIMIT: u64 = 369 << 20;

/// What `/proc` says of a process that is restricted as the manifests say.
const RESTRICTED: [(&str, &str); 4] = [
    ("Uid:", "65532"),
    ("CapEff:", "0000000000000000"),
    ("NoNewPrivs:", "1"),
    // A filter.
    ("Seccomp:", "2"),
];

impl Checks<'_> {
    /// Cloudwit, itself a Pod, starts on Nodes that are not initialised, and an ordinary Pod waits until they are.
    pub(super) async fn cloudwit_starts_on_tainted_nodes(&self, pods: &Pods, names: &[String]) -> Result<()> {
        let ordinary: Api<Pod> = Api::default_namespaced(self.client.clone());
        self.narrator
            .until("an ordinary Pod is accepted", async || {
                // Refused until the namespace has its ServiceAccount.
                Ok(ordinary
                    .create(&PostParams::default(), &workload::ordinary()?)
                    .await
                    .ok())
            })
            .await?;
        for name in names {
            let look = async || Ok(self.nodes.get(name));
            let what = format!("kubelet of {name} has registered its Node");
            let seen = self.narrator.until(&what, look).await?;
            if !seen.first_taints.iter().any(|taint| taint == UNINITIALIZED) {
                bail!("Node {name} was registered with the taints {:?}", seen.first_taints);
            }
        }
        self.narrator.say("both Nodes are registered with the taint");
        let why = self
            .narrator
            .until("the ordinary Pod waits for a Node without the taint", async || {
                let status = ordinary.get(workload::ORDINARY).await?.status.unwrap_or_default();
                let mut conditions = status.conditions.unwrap_or_default().into_iter();
                let scheduled = conditions.find(|one| one.type_ == "PodScheduled");
                let why = scheduled
                    .filter(|one| one.status == "False")
                    .and_then(|one| one.message);
                Ok(why.filter(|why| why.contains("untolerated taint")))
            })
            .await?;
        self.narrator.say(&format!("an ordinary Pod is not scheduled: {why}"));
        for name in names {
            pods.allow(name).await?;
        }
        self.narrator.say("both Nodes are labelled as those of a control plane");
        for pod in self.all_ready(pods).await? {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            self.narrator.say(&format!(
                "Pod {} is Ready on {}",
                pod.name_any(),
                node.unwrap_or_default()
            ));
        }
        let runs = async || Ok(Some(ordinary.get(workload::ORDINARY).await?).filter(is_ready));
        self.narrator.until("the ordinary Pod runs", runs).await?;
        self.narrator
            .say("the ordinary Pod runs, since Cloudwit has initialised its Node");
        Ok(())
    }

    /// As the kernel says of each process, whichever way the manifests asked for it.
    pub(super) async fn cloudwit_is_restricted(&self, pods: &Pods) -> Result<()> {
        let mut found = Vec::new();
        for pid in with_command_line("/usr/local/bin/cloudwit\0--config") {
            let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let status = read("status");
            let value = |key: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(key));
                line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default()
            };
            for (key, wanted) in RESTRICTED {
                if value(key) != wanted {
                    bail!("process {pid} of Cloudwit has {key} {}, not {wanted}", value(key));
                }
            }
            let mounts = read("mountinfo");
            let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/"));
            if !root.is_some_and(|root| root.split(' ').nth(5).unwrap_or_default().starts_with("ro")) {
                bail!("process {pid} of Cloudwit can write to its root: {root:?}");
            }
            let group = memory_group(&read("cgroup")).with_context(|| format!("process {pid} has no memory group"))?;
            let bytes = |file: &str| -> Result<u64> {
                let file = group.join(file);
                let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
                text.trim()
                    .parse()
                    .with_context(|| format!("{}: {text:?}", file.display()))
            };
            let (most, limit) = (bytes("memory.max_usage_in_bytes")?, bytes("memory.limit_in_bytes")?);
            if limit != DEFAULT_LIMIT {
                bail!("the container of process {pid} may use {limit} bytes, not {DEFAULT_LIMIT}");
            }
            let kibibytes: u64 = value("VmHWM:").parse().unwrap_or_default();
            found.push(format!(
                "{} MiB ({} MiB with its compiler)",
                kibibytes / 1024,
                most >> 20
            ));
        }
        let expected = pods.list().await?.len();
        if found.len() != expected {
            bail!("{} processes of Cloudwit run, not {expected}", found.len());
        }
        self.narrator.say(&format!(
            "{expected} replicas of Cloudwit run as user 65532 with a seccomp filter, without capabilities, on a read-only root, within {} MiB; most memory {}",
            DEFAULT_LIMIT >> 20,
            found.join(" and ")
        ));
        Ok(())
    }

    pub(super) async fn all_ready(&self, pods: &Pods) -> Result<Vec<Pod>> {
        self.narrator
            .until("all Pods of Cloudwit are Ready", async || {
                let all = pods.list().await?;
                Ok((all.len() == REPLICAS && all.iter().all(is_ready)).then_some(all))
            })
            .await
    }

    /// The component is replaced by one with other bytes.
    pub(super) async fn a_component_is_replaced_under_traffic(&self) -> Result<()> {
        let (from, started) = (now(), Instant::now());
        let other = [self.provider.as_slice(), &SECTION].concat();
        self.manager.replace_component(&other).await?;
        let taken = self
            .narrator
            .until("all replicas run the new component", async || {
                let logs = self.manager.logs().await?;
                let all = logs.iter().all(|log| log.contains(SWAPPED));
                Ok((all && !logs.is_empty()).then_some(logs.len()))
            })
            .await?;
        self.narrator.say(&format!(
            "component replaced: {taken} of {taken} replicas run the new one {:.1} s after it was put in place",
            started.elapsed().as_secs_f64()
        ));
        self.nothing_lost("while a component was replaced", from).await
    }

    /// Every request to the cloud's API fails for a while. No Node and no load balancer changes.
    pub(super) async fn the_clouds_api_is_away_under_traffic(&self) -> Result<()> {
        let from = now();
        self.cloud.fail(true).await?;
        tokio::time::sleep(AWAY).await;
        self.cloud.fail(false).await?;
        let when = format!("while the cloud's API was away for {} s", AWAY.as_secs());
        self.nothing_lost(&when, from).await
    }

    /// The process or the leader is killed; a Service that is made at once gets its address from the next.
    pub(super) async fn cloudwit_is_killed_under_traffic(&self) -> Result<()> {
        let (from, started) = (now(), Instant::now());
        let what = self.manager.kill().await?;
        self.narrator.say(&format!("Cloudwit: {what}"));
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        let name = "after-the-kill";
        services
            .create(&PostParams::default(), &workload::service(name, "Cluster")?)
            .await?;
        let look = async || Ok(address(&services.get(name).await?));
        let address = self.narrator.until("a new Service has an address", look).await?;
        self.narrator.say(&format!(
            "Cloudwit reconciles again {:.1} s later: a new Service has the address {address}",
            started.elapsed().as_secs_f64()
        ));
        services.delete(name, &DeleteParams::default()).await?;
        let look = async || Ok(services.get_opt(name).await?.is_none().then_some(()));
        self.narrator.until("that Service is deleted", look).await?;
        self.nothing_lost("while Cloudwit was killed", from).await?;
        match self.manager {
            Manager::Pods { pods, .. } => self.all_ready(pods).await.map(drop),
            Manager::Process(_) => Ok(()),
        }
    }
}

/// The control group of version 1 that limits a process's memory, from what `/proc/PID/cgroup` says.
fn memory_group(cgroup: &str) -> Option<PathBuf> {
    let line = cgroup.lines().find(|line| line.contains(":memory:"))?;
    let path = line.splitn(3, ':').nth(2)?.strip_prefix('/')?;
    Some(Path::new("/sys/fs/cgroup/memory").join(path))
}
