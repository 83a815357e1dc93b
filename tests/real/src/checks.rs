//! What is seen to work, one line each.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Client;
use kube::api::{Api, ListParams, PostParams};

use crate::client::now;
use crate::cloud::Cloud;
use crate::network;
use crate::nodes::{Nodes, Seen};
use crate::traffic::{Summary, Traffic};
use crate::waiting::Narrator;
use crate::workload::{self, LABEL, PATH, SERVICE_PORT};

/// The two load balancers, by the policy of their Services, which are also the names of their streams of requests.
const POLICIES: [(&str, &str); 2] = [("web", "Cluster"), ("web-local", "Local")];

/// So many requests in a row have to be answered after a failure: two seconds of them.
const STEADY: usize = 40;

/// The taint of a Node that no controller of the cloud has initialised.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The taint of a Node whose machine is switched off.
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The checks.
pub struct Checks {
    client: Client,
    cloud: Cloud,
    narrator: Narrator,
    nodes: Nodes,
    traffic: Traffic,
    machines: u8,
}

impl Checks {
    /// For so many machines at first.
    pub fn new(client: Client, cloud: Cloud, narrator: Narrator, traffic: Traffic, machines: u8) -> Self {
        Self {
            nodes: Nodes::watch(client.clone()),
            client,
            cloud,
            narrator,
            traffic,
            machines,
        }
    }

    /// All of them in order.
    pub async fn run(&self) -> Result<()> {
        let started = Instant::now();
        let names: Vec<String> = (1..=self.machines).map(name).collect();
        for (name, number) in names.iter().zip(1..) {
            self.cloud.create(name, &network::address(number)).await?;
            self.narrator.say(&format!("the cloud has a new machine, {name}"));
        }
        for name in &names {
            self.node_joins(name, started).await?;
        }
        self.pods_reach_each_other(&names).await?;
        self.load_balancers_answer(&names).await?;
        self.a_machine_joins_under_traffic().await?;
        self.a_machine_dies_under_traffic(&names[0]).await?;
        self.a_machine_is_switched_off_and_on(&names[1]).await
    }

    /// kubelet has registered it with the taint, Cloudwit has initialised it, and kubelet reports that it is ready.
    async fn node_joins(&self, name: &str, asked: Instant) -> Result<()> {
        let what = format!("Node {name} is initialised and Ready");
        let (seen, joined) = self
            .narrator
            .until(&what, async || {
                let seen = self.nodes.get(name);
                Ok(seen.and_then(|seen| Some((seen.clone(), seen.joined?))))
            })
            .await?;
        if !seen.first_taints.iter().any(|taint| taint == UNINITIALIZED) {
            bail!(
                "Node {name} was registered without the taint {UNINITIALIZED}, with {:?}",
                seen.first_taints
            );
        }
        self.narrator.say(&format!(
            "Node {name} was registered with the taint {UNINITIALIZED}; it is initialised and Ready {:.1} s after its machine was asked for: {}",
            joined.duration_since(asked).as_secs_f64(),
            seen.provider_id.unwrap_or_default()
        ));
        Ok(())
    }

    /// A Pod asks one on another machine: packets take the routes that Cloudwit has made in the cloud, and no address is changed on the way.
    async fn pods_reach_each_other(&self, names: &[String]) -> Result<()> {
        let sets: Api<DaemonSet> = Api::default_namespaced(self.client.clone());
        sets.create(&PostParams::default(), &workload::web()?).await?;
        for name in names {
            self.web_runs(name).await?;
        }
        let (Some(from), Some(to)) = (names.first(), names.last()) else {
            bail!("there is no machine");
        };
        let target = self.web_runs(to).await?;
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let pod = workload::asker(from, &target)?;
        pods.create(&PostParams::default(), &pod).await?;
        let (said, own) = self
            .narrator
            .until("the Pod that asks has ended", async || {
                let status = pods.get("asker").await?.status.unwrap_or_default();
                let states = status.container_statuses.unwrap_or_default();
                let ended = states.into_iter().find_map(|one| one.state?.terminated);
                Ok(ended.map(|ended| (ended.message.unwrap_or_default(), status.pod_ip.unwrap_or_default())))
            })
            .await?;
        let words: Vec<&str> = said.split_whitespace().collect();
        if words.get(1) != Some(&to.as_str()) || !words.get(2).is_some_and(|seen| seen.contains(&own)) {
            bail!(
                "a Pod with address {own} on {from} asked {target} and was answered {said:?}; expected {to} and {own}"
            );
        }
        self.narrator.say(&format!(
            "a Pod on {from} ({own}) asks the one on {to} ({target}) by the cloud's route, which sees that address"
        ));
        Ok(())
    }

