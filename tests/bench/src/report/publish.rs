//! Writes the report to where the documents have it. What was measured before on the same machine stays until it is measured again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xtask::commands::bench::work::BenchWork;

use crate::machine::{self, Machine};
use crate::measure::{Line, Section};
use crate::plan;
use crate::report::json::Results;
use crate::report::markdown;
use crate::report::{bar_chart, line_chart};
use crate::works::growth::summary;

/// All samples, and what they come to.
const JSON: &str = "results.json";

/// When figures were taken, and of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The day.
    pub taken: String,
    /// The commit.
    pub commit: String,
}

impl Stamp {
    /// To be made before the first measurement: what is committed later was not measured.
    pub fn now() -> Self {
        Self {
            taken: machine::today(),
            commit: machine::commit(),
        }
    }
}

/// Puts these sections into the report in `folder`: `results.json`, `results.svg`, `figures.md`, and a chart `growth-*.svg` for each kind of line. What
/// growth came to is derived from all sizes that are there then.
///
/// # Errors
///
/// When a file cannot be written, or the results that are there cannot be read.
pub fn publish(folder: &Path, machine: &Machine, stamp: &Stamp, sections: Vec<Section>) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // Benchmarks beside each other share the results and nothing else.
    let folder_lock = fs::File::open(folder).with_context(|| format!("opening {}", folder.display()))?;
    folder_lock
        .lock()
        .with_context(|| format!("locking {}", folder.display()))?;
    let mut results = match before(folder)? {
        Some(results) if results.machine == *machine => results,
        _ => Results {
            machine: machine.clone(),
            sections: Vec::new(),
        },
    };
    for section in sections {
        results.put(Section {
            taken: stamp.taken.clone(),
            commit: stamp.commit.clone(),
            ..section
        });
    }
    results.sections.retain(|section| section.id != summary::ID);
    results.sections.extend(summary::of(&results.sections));
    // Stable: sections of one piece of work stay in the order in which it tells them. Comparisons on a cloud come last.
    results.sections.sort_by_key(|section| {
        let work = BenchWork::of_section(&section.id);
        (work.is_none(), work, plan::place(&section.id))
    });
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    };
    write(JSON, &results.write()?)?;
    if let Some(svg) = bar_chart::ratios(&results.sections) {
        write("results.svg", &svg)?;
    }
    for (name, lines) in charts(&results.sections) {
        let title = format!("Growth with the cluster: {name}");
        if let Some(svg) = line_chart::growth(&title, &lines, &summary::words(&lines)) {
            write(&chart_file(name), &svg)?;
        }
    }
    write("figures.md", &markdown(&results.machine, &results.sections))
}

/// Says so if the report in this folder was taken elsewhere, and so will be left out.
///
/// # Errors
///
/// When the results that are there cannot be read.
pub fn warn_of_another(folder: &Path, machine: &Machine) -> Result<()> {
    if let Some(other) = of_another(folder, machine)? {
        println!("what is in the report was taken elsewhere and will be left out: {other}");
    }
    Ok(())
}

/// On what the report in this folder was taken, if that is not this machine with the same tools and build: figures of one say nothing beside those of the
/// other.
fn of_another(folder: &Path, machine: &Machine) -> Result<Option<String>> {
    let other = before(folder)?.filter(|results| results.machine != *machine);
    Ok(other.map(|results| results.machine.sentence()))
}

