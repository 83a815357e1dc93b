//! Many Nodes that have joined and wait, tainted, when a side starts, as after an outage of the controller or when a large cluster is made.

use std::time::Duration;

use anyhow::Result;
use kube::Api;

use crate::contestant::{Side, Tuning};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::meter::Meter;
use crate::observer::{self, Observer};
use crate::pairs::{Reading, pairs};
use crate::scene::Scene;
use crate::setting::Setting;

/// No wave takes that long; without it a lost Node would hang the benchmark. A side that loses one until its next refresh, five minutes later, has failed.
const LIMIT: Duration = Duration::from_secs(200);

/// With limits lifted: the number of workers with which the peer is fastest without needing ten times the memory.
const WORKERS: u32 = 50;

/// Requests a second that upstream's client makes by default (`--kube-api-qps`, `k8s.io/cloud-provider/options`).
const QPS: u32 = 20;

/// Those that it may make at once after a rest (`--kube-api-burst`).
const BURST: u32 = 30;

/// Peak memory of ours.
const MEMORY: f64 = 30.0 * 1_048_576.0;

/// One wave, so many times.
struct Wave {
    nodes: usize,
    latency: Duration,
    limits: Limits,
}

/// How many requests to the API server the sides may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limits {
    /// As many as they can, with [`WORKERS`].
    Lifted,
    /// Both what upstream allows itself by default: then the number of requests decides.
    Upstream,
    /// Each what it allows itself.
    Own,
}

/// All waves.
///
/// # Errors
///
/// When no run of a wave reaches its end.
pub async fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let sizes: &[usize] = if setting.full { &[1_000, 5_000] } else { &[1_000] };
    let latencies = [0, 20].map(Duration::from_millis);
    let mut waves: Vec<Wave> = sizes
        .iter()
        .flat_map(|nodes| {
            latencies.map(|latency| Wave {
                nodes: *nodes,
                latency,
                limits: Limits::Lifted,
            })
        })
        .collect();
    let limited: &[Limits] = if setting.full {
        &[Limits::Upstream, Limits::Own]
    } else {
        &[Limits::Own]
    };
    waves.extend(limited.iter().map(|limits| Wave {
        nodes: 200,
        latency: Duration::ZERO,
        limits: *limits,
    }));
    let mut sections = Vec::new();
    for wave in waves {
        sections.push(wave.measure(setting).await?);
    }
    Ok(sections)
}

impl Limits {
    fn tuning(self) -> Tuning {
        match self {
            Self::Lifted => Tuning::lifted(WORKERS),
            Self::Upstream => Tuning {
                qps: Some(QPS),
                burst: Some(BURST),
                ..Tuning::lifted(WORKERS)
            },
            Self::Own => Tuning::defaults(),
        }
    }
}

impl Wave {
    async fn measure(&self, setting: &Setting) -> Result<Section> {
        let nodes = self.nodes;
        let latency = self.latency.as_millis();
        let shown = Unit::Count.shown(nodes as f64);
        let (tuned, id, flags) = match self.limits {
            Limits::Lifted => (
                "limits lifted",
                format!("{latency}ms"),
                format!("--kube-api-qps=5000 and {WORKERS} workers for Nodes on both sides"),
            ),
            Limits::Upstream => (
                "upstream's limit on both sides",
                "limited".to_owned(),
                format!("--kube-api-qps={QPS}, --kube-api-burst={BURST} and {WORKERS} workers for Nodes on both sides"),
            ),
            Limits::Own => (
                "each side's own defaults",
                "defaults".to_owned(),
                "no flag for limits or workers".to_owned(),
            ),
        };
        let title = format!("{shown} Nodes that wait, {tuned}, cloud latency {latency} ms");
        let conditions = format!(
            "From the start of the process until every Node is without its taint and has its address; CPU, memory and requests until the side is at rest \
             after that. {flags}; no election, no routes; compile cache warm"
        );
        let mut section = Section::new(format!("node-wave-{nodes}-{id}"), &title, conditions);
        let times = if self.limits == Limits::Lifted {
            setting.pairs
        } else {
            setting.few()
        };
        section.measures = pairs(&title, times, |side| self.run(setting, side)).await?;
        for measure in &mut section.measures {
            measure.goal = self.goal(&measure.id);
        }
        Ok(section)
    }

    async fn run(&self, setting: &Setting, side: Side) -> Result<Vec<Reading>> {
        let tuning = setting.warm(self.limits.tuning()).await?;
        let scene = Scene::set(setting, "node-wave", self.latency).await?;
        scene.waiting_nodes(self.nodes).await?;
        let mut nodes = Observer::start(Api::all(scene.client.clone())).await?;
        let meter = Meter::start(&scene, None).await?;
        let running = scene.start(side, &tuning)?;
        let last = nodes
            .until(
                "Nodes are initialised",
                self.nodes,
                observer::is_initialised,
                &running,
                LIMIT,
            )
            .await?;
        let time = (last - running.started()).as_secs_f64();
        let used = meter.read_at_rest(&scene, &running).await?;
        let mut readings = vec![
            Reading::new(Measure::new("time", "time to the last Node", Unit::Seconds), time),
            Reading::new(
                Measure::new("rate", "Nodes initialised", Unit::PerSecond).more(),
                self.nodes as f64 / time,
            ),
        ];
        readings.extend(used.readings(self.nodes, "Node"));
        scene.end(running)?;
        Ok(readings)
    }

    /// With a limit of requests, that decides.
    fn goal(&self, measure: &str) -> Option<Goal> {
        match (measure, self.limits) {
            ("time", Limits::Own) => Some(Goal::Times(10.0)),
            ("time", Limits::Lifted) => Some(Goal::Times(1.5)),
            ("cpu", Limits::Lifted) => Some(Goal::Times(3.0)),
            ("api-requests", Limits::Lifted) => Some(Goal::AtMost(2.0)),
            ("peak-memory", Limits::Lifted) => Some(Goal::AtMost(MEMORY)),
            _ => None,
        }
    }
}