    /// The address of the Pod on that machine, once it is ready.
    async fn web_runs(&self, machine: &str) -> Result<String> {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let list = ListParams::default().labels(LABEL);
        self.narrator
            .until(&format!("a Pod runs on {machine}"), async || {
                let all = pods.list(&list).await?;
                let here = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(machine);
                let mut here = all.items.into_iter().filter(here);
                Ok(here.find_map(|pod| {
                    let status = pod.status?;
                    let ready = status
                        .conditions?
                        .iter()
                        .any(|one| one.type_ == "Ready" && one.status == "True");
                    status.pod_ip.filter(|_| ready)
                }))
            })
            .await
    }

    /// A client outside of the cloud asks the addresses of both Services.
    async fn load_balancers_answer(&self, names: &[String]) -> Result<()> {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        for (name, policy) in POLICIES {
            let service = workload::service(name, policy)?;
            services.create(&PostParams::default(), &service).await?;
        }
        for (name, policy) in POLICIES {
            let address = self
                .narrator
                .until(&format!("Service {name} has an address"), async || {
                    Ok(ingress(&services.get(name).await?))
                })
                .await?;
            let started = Instant::now();
            let from = now();
            self.traffic.send(name, &format!("{address}:{SERVICE_PORT}"), PATH)?;
            for machine in names {
                self.answers(name, machine, from).await?;
            }
            let seen = self.traffic.since(name, now() - 1000);
            let client = match policy {
                "Local" if seen.clients.iter().any(|client| client != network::CLIENT) => {
                    bail!(
                        "Service {name}: Pods saw {:?} instead of {}",
                        seen.clients,
                        network::CLIENT
                    )
                }
                "Local" => format!("Pods see the client's own address, {}", network::CLIENT),
                _ => format!("Pods see {}", join(&seen.clients)),
            };
            self.narrator.say(&format!(
                "Service {name} ({policy}) at {address} answers a client outside by all machines after {:.1} s; {client}",
                started.elapsed().as_secs_f64()
            ));
        }
        Ok(())
    }

    /// A new machine joins, is initialised, and gets traffic once its Pod is ready, without a request lost.
    async fn a_machine_joins_under_traffic(&self) -> Result<()> {
        let (number, from, asked) = (self.machines + 1, now(), Instant::now());
        let name = name(number);
        self.cloud.create(&name, &network::address(number)).await?;
        self.narrator.say(&format!("the cloud has a new machine, {name}"));
        self.node_joins(&name, asked).await?;
        for (stream, _) in POLICIES {
            self.answers(stream, &name, from).await?;
            self.narrator.say(&format!(
                "{name} answers requests to {stream} {:.1} s after its machine was asked for",
                asked.elapsed().as_secs_f64()
            ));
        }
        self.nothing_lost("while a machine joined", from).await
    }

    /// A machine vanishes: requests to it are lost until its load balancers know, and Cloudwit deletes its Node.
    async fn a_machine_dies_under_traffic(&self, name: &str) -> Result<()> {
        let (from, asked) = (now(), Instant::now());
        self.cloud.delete(name).await?;
        self.narrator
            .say(&format!("machine {name} is gone, without a word to anybody"));
        let deleted = self
            .narrator
            .until(&format!("Node {name} is deleted"), async || {
                Ok(self.nodes.get(name).and_then(|seen| seen.deleted))
            })
            .await?;
        self.narrator.say(&format!(
            "Cloudwit deleted Node {name} {:.1} s after its machine",
            deleted.duration_since(asked).as_secs_f64()
        ));
        for (stream, _) in POLICIES {
            let lost = self.steady(stream, from).await?;
            if lost.machines.is_empty() {
                bail!("nobody answers requests to {stream}");
            }
            self.say_lost(stream, "when a machine died", &lost);
        }
        Ok(())
    }

