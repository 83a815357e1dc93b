//! What the sizes of `growth` come to: what one Node more costs, the lines of the charts, and where growth stops being in proportion. All of it is derived from
//! the sections of the sizes, whenever they were taken, so that no sentence outlives its figures. Pure.

use crate::measure::statistics::summary;
use crate::measure::{Line, Measure, Section, Unit};

/// Of the section, and with a dash what the ids of the sizes begin with.
pub const ID: &str = "growth";

/// Growth is no longer in proportion when a Node more costs so many times what it costs between the two smallest sizes. Less is what runs differ by.
const BEND: f64 = 1.5;

/// The lines: chart, legend, unit, the measure of a size's section that it shows.
const LINES: [(&str, &str, Unit, &str); 7] = [
    ("time", TIME, Unit::Seconds, "time"),
    ("time", "CPU of Cloudwit", Unit::Seconds, "cpu"),
    ("time", "CPU of API server and etcd", Unit::Seconds, "server-cpu"),
    ("time", "CPU of Cloudwit for a refresh", Unit::Seconds, "refresh-cpu"),
    ("memory", "peak", Unit::Bytes, "peak-memory"),
    ("memory", "10 s later", Unit::Bytes, "settled-memory"),
    ("memory", "at rest after a restart", Unit::Bytes, "restart-memory"),
];

/// The line that others explain.
const TIME: &str = "until all Nodes are initialised";

/// One size: its Nodes, and its section.
type Size<'a> = (f64, &'a Section);

/// What one Node more costs, and the lines over all sizes that were reached. `None` for less than two.
pub fn of(sections: &[Section]) -> Option<Section> {
    let sizes = sizes(sections);
    let (first, last) = (sizes.first()?, sizes.last()?);
    if first.0 == last.0 {
        return None;
    }
    let mut section = Section::new(
        ID,
        "What one Node more costs",
        format!(
            "The difference between {} and {} Nodes, divided by the Nodes",
            Unit::Count.shown(first.0),
            Unit::Count.shown(last.0)
        ),
    );
    section.taken.clone_from(&last.1.taken);
    section.commit = commits(&sizes);
    section.lines = LINES.iter().map(|line| self::line(&sizes, line)).collect();
    section.measures = LINES.iter().zip(&section.lines).filter_map(slope).collect();
    for chart in ["time", "memory"] {
        let lines: Vec<&Line> = section.lines.iter().filter(|line| line.chart == chart).collect();
        section.notes.extend(words(&lines));
    }
    section.notes.extend(cores(&sizes));
    Some(section)
}

/// Those with a figure, the smallest first.
fn sizes(sections: &[Section]) -> Vec<Size<'_>> {
    let mut sizes: Vec<Size<'_>> = sections
        .iter()
        .filter_map(|section| {
            let nodes = section.id.strip_prefix(ID)?.strip_prefix('-')?.parse().ok()?;
            value(section, "time").map(|_| (nodes, section))
        })
        .collect();
    sizes.sort_by(|one, other| one.0.total_cmp(&other.0));
    sizes
}

fn value(section: &Section, id: &str) -> Option<f64> {
    let measure = section.measures.iter().find(|measure| measure.id == id)?;
    summary(&measure.ours).map(|summary| summary.median)
}

