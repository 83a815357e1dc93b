//! How time, CPU, memory and calls grow with the cluster: 1,000 to 50,000 Nodes on a real kube-apiserver with a real etcd.
//!
//! For each size a new API server. All Nodes are there and wait when Cloudwit starts; when the last one is initialised it rests, then ends, and starts
//! again in the cluster as it is now, where it has nothing to do but to refresh addresses. `growth_work` does that for one size, this file makes
//! tables and lines of it.

use crate::growth_work::{self, Grown, Stage};
use crate::measure::{Line, Measure, Section, Unit};

/// So many Nodes, one after the other.
pub const SIZES: [usize; 4] = [1_000, 5_000, 15_000, 50_000];

const TIME: &str = "from the start to the last Node";

/// A section for each size, and one with the lines over all that were reached.
///
/// A size that is not reached is told in its section, and the others are measured all the same.
pub async fn measure(stage: &Stage, sizes: &[usize]) -> Vec<Section> {
    let (mut sections, mut all) = (Vec::new(), Vec::new());
    for &nodes in sizes {
        match growth_work::grow(stage, nodes).await {
            Ok(grown) => {
                eprintln!("growth: {nodes} Nodes in {}", Unit::Seconds.shown(grown.time));
                sections.push(section(&grown));
                all.push(grown);
            }
            Err(error) => {
                eprintln!("growth: {nodes} Nodes: {error:#}");
                sections.push(unreached(nodes, format!("{error:#}")));
            }
        }
    }
    sections.extend(slopes(&all));
    sections
}

fn empty(nodes: usize) -> Section {
    Section::new(
        format!("growth-{nodes}"),
        format!("{} Nodes that wait, then a restart", Unit::Count.shown(nodes as f64)),
        "kube-apiserver and etcd, both real, on the same machine. Cloudwit's defaults but no routes; no cloud latency; the component is compiled at the start, \
         and its code is there at the restart, after which addresses are refreshed every 20 s. API writes are counted by the API server, Events included",
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

/// What one Node more costs, between each size and the next, and the lines. `None` for less than two sizes.
fn slopes(all: &[Grown]) -> Option<Section> {
    let (first, last) = (all.first()?, all.last()?);
    if first.nodes == last.nodes {
        return None;
    }
    let mut section = Section::new(
        "growth",
        "What one Node more costs",
        format!(
            "The difference between {} and {} Nodes, divided by the Nodes",
            Unit::Count.shown(first.nodes as f64),
            Unit::Count.shown(last.nodes as f64)
        ),
    );
    let slope = |value: fn(&Grown) -> f64| (value(last) - value(first)) / (last.nodes - first.nodes) as f64;
    section.measures = vec![
        Measure::new("time", "time", Unit::Microseconds).ours([slope(|grown| grown.time) * 1e6]),
        Measure::new("cpu", "CPU", Unit::Microseconds).ours([slope(|grown| grown.cpu) * 1e6]),
        Measure::new("server-cpu", "CPU of API server and etcd", Unit::Microseconds)
            .ours([slope(|grown| grown.server_cpu) * 1e6]),
        Measure::new("peak-memory", "peak memory", Unit::Bytes).ours([slope(|grown| grown.peak_memory)]),
        Measure::new("settled-memory", "memory 10 s later", Unit::Bytes).ours([slope(|grown| grown.settled_memory)]),
        Measure::new("restart-memory", "memory at rest after a restart", Unit::Bytes)
            .ours([slope(|grown| grown.restart_memory)]),
        Measure::new("refresh-cpu", "CPU of a refresh", Unit::Microseconds)
            .ours([slope(|grown| grown.refresh_cpu) * 1e6]),
    ];
    let line = |chart: &str, label: &str, unit: Unit, value: fn(&Grown) -> f64| Line {
        chart: chart.into(),
        label: label.into(),
        unit,
        points: all.iter().map(|grown| (grown.nodes as f64, value(grown))).collect(),
    };
    section.lines = vec![
        line("time", "until all Nodes are initialised", Unit::Seconds, |grown| {
            grown.time
        }),
        line("time", "CPU of Cloudwit", Unit::Seconds, |grown| grown.cpu),
        line("time", "CPU of API server and etcd", Unit::Seconds, |grown| {
            grown.server_cpu
        }),
        line("time", "CPU of Cloudwit for a refresh", Unit::Seconds, |grown| {
            grown.refresh_cpu
        }),
        line("memory", "peak", Unit::Bytes, |grown| grown.peak_memory),
        line("memory", "10 s later", Unit::Bytes, |grown| grown.settled_memory),
        line("memory", "at rest after a restart", Unit::Bytes, |grown| {
            grown.restart_memory
        }),
    ];
    Some(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(nodes: usize, settled_memory: f64) -> Grown {
        Grown {
            nodes,
            time: nodes as f64 / 500.0,
            settled_memory,
            ..Grown::default()
        }
    }

    #[test]
    fn what_a_node_costs_is_the_difference_between_sizes_so_that_a_fixed_part_does_not_count() {
        let section = slopes(&[grown(1_000, 20e6), grown(5_000, 24e6)]).unwrap();
        let value = |id: &str| {
            section
                .measures
                .iter()
                .find(|measure| measure.id == id)
                .unwrap()
                .ours
                .values[0]
        };
        assert_eq!(value("settled-memory"), 1000.0);
        assert_eq!(value("time").round(), 2000.0);
        let line = section.lines.iter().find(|line| line.label == "10 s later").unwrap();
        assert_eq!(line.points, [(1_000.0, 20e6), (5_000.0, 24e6)]);
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

    #[test]
    fn one_size_alone_has_no_slope() {
        assert_eq!(slopes(&[grown(1_000, 20e6)]), None);
        assert_eq!(slopes(&[]), None);
    }
}
