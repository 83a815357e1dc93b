//! A cluster in which nothing happens but the reports of kubelets, and then one in which Nodes are silent: what a controller costs day and night.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use cloudwit_test_support::objects::ready_condition;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};
use xtask::run::progress::Progress;

use crate::measure::meter::{Meter, Used, rest};
use crate::measure::observer::{self, Observer};
use crate::measure::pairs::{Reading, pairs};
use crate::measure::refreshes::{NODES_A_CALL, Refreshes, calls_for};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::Scene;
use crate::scene::contestant::{Running, Side, Tuning};
use crate::scene::setting::Setting;

/// A wave before it: long enough for all.
const LIMIT: Duration = Duration::from_secs(300);

/// How often kubelet reports a Node that does not change (`nodeStatusReportFrequency`).
const REPORT: Duration = Duration::from_secs(300);

/// Longer than any run.
const NEVER: Duration = Duration::from_secs(3600);

/// How many Nodes fall silent.
const SILENT: usize = 1_000;

/// Patches at a time.
const WRITERS: usize = 16;

/// A cluster and for how long it is looked at.
struct Calm {
    nodes: usize,
    time: Duration,
    refresh: Duration,
    /// For how long Nodes are looked at that are silent.
    silence: Duration,
}

/// For a run of small sizes, and for a full one.
const CALMS: [Calm; 2] = [calm(1_000, 30, 8, 20), calm(5_000, 300, 60, 60)];

const fn calm(nodes: usize, time: u64, refresh: u64, silence: u64) -> Calm {
    Calm {
        nodes,
        time: Duration::from_secs(time),
        refresh: Duration::from_secs(refresh),
        silence: Duration::from_secs(silence),
    }
}

/// Both: all Nodes Ready, and 1,000 of them silent.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for calm in CALMS {
        ledger.measure(&calm.id(), calm.measure(setting)).await?;
    }
    Ok(())
}

impl Calm {
    /// Of the section without silent Nodes.
    fn id(&self) -> String {
        format!("steady-{}", self.nodes)
    }

    async fn measure(&self, setting: &Setting) -> Result<Vec<Section>> {
        let shown = Unit::Count.shown(self.nodes as f64);
        let (length, refresh) = (self.time.as_secs(), self.refresh.as_secs());
        let title = format!("{shown} Nodes, nothing happens for {length} s");
        let measures = pairs(&title, setting.plan.runs(&self.id()), |side| self.run(setting, side)).await?;
        let (silent, calm): (Vec<Measure>, Vec<Measure>) = measures
            .into_iter()
            .partition(|measure| measure.id.starts_with("silent-"));
        let conditions = format!(
            "All Nodes are Ready and initialised; each reports every {} s, as kubelet does. Addresses are refreshed every {refresh} s on both sides \
             (--node-status-update-frequency), all else is each side's default but the limit of requests, which is lifted; no election, no routes; compile \
             cache warm. The benchmark's own requests are not counted. The goal is one call for {NODES_A_CALL} Nodes",
            REPORT.as_secs()
        );
        let mut section = Section::new(self.id(), title, conditions);
        section.measures = calm;
        let mut silence = Section::new(
            format!("{}-silent", self.id()),
            format!(
                "{} of {shown} Nodes are silent for {} s",
                Unit::Count.shown(SILENT as f64),
                self.silence.as_secs()
            ),
            "Their Ready condition is Unknown, as kube-controller-manager sets it; their machines run. Both sides look every 5 s (--node-monitor-period) and \
             refresh no addresses meanwhile",
        );
        silence.measures = silent;
        for measure in section.measures.iter_mut().chain(&mut silence.measures) {
            measure.goal = self.goal(&measure.id);
        }
        Ok(vec![section, silence])
    }

    /// That of idle memory is about a process that has nothing to keep, which `cold_start` measures.
    fn goal(&self, measure: &str) -> Option<Goal> {
        match measure {
            "cloud-calls-per-refresh" => Some(Goal::AtMost(calls_for(self.nodes) as f64)),
            "silent-cloud-calls" => Some(Goal::AtMost(12.0)),
            _ => None,
        }
    }

    async fn run(&self, setting: &Setting, side: Side) -> Result<Vec<Reading>> {
        let tuning = Tuning {
            node_status_update_frequency: Some(self.refresh),
            node_monitor_period: Some(Duration::from_secs(5)),
            // The wave before is not what is measured; with its own limit the peer needs minutes for it.
            qps: Some(5000),
            burst: Some(5000),
            ..Tuning::defaults()
        };
        let tuning = setting.warm(tuning).await?;
        let scene = Scene::set(setting, "steady", Duration::ZERO).await?;
        scene.waiting_nodes(self.nodes).await?;
        let mut nodes = Observer::start(Api::all(scene.client.clone())).await?;
        let running = scene.start(side, &tuning)?;
        nodes
            .until(
                "Nodes are initialised",
                self.nodes,
                observer::is_initialised,
                &running,
                LIMIT,
            )
            .await?;
        drop(nodes);
        rest(&scene).await?;
        let mut readings = self.calm(&scene, &running).await?;
        running.stop()?;
        // Without refreshes, which would be counted among the looks at silent Nodes.
        let tuning = Tuning {
            node_status_update_frequency: Some(NEVER),
            ..tuning
        };
        let running = scene.start(side, &tuning)?;
        readings.extend(silence(&scene, &running, self.silence).await?);
        scene.end(running)?;
        Ok(readings)
    }

