//! Nodes join, Pods reach each other, and load balancers answer a client outside.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Result, bail};
use cloudwit_test_support::scenes::rig::address;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::api::{Api, ListParams, PostParams};

use super::{Checks, POLICIES, UNINITIALIZED};
use crate::checks::workload::{self, LABEL, PATH, SERVICE_PORT};
use crate::cloud::client::now;
use crate::hub::network;

impl Checks<'_> {
    /// kubelet has registered it with the taint, Cloudwit has initialised it, and kubelet reports that it is ready.
    pub(super) async fn node_joins(&self, name: &str, asked: Instant) -> Result<()> {
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
            "Node {name} was registered with the taint {UNINITIALIZED}; it is initialised and Ready {:.1} s after its machine was requested: {}",
            joined.duration_since(asked).as_secs_f64(),
            seen.provider_id.unwrap_or_default()
        ));
        Ok(())
    }

    /// A Pod asks one on another machine: packets take the routes that Cloudwit has made in the cloud, and no address is changed on the way.
    pub(super) async fn pods_reach_each_other(&self, names: &[String]) -> Result<()> {
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
                "a Pod with address {own} on {from} sent a request to {target} and got {said:?}; expected {to} and {own}"
            );
        }
        self.narrator.say(&format!(
            "a Pod on {from} ({own}) sends a request to the one on {to} ({target}) over the cloud's route; the address arrives unchanged"
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
    pub(super) async fn load_balancers_answer(&self, names: &[String]) -> Result<()> {
        let services: Api<Service> = Api::default_namespaced(self.client.clone());
        for (name, policy) in POLICIES {
            let service = workload::service(name, policy)?;
            services.create(&PostParams::default(), &service).await?;
        }
        for (name, policy) in POLICIES {
            let address = self
                .narrator
                .until(&format!("Service {name} has an address"), async || {
                    Ok(address(&services.get(name).await?))
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
}

fn join(words: &BTreeSet<String>) -> String {
    words.iter().cloned().collect::<Vec<_>>().join(", ")
}
