//! How time, CPU, memory and calls grow with the cluster: 1,000 to 50,000 Nodes on a real kube-apiserver with a real etcd.
//!
//! For each size a new API server. All Nodes are there and wait when Cloudwit starts; when the last one is initialised it rests, then ends, and starts
//! again in the cluster as it is now, where it has nothing to do but to refresh addresses. `size` does that for one size, this file makes a table of
//! it, `summary` lines of all tables.

pub mod size;
pub mod summary;

use anyhow::Result;

use crate::measure::{Measure, Section, Unit};
use crate::report::ledger::Ledger;
use crate::scene::setting::Setting;
use crate::works::growth::size::Grown;

/// So many Nodes, one after the other.
const SIZES: [usize; 4] = [1_000, 5_000, 15_000, 50_000];

const TIME: &str = "from the start to the last Node";

/// A section for each size that is planned. One that is not reached is told in its section, and the others are measured all the same.
///
/// # Errors
///
/// When the report cannot be written.
pub async fn measure(setting: &Setting, ledger: &mut Ledger) -> Result<()> {
    for nodes in SIZES {
        let measuring = async {
            Ok(vec![match size::grow(&setting.contestants, nodes).await {
                Ok(grown) => section(&grown),
                Err(error) => unreached(nodes, format!("{error:#}")),
            }])
        };
        ledger.measure(&id(nodes), measuring).await?;
    }
    Ok(())
}

fn id(nodes: usize) -> String {
    format!("growth-{nodes}")
}

fn empty(nodes: usize) -> Section {
    Section::new(
        id(nodes),
        format!("{} Nodes that wait, then a restart", Unit::Count.shown(nodes as f64)),
        "kube-apiserver and etcd, both real, on the same machine. Cloudwit's defaults, such as a refresh of addresses every five minutes, but no routes; no cloud \
         latency; the component is compiled at the start, in a process of its own, whose CPU time counts and whose memory `cold-start` shows; its code is there at \
         the restart, after which addresses are refreshed every 20 s. API writes are counted by the API server, Events included",
    )
}

/// A size at which something broke.
fn unreached(nodes: usize, why: String) -> Section {
    let mut section = empty(nodes);
    let mut time = Measure::new("time", TIME, Unit::Seconds);
    time.ours.failures.push(why);
    section.measures.push(time);
    section
}

fn section(grown: &Grown) -> Section {
    let nodes = grown.nodes as f64;
    let figure = |id: &str, title: &str, unit: Unit, value: f64| Measure::new(id, title, unit).ours([value]);
    let mut section = empty(grown.nodes);
    section.measures = vec![
        figure("time", TIME, Unit::Seconds, grown.time),
        figure("rate", "Nodes a second", Unit::PerSecond, nodes / grown.time).more(),
        figure("cpu", "CPU", Unit::Seconds, grown.cpu),
        figure(
            "cpu-per-node",
            "CPU a Node",
            Unit::Microseconds,
            grown.cpu / nodes * 1e6,
        ),
        figure(
            "server-cpu",
            "CPU of API server and etcd meanwhile",
            Unit::Seconds,
            grown.server_cpu,
        ),
        figure("peak-memory", "peak memory", Unit::Bytes, grown.peak_memory),
        figure("settled-memory", "memory 10 s later", Unit::Bytes, grown.settled_memory),
        figure(
            "writes-per-node",
            "API writes a Node",
            Unit::Count,
            grown.api_writes / nodes,
        ),
        figure("cloud-calls", "cloud calls for all", Unit::Count, grown.cloud_calls),
        figure(
            "restart-time",
            "restart: until all Nodes are listed and looked up once",
            Unit::Seconds,
            grown.restart_time,
        ),
        figure(
            "restart-peak-memory",
            "restart: peak memory",
            Unit::Bytes,
            grown.restart_peak_memory,
        ),
        figure(
            "restart-memory",
            "restart: memory at rest",
            Unit::Bytes,
            grown.restart_memory,
        ),
        figure(
            "refresh-calls",
            "cloud calls a refresh",
            Unit::Count,
            grown.refresh_calls,
        ),
        figure("refresh-cpu", "CPU a refresh", Unit::Seconds, grown.refresh_cpu),
    ];
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn every_size_is_planned_in_a_full_run() {
        let plan = Plan::new(true, &[], None);
        assert!(SIZES.iter().all(|nodes| plan.runs(&id(*nodes)) > 0));
    }

    #[test]
    fn all_that_the_summary_shows_is_in_the_table_of_a_size() {
        let grown = |nodes| Grown {
            nodes,
            ..Grown::default()
        };
        let summary = summary::of(&[section(&grown(1_000)), section(&grown(5_000))]).unwrap();
        assert!(summary.lines.iter().all(|line| line.points.len() == 2), "{summary:?}");
    }

    #[test]
    fn a_size_that_is_not_reached_is_a_failure_and_not_a_fast_one() {
        let section = unreached(50_000, "not all within 900s".into());
        assert_eq!(section.id, "growth-50000");
        let time = &section.measures[0];
        assert_eq!(
            (time.ours.values.len(), &*time.ours.failures[0]),
            (0, "not all within 900s")
        );
    }
}