    async fn calm(&self, scene: &Scene<'_>, running: &Running) -> Result<Vec<Reading>> {
        Refreshes::default().until_pause(scene).await?;
        let meter = Meter::start(scene, Some(running)).await?;
        let mut refreshes = Refreshes::default();
        let reports = self.report(scene, running, &mut refreshes).await?;
        refreshes.until_pause(scene).await?;
        let used = meter.read(scene, running).await?;
        ensure!(refreshes.count > 0, "{} refreshed no address", running.side());
        let requests = used.requests.clone().without("PATCH nodes/status", reports);
        let calls = used.cloud.total() as f64;
        let mut readings = vec![
            Reading::new(
                Measure::new("cloud-calls-per-refresh", "cloud calls for each refresh", Unit::Count),
                calls / f64::from(refreshes.count),
            ),
            Reading::new(Measure::new("cloud-calls", "cloud calls", Unit::Count), calls),
            Reading::new(
                Measure::new("api-requests", "API requests", Unit::Count),
                requests.total() as f64,
            ),
        ];
        readings.extend(at_rest("", &used));
        readings.push(Reading::new(
            Measure::new("idle-memory", "memory at the end", Unit::Bytes),
            used.usage.memory as f64,
        ));
        Ok(readings)
    }

    /// Reports of kubelets, one after the other, so that each Node has its turn once in `REPORT`. Gives how many there were.
    async fn report(&self, scene: &Scene<'_>, running: &Running, refreshes: &mut Refreshes) -> Result<u64> {
        let api = Api::<Node>::all(scene.client.clone());
        let mut turn = interval(REPORT.div_f64(self.nodes as f64));
        turn.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut progress = Progress::start(&format!("nothing happens, {}", running.side()));
        let (began, mut count) = (Instant::now(), 0);
        while began.elapsed() < self.time {
            turn.tick().await;
            ensure!(running.runs(), "{} has ended:\n{}", running.side(), running.log_end());
            let condition = json!({ "type": "Ready", "lastHeartbeatTime": at(count) });
            let report = json!({ "status": { "conditions": [condition] } });
            let name = format!("node-{}", count as usize % self.nodes);
            api.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&report))
                .await?;
            count += 1;
            refreshes.look(scene).await?;
            progress.show(&format!("{} of {} s", began.elapsed().as_secs(), self.time.as_secs()));
        }
        progress.finish("done");
        Ok(count)
    }
}

/// A time in which `SILENT` Nodes do not report, after they have fallen silent and were looked up first.
async fn silence(scene: &Scene<'_>, running: &Running, time: Duration) -> Result<Vec<Reading>> {
    let api = Api::<Node>::all(scene.client.clone());
    let condition = json!({ "status": { "conditions": [ready_condition(None)] } });
    let silenced = (0..SILENT).map(|number| {
        let (api, condition) = (&api, &condition);
        async move {
            api.patch_status(
                &format!("node-{number}"),
                &PatchParams::default(),
                &Patch::Strategic(condition),
            )
            .await
        }
    });
    stream::iter(silenced)
        .buffer_unordered(WRITERS)
        .try_collect::<Vec<Node>>()
        .await?;
    // Two periods, until both know; and time for the refresh at the start.
    wait("Nodes fall silent", running, Duration::from_secs(10)).await?;
    let meter = Meter::start(scene, Some(running)).await?;
    wait("Nodes are silent", running, time).await?;
    let used = meter.read(scene, running).await?;
    let calls = Measure::new("silent-cloud-calls", "cloud calls in a minute", Unit::Count);
    let a_minute = 60.0 / time.as_secs_f64();
    let mut readings = vec![Reading::new(calls, used.cloud.total() as f64 * a_minute)];
    readings.extend(at_rest("silent-", &used));
    Ok(readings)
}

fn at_rest(prefix: &str, used: &Used) -> Vec<Reading> {
    let cpu = |id: &str, title: &str| Measure::new(format!("{prefix}{id}"), title, Unit::Seconds);
    let mut readings = vec![Reading::new(cpu("cpu", "CPU time"), used.cpu_seconds)];
    readings.extend(
        used.server_cpu
            .map(|seconds| Reading::new(cpu("server-cpu", "CPU time of the API server"), seconds)),
    );
    readings
}

/// Some moment, another one for each report.
fn at(report: u64) -> String {
    format!(
        "2026-01-01T{:02}:{:02}:{:02}Z",
        report / 3600 % 24,
        report / 60 % 60,
        report % 60
    )
}

async fn wait(what: &str, running: &Running, time: Duration) -> Result<()> {
    let mut progress = Progress::start(&format!("{what}, {}", running.side()));
    let began = Instant::now();
    while began.elapsed() < time {
        tokio::time::sleep(Duration::from_millis(250).min(time.saturating_sub(began.elapsed()))).await;
        ensure!(running.runs(), "{} has ended:\n{}", running.side(), running.log_end());
        progress.show(&format!("{} of {} s", began.elapsed().as_secs(), time.as_secs()));
    }
    progress.finish("done");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_run_has_one_calm_and_a_full_run_the_larger_one() {
        for (full, runs) in [(false, [true, false]), (true, [false, true])] {
            let plan = Plan::new(full, &[], None);
            assert_eq!(CALMS.map(|calm| plan.runs(&calm.id()) > 0), runs, "full: {full}");
        }
    }

    #[test]
    fn a_refresh_of_5000_nodes_shall_be_five_calls() {
        assert_eq!(CALMS[1].goal("cloud-calls-per-refresh"), Some(Goal::AtMost(5.0)));
        assert_eq!(CALMS[1].goal("idle-memory"), None);
    }

    #[test]
    fn every_report_has_a_moment_of_its_own() {
        assert_eq!(at(0), "2026-01-01T00:00:00Z");
        assert_eq!(at(3_725), "2026-01-01T01:02:05Z");
    }
}
