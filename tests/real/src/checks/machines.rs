//! Machines that join, are switched off and on, and vanish, while requests go on.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::{Checks, POLICIES};
use crate::checks::nodes::Seen;
use crate::cloud::client::now;
use crate::hub::network;
use crate::process::with_command_line;

/// The taint of a Node whose machine is switched off.
const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// The taint of a Node whose kubelet is not heard of.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// So many requests are sent to a Service in five seconds.
const FIVE_SECONDS: usize = 100;

impl Checks<'_> {
    /// A new machine joins, is initialised, and gets traffic once its Pod is ready.
    ///
    /// With the policy `Local` no request is lost. With `Cluster`, the Nodes send to the new Pod as soon as it is ready, which may be some seconds before
    /// the cloud has the route to it.
    pub(super) async fn a_machine_joins_under_traffic(&self, name: &str, number: u8) -> Result<()> {
        let (from, asked) = (now(), Instant::now());
        self.cloud.create(name, &network::address(number)).await?;
        self.narrator.say(&format!("the cloud has a new machine, {name}"));
        let route = async {
            self.has_route(name).await?;
            Ok(asked.elapsed())
        };
        let ((), route) = tokio::try_join!(self.node_joins(name, asked), route)?;
        self.narrator.say(&format!(
            "the cloud has a route to the Pods of {name} {:.1} s after its machine was requested",
            route.as_secs_f64()
        ));
        for (stream, _) in POLICIES {
            self.answers(stream, name, from).await?;
            self.narrator.say(&format!(
                "{name} answers requests to {stream} {:.1} s after its machine was requested",
                asked.elapsed().as_secs_f64()
            ));
        }
        let most = |policy: &str| if policy == "Local" { 0 } else { FIVE_SECONDS };
        self.at_most_lost("while a machine joined", from, most).await
    }

    /// A machine vanishes: requests to it are lost until its load balancers know, and Cloudwit deletes its Node.
    pub(super) async fn a_machine_dies_under_traffic(&self, name: &str) -> Result<()> {
        let (from, asked) = (now(), Instant::now());
        self.cloud.delete(name).await?;
        self.narrator
            .say(&format!("{name} is deleted in the cloud, and its kubelet ends at once"));
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
                bail!("requests to {stream} are answered by no machine");
            }
            self.say_lost(stream, "when a machine died", &lost);
        }
        Ok(())
    }

    /// A kubelet is killed and started again: its Pods go on, and so do requests to them.
    pub(super) async fn a_kubelet_is_killed_under_traffic(&self, name: &str) -> Result<()> {
        let (from, asked) = (now(), Instant::now());
        let kubelet = format!("/{name}/kubelet.yaml\0");
        let old = with_command_line(&kubelet);
        let [pid] = old.as_slice() else {
            bail!("{} kubelets run on {name}, not one", old.len());
        };
        let raw = pid.to_owned().try_into().ok().and_then(Pid::from_raw);
        kill_process(raw.context("a process without a number")?, Signal::KILL).context("killing a kubelet")?;
        let look = async || Ok(with_command_line(&kubelet).iter().any(|new| new != pid).then_some(()));
        let what = format!("the kubelet of {name} runs again");
        self.narrator.until(&what, look).await?;
        let before = self.nodes.get(name).and_then(|seen| seen.heartbeat);
        let what = "is Ready by its new kubelet's report";
        self.node(name, what, |seen| seen.ready && seen.heartbeat != before)
            .await?;
        self.narrator.say(&format!(
            "the kubelet of {name} is killed, started again, and reports its Node as Ready {:.1} s later",
            asked.elapsed().as_secs_f64()
        ));
        self.nothing_lost("while a kubelet was killed", from).await
    }

    /// A machine that runs and is cut off from the network: Kubernetes marks its Node, and Cloudwit does not delete it, since the cloud has the machine.
    pub(super) async fn a_machine_is_cut_off(&self, name: &str, number: u8) -> Result<()> {
        let from = now();
        network::connect(number, false)?;
        self.narrator.say(&format!("{name} is cut off from the network"));
        self.node(name, "is marked as unreachable", |seen| {
            !seen.ready && seen.taints.iter().any(|taint| taint == UNREACHABLE)
        })
        .await?;
        for (stream, _) in POLICIES {
            let lost = self.steady(stream, from).await?;
            self.say_lost(stream, "when a machine was cut off", &lost);
        }
        let (from, asked) = (now(), Instant::now());
        network::connect(number, true)?;
        self.node(name, "is Ready without taints", |seen| {
            seen.ready && seen.taints.is_empty()
        })
        .await?;
        for (stream, _) in POLICIES {
            self.answers(stream, name, from).await?;
        }
        self.narrator.say(&format!(
            "{name} is connected again; its Node was kept, and its Pod answers requests {:.1} s later",
            asked.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// The Node of a machine that is switched off stays, with a taint.
    pub(super) async fn a_machine_is_switched_off(&self, name: &str) -> Result<()> {
        let from = now();
        self.cloud.stop(name).await?;
        self.node(name, "has the taint of a machine that is off", |seen| {
            seen.taints.iter().any(|taint| taint == SHUTDOWN)
        })
        .await?;
        self.narrator.say(&format!(
            "{name} is switched off; Cloudwit keeps its Node, with the taint {SHUTDOWN}"
        ));
        for (stream, _) in POLICIES {
            let lost = self.steady(stream, from).await?;
            self.say_lost(stream, "when a machine was switched off", &lost);
        }
        Ok(())
    }

    /// It takes traffic again after the start.
    pub(super) async fn a_machine_is_switched_on(&self, name: &str) -> Result<()> {
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
            "{name} runs again, and its Pod answers requests {:.1} s after the start",
            asked.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Waits until the cloud has a route to the Pods of a machine.
    async fn has_route(&self, name: &str) -> Result<()> {
        let look = async || {
            let state = self.cloud.state().await?;
            let mut routes = state.routes.iter().filter(|route| !route.blackhole);
            Ok(routes.any(|route| route.spec.node == name).then_some(()))
        };
        let what = format!("the cloud has a route to the Pods of {name}");
        self.narrator.until(&what, look).await
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
}
