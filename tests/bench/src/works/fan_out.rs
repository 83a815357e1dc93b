//! What one Node means for 200 Services: it comes, and every load balancer gets its machine; it wants no more traffic, and every one loses it again.
//! Then ten come one after the other, as when a cluster grows. Cloudwit gathers those that follow a first one; upstream begins anew with each.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::measure::meter::{Meter, rest};
use crate::measure::observer::{self, Observer};
use crate::measure::pairs::{Reading, pairs};
use crate::measure::{Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::Scene;
use crate::scene::contestant::{Running, Side, Tuning};
use crate::scene::setting::Setting;

/// So many Services.
const SERVICES: usize = 200;

/// Machines behind each before the Node comes.
const NODES: usize = 10;

/// So many come one after the other.
const JOINING: usize = 10;

/// Between two of them.
const APART: Duration = Duration::from_millis(50);

/// The peer's workers; ours has as many.
const WORKERS: u32 = 10;

/// No fan-out takes that long.
const LIMIT: Duration = Duration::from_secs(120);

/// Between two looks into the cloud, which cost it a millisecond each.
const LOOK: Duration = Duration::from_millis(20);

/// Keeps a Node out of all load balancers (`k8s.io/api/core/v1`, `LabelNodeExcludeBalancers`).
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// Without and with a cloud that takes its time, in milliseconds.
const LATENCIES: [u64; 2] = [0, 20];

/// Those that are planned.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for latency in LATENCIES {
        ledger.measure(&id(latency), section(setting, latency)).await?;
    }
    Ok(())
}

fn id(latency: u64) -> String {
    format!("fan-out-{latency}ms")
}

async fn section(setting: &Setting, latency: u64) -> Result<Vec<Section>> {
    let title =
        format!("A Node comes and goes behind {SERVICES} Services, {WORKERS} workers, cloud latency {latency} ms");
    let conditions = format!(
        "{NODES} Nodes are behind all load balancers. From the creation of one more, which is Ready and initialised, until its machine is behind the last \
         load balancer; from the label that excludes it until the last one is without it; from the creation of the first of {JOINING} more, {} ms apart, until \
         all are behind all. --kube-api-qps=5000, --kube-api-burst=5000 and {WORKERS} workers on both sides; no election, no routes; compile cache warm",
        APART.as_millis()
    );
    let id = id(latency);
    let mut section = Section::new(&id, &title, conditions);
    let latency = Duration::from_millis(latency);
    section.measures = pairs(&title, setting.plan.runs(&id), |side| run(setting, latency, side)).await?;
    Ok(vec![section])
}

async fn run(setting: &Setting, latency: Duration, side: Side) -> Result<Vec<Reading>> {
    let tuning = setting.warm(Tuning::lifted(WORKERS)).await?;
    let scene = Scene::set(setting, "fan-out", latency).await?;
    scene.ready_nodes("node", NODES).await?;
    scene.services(SERVICES).await?;
    let mut services = Observer::start(Api::<Service>::default_namespaced(scene.client.clone())).await?;
    let running = scene.start(side, &tuning)?;
    services
        .until(
            "Services have an address",
            SERVICES,
            observer::is_published,
            &running,
            LIMIT,
        )
        .await?;
    drop(services);
    rest(&scene).await?;

    let mut readings = Vec::new();
    for step in [Step::Comes, Step::Goes, Step::Join] {
        let meter = Meter::start(&scene, Some(&running)).await?;
        let began = Instant::now();
        step.begin(&scene).await?;
        step.until_done(&scene, &running).await?;
        let time = began.elapsed().as_secs_f64();
        let used = meter.read_at_rest(&scene, &running).await?;
        let (id, name) = step.words();
        let figure =
            |what: &str, title: &str, unit| Measure::new(format!("{id}-{what}"), format!("{name}: {title}"), unit);
        readings.extend([
            Reading::new(figure("time", "time", Unit::Seconds), time),
            Reading::new(figure("cpu", "CPU time", Unit::Seconds), used.cpu_seconds),
            Reading::new(
                figure("cloud-calls", "cloud calls", Unit::Count),
                used.cloud.total() as f64,
            ),
            Reading::new(
                figure("api-requests", "API requests", Unit::Count),
                step.of_the_side(used.requests.total()),
            ),
        ]);
    }
    scene.end(running)?;
    Ok(readings)
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Comes,
    Goes,
    Join,
}

impl Step {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Comes => ("comes", "a Node comes"),
            Self::Goes => ("goes", "it is excluded"),
            Self::Join => ("join", "ten more come"),
        }
    }

    async fn begin(self, scene: &Scene<'_>) -> Result<()> {
        match self {
            Self::Comes => scene.ready_nodes("late", 1).await,
            Self::Goes => {
                let label = json!({ "metadata": { "labels": { EXCLUDED: "" } } });
                let api = Api::<Node>::all(scene.client.clone());
                api.patch("late-0", &PatchParams::default(), &Patch::Merge(&label))
                    .await?;
                Ok(())
            }
            Self::Join => {
                for number in 0..JOINING {
                    scene.ready_nodes(&format!("join-{number}"), 1).await?;
                    tokio::time::sleep(APART).await;
                }
                Ok(())
            }
        }
    }

    /// Without the requests that are ours: creations and the label.
    fn of_the_side(self, requests: u64) -> f64 {
        let ours = match self {
            Self::Comes | Self::Goes => 1,
            Self::Join => JOINING as u64,
        };
        requests.saturating_sub(ours) as f64
    }

    async fn until_done(self, scene: &Scene<'_>, running: &Running) -> Result<()> {
        let wanted = match self {
            Self::Comes => NODES + 1,
            Self::Goes => NODES,
            Self::Join => NODES + JOINING,
        };
        let deadline = Instant::now() + LIMIT;
        loop {
            let balancers = scene.cloud.content().await?.load_balancers;
            let done = balancers
                .iter()
                .filter(|balancer| balancer.spec.targets.len() == wanted)
                .count();
            if done == SERVICES {
                return Ok(());
            }
            ensure!(running.runs(), "{} has ended:\n{}", running.side(), running.log_end());
            if Instant::now() > deadline {
                bail!(
                    "{done} of {SERVICES} load balancers have {wanted} machines; the log ends:\n{}",
                    running.log_end()
                );
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn both_latencies_are_planned_in_a_full_run() {
        let plan = Plan::new(true, &[], None);
        assert!(LATENCIES.iter().all(|latency| plan.runs(&id(*latency)) > 0));
    }
}
