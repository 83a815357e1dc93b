//! What is seen to work, one line each.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kube::Client;

use crate::checks::nodes::Nodes;
use crate::cloud::Cloud;
use crate::cloud::client::now;
use crate::cloud::traffic::{Summary, Traffic};
use crate::hub::kubectl::Kubectl;
use crate::hub::network;
use crate::manager::Manager;
use crate::volumes::prepare;
use crate::waiting::Narrator;

mod cloudwit;
mod cluster;
mod machines;
mod nodes;
mod takeover;
mod volumes;
mod workload;

pub use takeover::Takeover;

/// How many machines there are from the start.
const MACHINES: u8 = 2;

/// The two load balancers, by the policy of their Services, which are also the names of their streams of requests.
const POLICIES: [(&str, &str); 2] = [("web", "Cluster"), ("web-local", "Local")];

/// So many requests in a row have to be answered after a failure: two seconds of them.
const STEADY: usize = 40;

/// Requests of the last milliseconds, which are still on their way, are not counted.
const SETTLED: u64 = 100;

/// The taint of a Node that no controller of the cloud has initialised.
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The checks.
pub struct Checks<'a> {
    client: Client,
    cloud: Cloud,
    narrator: Narrator,
    nodes: Nodes,
    traffic: Traffic,
    manager: &'a Manager,
    /// The component of the provider.
    provider: Vec<u8>,
    kubectl: Kubectl,
}

impl<'a> Checks<'a> {
    /// None of them yet; Nodes are watched from here on.
    pub fn new(
        client: Client,
        cloud: Cloud,
        narrator: Narrator,
        traffic: Traffic,
        manager: &'a Manager,
        provider: Vec<u8>,
        kubectl: Kubectl,
    ) -> Self {
        Self {
            nodes: Nodes::watch(client.clone()),
            client,
            cloud,
            narrator,
            traffic,
            manager,
            provider,
            kubectl,
        }
    }

    /// All of them in order.
    pub async fn run(&self) -> Result<()> {
        let started = Instant::now();
        let names: Vec<String> = (1..=MACHINES).map(name).collect();
        for (name, number) in names.iter().zip(1..) {
            self.cloud.create(name, &network::address(number)).await?;
            self.narrator.say(&format!("the cloud has a new machine, {name}"));
        }
        if let Manager::Pods { pods, .. } = self.manager {
            self.cloudwit_starts_on_tainted_nodes(pods, &names).await?;
        }
        for name in &names {
            self.node_joins(name, started).await?;
        }
        if let Manager::Pods { pods, .. } = self.manager {
            self.cloudwit_is_restricted(pods).await?;
        }
        self.pods_reach_each_other(&names).await?;
        self.load_balancers_answer(&names).await?;
        if let Manager::Process(_) = self.manager {
            self.volumes(&names, &prepare(true)).await?;
        }
        let third = name(MACHINES + 1);
        self.a_machine_joins_under_traffic(&third, MACHINES + 1).await?;
        self.a_component_is_replaced_under_traffic().await?;
        self.the_clouds_api_is_away_under_traffic().await?;
        self.cloudwit_is_killed_under_traffic().await?;
        self.a_kubelet_is_killed_under_traffic(&third).await?;
        // Before a machine is lost: Kubernetes keeps its Pods for a minute, and kube-proxy sends to them now and then.
        if let Manager::Pods { pods, takeover } = self.manager {
            self.cloudwit_takes_over_from_upstream(pods, takeover).await?;
            // The chart has brought what volumes need.
            self.volumes(&names, &prepare(false)).await?;
        }
        self.a_machine_is_cut_off(&third, MACHINES + 1).await?;
        self.a_volume_is_written_on(&third).await?;
        self.a_machine_is_switched_off(&third).await?;
        self.its_volume_goes_on_at(&names[0], &third).await?;
        self.a_machine_is_switched_on(&third).await?;
        self.a_machine_dies_under_traffic(&third).await
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
        self.at_most_lost(when, from, |_| 0).await
    }

    /// Checks that no more requests failed since then than the policy of a stream's Service allows.
    async fn at_most_lost(&self, when: &str, from: u64, most: impl Fn(&str) -> usize) -> Result<()> {
        let mut too_many = Vec::new();
        for (stream, policy) in POLICIES {
            let to = now();
            let found = self
                .narrator
                .until(&format!("requests to {stream} have ended"), async || {
                    Ok(self.traffic.between(stream, from, to))
                })
                .await?;
            self.say_lost(stream, when, &found);
            if found.failed > most(policy) {
                too_many.push(format!("requests to {stream} failed {when}: {found:?}"));
            }
        }
        if !too_many.is_empty() {
            bail!(too_many.join("\n"));
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

fn name(number: u8) -> String {
    format!("machine-{number}")
}