fn before(folder: &Path) -> Result<Option<Results>> {
    let file = folder.join(JSON);
    match fs::read_to_string(&file) {
        Ok(text) => Ok(Some(
            Results::read(&text).with_context(|| format!("reading {}", file.display()))?,
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading {}", file.display())),
    }
}

/// Lines of the same chart, in the order in which charts are first named.
pub fn charts(sections: &[Section]) -> Vec<(&str, Vec<&Line>)> {
    let mut charts: Vec<(&str, Vec<&Line>)> = Vec::new();
    for line in sections.iter().flat_map(|section| &section.lines) {
        match charts.iter_mut().find(|(name, _)| *name == line.chart) {
            Some((_, lines)) => lines.push(line),
            None => charts.push((&line.chart, vec![line])),
        }
    }
    charts
}

/// The file of a chart: `growth-cpu-time.svg`.
pub fn chart_file(chart: &str) -> String {
    let name: String = chart
        .chars()
        .map(|sign| {
            if sign.is_ascii_alphanumeric() {
                sign.to_ascii_lowercase()
            } else {
                '-'
            }
        })
        .collect();
    format!("growth-{name}.svg")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Measure, Unit};

    fn section(id: &str, value: f64) -> Section {
        let mut section = Section::new(id, id, "");
        section.measures.push(Measure::new("x", "x", Unit::Count).ours([value]));
        section
    }

    fn stamp(commit: &str) -> Stamp {
        Stamp {
            taken: "2026-11-21".into(),
            commit: commit.into(),
        }
    }

    #[test]
    fn benchmark_parts_join_in_report_order_with_commits() {
        let folder = tempfile::tempdir().unwrap();
        let put =
            |commit: &str, sections| publish(folder.path(), &Machine::default(), &stamp(commit), sections).unwrap();
        put("a", vec![section("sizes", 1.0), section("growth-1000", 1.0)]);
        put("b", vec![section("node-wave-5000-0ms", 2.0), section("sizes", 3.0)]);
        put("c", vec![section("node-wave-1000-0ms", 2.0)]);
        let results = before(folder.path()).unwrap().unwrap();
        let ids: Vec<(&str, &str)> = results
            .sections
            .iter()
            .map(|section| (section.id.as_str(), section.commit.as_str()))
            .collect();
        assert_eq!(
            ids,
            [
                ("node-wave-1000-0ms", "c"),
                ("node-wave-5000-0ms", "b"),
                ("sizes", "b"),
                ("growth-1000", "a")
            ]
        );
        assert_eq!(results.sections[2].measures[0].ours.values, [3.0]);
        let page = fs::read_to_string(folder.path().join("figures.md")).unwrap();
        assert!(page.contains("Taken on 2026-11-21 at commit a."), "{page}");
    }

    #[test]
    fn results_of_other_machine_or_build_are_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        let this = Machine::default();
        assert_eq!(of_another(folder.path(), &this).unwrap(), None);
        publish(folder.path(), &this, &stamp("a"), vec![section("sizes", 1.0)]).unwrap();
        assert_eq!(of_another(folder.path(), &this).unwrap(), None);
        let other = Machine {
            build: "another".into(),
            ..this
        };
        assert!(of_another(folder.path(), &other).unwrap().is_some());
        publish(folder.path(), &other, &stamp("b"), vec![section("swap", 1.0)]).unwrap();
        let results = before(folder.path()).unwrap().unwrap();
        assert_eq!((results.sections.len(), results.sections[0].id.as_str()), (1, "swap"));
        fs::write(folder.path().join(JSON), "{").unwrap();
        assert!(of_another(folder.path(), &other).is_err(), "unreadable is not none");
    }

    #[test]
    fn lines_of_a_chart_are_drawn_together() {
        let line = |chart: &str, label: &str| Line {
            chart: chart.into(),
            label: label.into(),
            unit: Unit::Count,
            points: vec![(1.0, 1.0)],
        };
        let mut one = section("growth-a", 1.0);
        one.lines = vec![line("memory", "a"), line("CPU time", "b")];
        let mut other = section("growth-b", 1.0);
        other.lines = vec![line("memory", "c")];
        let sections = [one, other];
        let found: Vec<(&str, usize)> = charts(&sections)
            .iter()
            .map(|(name, lines)| (*name, lines.len()))
            .collect();
        assert_eq!(found, [("memory", 2), ("CPU time", 1)]);
        assert_eq!(chart_file("CPU time"), "growth-cpu-time.svg");
    }
}