    /// The Node of a machine that is switched off stays, with a taint; it takes traffic again after the start.
    async fn a_machine_is_switched_off_and_on(&self, name: &str) -> Result<()> {
        let from = now();
        self.cloud.stop(name).await?;
        self.node(name, "has the taint of a machine that is off", |seen| {
            seen.taints.iter().any(|taint| taint == SHUTDOWN)
        })
        .await?;
        self.narrator.say(&format!(
            "machine {name} is switched off; Cloudwit keeps its Node, with the taint {SHUTDOWN}"
        ));
        for (stream, _) in POLICIES {
            let lost = self.steady(stream, from).await?;
            self.say_lost(stream, "when a machine was switched off", &lost);
        }
        let (from, asked) = (now(), Instant::now());
        self.cloud.start(name).await?;
        self.node(name, "is Ready without taints", |seen| {
            seen.ready && seen.taints.is_empty()
        })
        .await?;
        for (stream, _) in POLICIES {
            self.answers(stream, name, from).await?;
        }
        self.narrator.say(&format!(
            "machine {name} runs again, and its Pod answers requests {:.1} s after the start",
            asked.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    async fn node(&self, name: &str, what: &str, holds: impl Fn(&Seen) -> bool) -> Result<()> {
        let what = format!("Node {name} {what}");
        let look = async || {
            let seen = self
                .nodes
                .get(name)
                .with_context(|| format!("there is no Node {name}"))?;
            if seen.deleted.is_some() {
                bail!("Node {name} was deleted");
            }
            Ok(holds(&seen).then_some(()))
        };
        self.narrator.until(&what, look).await
    }

    /// Waits until a machine answers requests that were sent since then.
    async fn answers(&self, stream: &str, machine: &str, from: u64) -> Result<()> {
        let what = format!("{machine} answers requests to {stream}");
        let look = async || {
            let found = self.traffic.since(stream, from);
            Ok(found.machines.contains_key(machine).then_some(()))
        };
        self.narrator.until(&what, look).await
    }

    /// Waits until requests of a stream are answered without a failure for a while. Gives what became of all of them since then.
    async fn steady(&self, stream: &str, from: u64) -> Result<Summary> {
        let what = format!("requests to {stream} are all answered");
        self.narrator
            .until(&what, async || {
                let so_far = self.traffic.between(stream, from, now() - SETTLED);
                Ok(so_far.filter(|found| found.answered_since >= STEADY))
            })
            .await
    }

    /// Checks that no request failed since then.
    async fn nothing_lost(&self, when: &str, from: u64) -> Result<()> {
        for (stream, _) in POLICIES {
            let to = now();
            let found = self
                .narrator
                .until(&format!("requests to {stream} have ended"), async || {
                    Ok(self.traffic.between(stream, from, to))
                })
                .await?;
            if found.failed > 0 {
                bail!("requests to {stream} failed {when}: {found:?}");
            }
            self.say_lost(stream, when, &found);
        }
        Ok(())
    }

    fn say_lost(&self, stream: &str, when: &str, found: &Summary) {
        let answered: Vec<String> = found
            .machines
            .iter()
            .map(|(machine, count)| format!("{machine} {count}"))
            .collect();
        let span = match found.failed {
            0 => String::new(),
            _ => format!(" within {:.1} s", Duration::from_millis(found.span).as_secs_f64()),
        };
        self.narrator.say(&format!(
            "{stream}: {} of {} requests failed{span} {when}; answered by {}",
            found.failed,
            found.sent,
            answered.join(", ")
        ));
    }
}

/// A request that was sent so many milliseconds ago has ended, or is overdue and will fail.
const SETTLED: u64 = 100;

fn name(number: u8) -> String {
    format!("machine-{number}")
}

fn ingress(service: &Service) -> Option<String> {
    let status = service.status.as_ref()?.load_balancer.as_ref()?;
    status.ingress.as_ref()?.first()?.ip.clone()
}

fn join(words: &std::collections::BTreeSet<String>) -> String {
    words.iter().cloned().collect::<Vec<_>>().join(", ")
}
