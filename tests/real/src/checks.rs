//! What is seen to work, one line each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;
use xtask::node_parts::IMAGE;

use crate::cloud::Cloud;
use crate::hub::Narrator;
use crate::network;

/// How long a condition may take to hold, on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

/// How often it is looked at, and after how long it is said that it is still waited for.
const LOOK: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// The port that Pods serve.
const PORT: u16 = 8080;

/// The checks.
pub struct Checks {
    client: Client,
    cloud: Cloud,
    narrator: Narrator,
    nodes: u8,
}

impl Checks {
    /// For so many machines.
    pub fn new(client: Client, cloud: Cloud, narrator: Narrator, nodes: u8) -> Self {
        Self {
            client,
            cloud,
            narrator,
            nodes,
        }
    }

    /// All of them in order.
    pub async fn run(&self) -> Result<()> {
        let names: Vec<String> = (1..=self.nodes).map(|number| format!("machine-{number}")).collect();
        let started = Instant::now();
        for (name, number) in names.iter().zip(1..) {
            self.cloud.create(name, &network::address(number)).await?;
            self.narrator.say(&format!("the cloud has a new machine, {name}"));
        }
        for name in &names {
            self.node_is_ready(name, started).await?;
        }
        for (name, node) in ["one", "two"].into_iter().zip([names.first(), names.last()]) {
            self.pod(name, node.context("there is no machine")?).await?;
        }
        for name in ["one", "two"] {
            self.pod_is_ready(name).await?;
        }
        self.pods_reach_each_other().await
    }

    /// kubelet has registered it, Cloudwit has initialised it, and kubelet reports that it is ready.
    async fn node_is_ready(&self, name: &str, started: Instant) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let mut registered = false;
        let node = self
            .until(&format!("Node {name} is initialised and Ready"), async || {
                let Some(node) = nodes.get_opt(name).await? else {
                    return Ok(None);
                };
                if !registered {
                    registered = true;
                    let waits = taints(&node).join(", ");
                    self.narrator
                        .say(&format!("kubelet of {name} has registered its Node, tainted: {waits}"));
                }
                let initialised = provider_id(&node).is_some() && taints(&node).is_empty();
                Ok((initialised && condition(&node, "Ready")).then_some(node))
            })
            .await?;
        self.narrator.say(&format!(
            "Node {name} is initialised and Ready {:.1} s after its machine was asked for: {}",
            started.elapsed().as_secs_f64(),
            provider_id(&node).unwrap_or_default()
        ));
        Ok(())
    }

    /// A Pod on that Node that serves a file with its name.
    async fn pod(&self, name: &str, node: &str) -> Result<()> {
        let script =
            format!("mkdir -p /tmp/www; echo {name} > /tmp/www/index.html; exec httpd -f -p {PORT} -h /tmp/www");
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": name },
            "spec": {
                // Placed by the scheduler, which looks at taints.
                "nodeSelector": { "kubernetes.io/hostname": node },
                "terminationGracePeriodSeconds": 1,
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": "web",
                    "image": IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", script],
                    "readinessProbe": { "httpGet": { "path": "/index.html", "port": PORT }, "periodSeconds": 1 },
                }],
            },
        }))?;
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        self.until(&format!("Pod {name} is accepted"), async || {
            // Refused until the namespace has its ServiceAccount.
            Ok(pods.create(&PostParams::default(), &pod).await.ok())
        })
        .await?;
        Ok(())
    }

    async fn pod_is_ready(&self, name: &str) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pod = self
            .until(&format!("Pod {name} is Ready"), async || {
                let pod = pods.get(name).await?;
                let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
                let ready = conditions
                    .clone()
                    .any(|one| one.type_ == "Ready" && one.status == "True");
                Ok(ready.then_some(pod))
            })
            .await?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        self.narrator.say(&format!(
            "Pod {name} is Ready on {} with address {}",
            node.unwrap_or_default(),
            address(&pod)?
        ));
        Ok(())
    }

    /// The hub asks both, and sees their answers: packets take the routes that Cloudwit has made in the cloud.
    async fn pods_reach_each_other(&self) -> Result<()> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(2))
            .build()
            .context("making an HTTP client")?;
        for name in ["one", "two"] {
            let url = format!("http://{}:{PORT}/index.html", address(&pods.get(name).await?)?);
            let text = self
                .until(&format!("Pod {name} answers at {url}"), async || {
                    let Ok(answer) = http.get(&url).send().await else {
                        return Ok(None);
                    };
                    Ok(answer.text().await.ok())
                })
                .await?;
            if text.trim() != name {
                bail!("{url} answered {text:?}, not {name:?}: packets go to another Pod");
            }
            self.narrator
                .say(&format!("{url} answers {:?}, by the cloud's route", text.trim()));
        }
        Ok(())
    }

    /// Waits until the look finds something, and says from time to time that it does.
    async fn until<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Result<Option<T>>) -> Result<T> {
        let started = Instant::now();
        let mut said = started;
        loop {
            if let Some(found) = look().await.with_context(|| format!("waiting until {what}"))? {
                return Ok(found);
            }
            if started.elapsed() > LIMIT {
                bail!(
                    "waited {} s in vain until {what}; logs are in target/sandbox",
                    LIMIT.as_secs()
                );
            }
            if said.elapsed() > LOOK.1 {
                said = Instant::now();
                self.narrator.say(&format!("  waiting until {what}"));
            }
            tokio::time::sleep(LOOK.0).await;
        }
    }
}

fn address(pod: &Pod) -> Result<String> {
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
    address.with_context(|| format!("Pod {} has no address", pod.name_any()))
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.map(|taint| taint.key.as_str()).collect()
}

fn condition(node: &Node, kind: &str) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.clone().any(|one| one.type_ == kind && one.status == "True")
}
