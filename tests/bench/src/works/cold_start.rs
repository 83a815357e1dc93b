//! From the start of the process until the first Node is initialised, as after a deployment or when a leader is lost: all that an operator gets by
//! default, with election and HTTPS. Ours without compiled code, as on a machine that has never run it, and with it.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::DeleteParams;
use kube::{Api, Client};

use crate::measure::family::Family;
use crate::measure::meter::rest;
use crate::measure::observer::{self, Observer};
use crate::measure::pairs::{Reading, pairs};
use crate::measure::{Goal, Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::Scene;
use crate::scene::contestant::{Side, Tuning};
use crate::scene::setting::Setting;

/// No start takes that long.
const LIMIT: Duration = Duration::from_secs(60);

/// Until a process at rest has given back what its start needed.
const REST: Duration = Duration::from_secs(5);

/// Memory at rest.
const MEMORY: f64 = 15.0 * 1_048_576.0;

/// Those that are planned, with and without compiled code.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for warm in [true, false] {
        ledger.measure(id(warm), section(setting, warm)).await?;
    }
    Ok(())
}

fn id(warm: bool) -> &'static str {
    if warm { "cold-start-warm" } else { "cold-start-cold" }
}

async fn section(setting: &Setting, warm: bool) -> Result<Vec<Section>> {
    let title = if warm {
        "Start, compile cache warm"
    } else {
        "Start, compile cache cold"
    };
    let mut section = Section::new(
        id(warm),
        title,
        format!(
            "One Node waits. Election (no Lease is left from before) and HTTPS with a certificate made at the start, on both sides; otherwise defaults but \
             no routes. Memory {} s after the first Node; CPU time and peak memory with processes that were started meanwhile, such as a compiler. The peer \
             is a program like any other and has no cache",
            REST.as_secs()
        ),
    );
    section.measures = pairs(title, setting.plan.runs(id(warm)), |side| run(setting, warm, side)).await?;
    for measure in &mut section.measures {
        measure.goal = match (measure.id.as_str(), warm) {
            ("time", true) => Some(Goal::Times(2.0)),
            ("idle-memory", _) => Some(Goal::AtMost(MEMORY)),
            _ => None,
        };
    }
    Ok(vec![section])
}

async fn run(setting: &Setting, warm: bool, side: Side) -> Result<Vec<Reading>> {
    let mut tuning = Tuning {
        leader_election: true,
        https: true,
        ..Tuning::defaults()
    };
    if warm {
        tuning = setting.warm(tuning).await?;
    }
    let scene = Scene::set(setting, "cold-start", Duration::ZERO).await?;
    scene.waiting_nodes(1).await?;
    forget_leases(&scene.client).await?;
    let mut nodes = Observer::start(Api::<Node>::all(scene.client.clone())).await?;
    let running = scene.start(side, &tuning)?;
    let family = Family::watch(running.pid());
    let last = nodes
        .until("the first Node", 1, observer::is_initialised, &running, LIMIT)
        .await?;
    let time = (last - running.started()).as_secs_f64();
    rest(&scene).await?;
    tokio::time::sleep(REST).await;
    let usage = running.usage()?;
    let peak = family.peak()?.max(usage.peak_memory);
    let memory = |id: &str, title: &str| Measure::new(id, title, Unit::Bytes);
    let readings = vec![
        Reading::new(Measure::new("time", "time to the first Node", Unit::Seconds), time),
        Reading::new(Measure::new("cpu", "CPU time", Unit::Seconds), usage.cpu_seconds),
        Reading::new(memory("peak-memory", "peak memory"), peak as f64),
        Reading::new(memory("idle-memory", "memory at rest"), usage.memory as f64),
    ];
    scene.end(running)?;
    Ok(readings)
}

/// A fresh API server has none; a cluster that is shared one day may.
async fn forget_leases(client: &Client) -> Result<()> {
    let leases = Api::<Lease>::namespaced(client.clone(), "kube-system");
    match leases
        .delete("cloud-controller-manager", &DeleteParams::default())
        .await
    {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other.map(|_| ())?),
    }
}
