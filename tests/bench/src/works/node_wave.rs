//! Many Nodes that have joined and wait, tainted, when a side starts, as after an outage of the controller or when a large cluster is made.

use std::time::Duration;

use anyhow::Result;
use kube::Api;

use crate::measure::meter::Meter;
use crate::measure::observer::{self, Observer};
use crate::measure::pairs::{Reading, pairs};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::Scene;
use crate::scene::contestant::{Side, Tuning};
use crate::scene::setting::Setting;

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

/// All waves. At each side's own defaults 5,000 Nodes would take the peer twelve minutes, which are as long with any other number: 3 requests a Node, 20 a
/// second.
const WAVES: [Wave; 7] = [
    wave(1_000, 0, Limits::Lifted),
    wave(1_000, 20, Limits::Lifted),
    wave(5_000, 0, Limits::Lifted),
    wave(5_000, 20, Limits::Lifted),
    wave(200, 0, Limits::Upstream),
    wave(200, 0, Limits::Own),
    wave(1_000, 0, Limits::Own),
];

const fn wave(nodes: usize, milliseconds: u64, limits: Limits) -> Wave {
    Wave {
        nodes,
        latency: Duration::from_millis(milliseconds),
        limits,
    }
}

/// Those that are planned.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for wave in WAVES {
        ledger.measure(&wave.id(), wave.measure(setting)).await?;
    }
    Ok(())
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
    /// Of its section.
    fn id(&self) -> String {
        let limits = match self.limits {
            Limits::Lifted => format!("{}ms", self.latency.as_millis()),
            Limits::Upstream => "limited".to_owned(),
            Limits::Own => "defaults".to_owned(),
        };
        format!("node-wave-{}-{limits}", self.nodes)
    }

    async fn measure(&self, setting: &Setting) -> Result<Vec<Section>> {
        let (tuned, flags) = match self.limits {
            Limits::Lifted => (
                "limits lifted",
                format!("--kube-api-qps=5000, --kube-api-burst=5000 and {WORKERS} workers for Nodes on both sides"),
            ),
            Limits::Upstream => (
                "upstream's limit on both sides",
                format!("--kube-api-qps={QPS}, --kube-api-burst={BURST} and {WORKERS} workers for Nodes on both sides"),
            ),
            Limits::Own => ("each side's own defaults", "no flag for limits or workers".to_owned()),
        };
        let (id, shown) = (self.id(), Unit::Count.shown(self.nodes as f64));
        let title = format!(
            "{shown} Nodes that wait, {tuned}, cloud latency {} ms",
            self.latency.as_millis()
        );
        let mut conditions = format!(
            "From the start of the process until every Node is without its taint and has its address; CPU, memory and requests until the side is at rest \
             after that. {flags}; no election, no routes; compile cache warm"
        );
        if self.stands_in(setting.full) {
            conditions += ". The goals are those for 5,000 Nodes, which a full run has";
        }
        let mut section = Section::new(&id, &title, conditions);
        section.measures = pairs(&title, setting.plan.runs(&id), |side| self.run(setting, side)).await?;
        for measure in &mut section.measures {
            measure.goal = self.goal(&measure.id, setting.full);
        }
        Ok(vec![section])
    }

    /// Whether this wave is judged for that of 5,000 Nodes, which a run of small sizes does not do.
    fn stands_in(&self, full: bool) -> bool {
        self.limits == Limits::Lifted && !full
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

    /// Goals are about 5,000 Nodes with limits lifted, and about 200 at each side's own defaults.
    fn goal(&self, measure: &str, full: bool) -> Option<Goal> {
        let lifted = self.limits == Limits::Lifted && (self.nodes == 5_000 || self.stands_in(full));
        match measure {
            "time" if self.limits == Limits::Own && self.nodes == 200 => Some(Goal::Times(10.0)),
            "time" if lifted => Some(Goal::Times(1.5)),
            "cpu" if lifted => Some(Goal::Times(3.0)),
            "api-requests" if lifted => Some(Goal::AtMost(2.0)),
            "peak-memory" if lifted => Some(Goal::AtMost(MEMORY)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn every_wave_is_planned_in_a_full_run() {
        let plan = Plan::new(true, &[], None);
        for wave in WAVES {
            assert!(plan.runs(&wave.id()) > 0, "{}", wave.id());
        }
    }

    #[test]
    fn goals_stand_at_the_wave_for_which_they_are_stated() {
        let judged = |full| WAVES.map(|wave| wave.goal("cpu", full).is_some());
        assert_eq!(judged(true), [false, false, true, true, false, false, false]);
        assert_eq!(judged(false)[..2], [true, true], "a small run has no larger ones");
        let times = WAVES.map(|wave| wave.goal("time", true));
        assert_eq!(times[5], Some(Goal::Times(10.0)));
        assert_eq!((times[4], times[6]), (None, None));
    }
}