/// Of all sizes, each once.
fn commits(sizes: &[Size<'_>]) -> String {
    let mut commits: Vec<&str> = Vec::new();
    for (_, section) in sizes {
        if !commits.contains(&section.commit.as_str()) {
            commits.push(&section.commit);
        }
    }
    commits.join(", ")
}

fn line(sizes: &[Size<'_>], (chart, label, unit, id): &(&str, &str, Unit, &str)) -> Line {
    let points = sizes
        .iter()
        .filter_map(|(nodes, section)| Some((*nodes, value(section, id)?)));
    Line {
        chart: (*chart).to_owned(),
        label: (*label).to_owned(),
        unit: *unit,
        points: points.collect(),
    }
}

/// From the smallest size to the largest.
fn slope(((_, _, _, id), line): (&(&str, &str, Unit, &str), &Line)) -> Option<Measure> {
    let (first, last) = (line.points.first()?, line.points.last()?);
    (first.0 < last.0).then(|| {
        let (unit, cost) = cost(line.unit, *first, *last);
        Measure::new(*id, &line.label, unit).ours([cost])
    })
}

/// What one Node more costs between two sizes.
fn cost(unit: Unit, from: (f64, f64), to: (f64, f64)) -> (Unit, f64) {
    let each = (to.1 - from.1) / (to.0 - from.0);
    match unit {
        Unit::Seconds => (Unit::Microseconds, each * 1e6),
        other => (other, each),
    }
}

/// A sentence for each line of a chart: what a Node more costs from size to size, and where that bends; at the time also what bends with it.
pub fn words(lines: &[&Line]) -> Vec<String> {
    let sentence = |line: &&Line| Some(format!("{}{}", costs(line)?, bend(line, lines).unwrap_or_default()));
    lines.iter().filter_map(sentence).collect()
}

/// How a sentence about `line` goes on. `None` with less than three sizes, or where the first step costs nothing to compare with.
fn bend(line: &Line, lines: &[&Line]) -> Option<String> {
    let factors: Option<Vec<f64>> = (0..line.points.len().checked_sub(1)?)
        .map(|step| factor(line, step))
        .collect();
    let factors = factors.filter(|factors| factors.len() > 1)?;
    let Some(step) = factors.iter().position(|factor| *factor >= BEND) else {
        return Some("; in proportion to the cluster, or less".to_owned());
    };
    let [from, to] = [step, step + 1].map(|point| Unit::Count.shown(line.points[point].0));
    let mut words = format!(
        "; in proportion up to {from}, from there to {to} {:.1} times as much",
        factors[step]
    );
    if line.label == TIME {
        let others = lines.iter().filter(|other| other.label.starts_with("CPU"));
        let beside = others.filter_map(|other| Some(format!("{} {:.1} times", other.label, factor(other, step)?)));
        words += &format!(" (beside: {})", beside.collect::<Vec<String>>().join(", "));
    }
    Some(words)
}

/// `CPU of Cloudwit: a Node more costs 435 us up to 5,000 Nodes, 515 us up to 15,000`.
fn costs(line: &Line) -> Option<String> {
    let steps = line.points.windows(2).map(|step| {
        let (unit, cost) = cost(line.unit, step[0], step[1]);
        format!("{} up to {}", unit.shown(cost), Unit::Count.shown(step[1].0))
    });
    let steps: Vec<String> = steps.collect();
    (!steps.is_empty()).then(|| format!("{}: a Node more costs {} Nodes", line.label, steps.join(", ")))
}

/// How many times what a Node costs between the two smallest sizes it costs in this step. `None` where it costs nothing there, or there is no such step.
fn factor(line: &Line, step: usize) -> Option<f64> {
    let of = |step: usize| Some(cost(line.unit, *line.points.get(step)?, *line.points.get(step + 1)?).1);
    let first = of(0).filter(|first| *first > 0.0)?;
    Some(of(step)? / first)
}

/// How many cores were busy: less than there are means that somebody waited for something else, such as a disk.
fn cores(sizes: &[Size<'_>]) -> Option<String> {
    let busy = sizes.iter().map(|(nodes, section)| {
        let cpu = value(section, "cpu")? + value(section, "server-cpu")?;
        let cores = cpu / value(section, "time")?;
        Some(format!("{cores:.1} with {}", Unit::Count.shown(*nodes)))
    });
    let busy = busy.collect::<Option<Vec<String>>>()?;
    Some(format!(
        "Cores that Cloudwit, API server and etcd kept busy until all Nodes were initialised: {} Nodes",
        busy.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size with these seconds until all are initialised, CPU seconds of the API server, and bytes.
    fn size(nodes: usize, time: f64, server: f64, memory: f64) -> Section {
        let mut section = Section::new(format!("growth-{nodes}"), "", "");
        section.commit = format!("c{nodes}");
        let seconds = |id: &str, value| Measure::new(id, id, Unit::Seconds).ours([value]);
        section.measures = vec![
            seconds("time", time),
            seconds("cpu", nodes as f64 * 0.0005),
            seconds("server-cpu", server),
            Measure::new("peak-memory", "", Unit::Bytes).ours([memory]),
        ];
        section
    }

    fn found<'a>(section: &'a Section, begin: &str) -> Vec<&'a str> {
        let notes = section.notes.iter().map(String::as_str);
        notes.filter(|note| note.starts_with(begin)).collect()
    }

    #[test]
    fn node_cost_is_the_slope_without_the_fixed_part() {
        let sizes = [size(5_000, 10.0, 20.0, 24e6), size(1_000, 2.0, 4.0, 20e6)];
        let section = of(&sizes).unwrap();
        let value = |id: &str| super::value(&section, id).unwrap();
        assert_eq!((value("peak-memory"), value("time")), (1000.0, 2000.0));
        assert_eq!(value("cpu").round(), 500.0);
        let line = section.lines.iter().find(|line| line.label == "peak").unwrap();
        assert_eq!(line.points, [(1_000.0, 20e6), (5_000.0, 24e6)]);
        assert_eq!(section.commit, "c1000, c5000");
    }

    #[test]
    fn nonlinear_growth_is_named_with_place_and_neighbours() {
        let sizes = [
            size(1_000, 2.0, 4.0, 20e6),
            size(5_000, 10.0, 20.0, 24e6),
            size(15_000, 50.0, 80.0, 34e6),
        ];
        let section = of(&sizes).unwrap();
        assert_eq!(
            found(&section, TIME),
            [
                "until all Nodes are initialised: a Node more costs 2,000 us up to 5,000, 4,000 us up to 15,000 Nodes; in proportion up to 5,000, from \
                 there to 15,000 2.0 times as much (beside: CPU of Cloudwit 1.0 times, CPU of API server and etcd 1.5 times)"
            ]
        );
        let [peak] = found(&section, "peak")[..] else {
            panic!("{section:?}")
        };
        assert!(peak.ends_with("; in proportion to the cluster, or less"), "{peak}");
        assert_eq!(
            found(&section, "Cores"),
            [
                "Cores that Cloudwit, API server and etcd kept busy until all Nodes were initialised: 2.2 with 1,000, 2.2 with 5,000, 1.8 with 15,000 Nodes"
            ]
        );
    }

    #[test]
    fn single_size_has_no_slope_and_unreached_one_no_point() {
        assert_eq!(of(&[size(1_000, 2.0, 4.0, 20e6)]), None);
        let mut unreached = Section::new("growth-5000", "", "");
        unreached.measures = vec![Measure::new("time", "", Unit::Seconds)];
        assert_eq!(of(&[size(1_000, 2.0, 4.0, 20e6), unreached]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn line_with_free_first_step_gives_no_finding() {
        let sizes = [
            size(1_000, 2.0, 4.0, 20e6),
            size(5_000, 10.0, 20.0, 20e6),
            size(15_000, 30.0, 60.0, 34e6),
        ];
        let section = of(&sizes).unwrap();
        let peak = found(&section, "peak")[0];
        assert!(peak.ends_with("up to 15,000 Nodes"), "{peak}");
    }

    #[test]
    fn the_summary_is_no_size() {
        let sizes = vec![size(1_000, 2.0, 4.0, 20e6), size(5_000, 10.0, 20.0, 24e6)];
        let summary = of(&sizes).unwrap();
        let all = [sizes, vec![summary.clone()]].concat();
        assert_eq!(of(&all).unwrap(), summary);
    }
}
