//! Writes the report to where the documents have it. What was measured before on the same machine stays until it is measured again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xtask::bench_work::BenchWork;

use crate::machine::{self, Machine};
use crate::measure::{Line, Section};
use crate::report::markdown;
use crate::report_json::Results;
use crate::{bar_chart, line_chart};

/// All samples, and what they come to.
const JSON: &str = "results.json";

/// Puts these sections into the report in `folder`: `results.json`, `results.svg`, `figures.md`, and a chart `growth-*.svg` for each kind of line.
///
/// # Errors
///
/// When a file cannot be written, or the results that are there cannot be read.
pub fn publish(folder: &Path, sections: Vec<Section>) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    // Benchmarks beside each other share the results and nothing else.
    let folder_lock = fs::File::open(folder).with_context(|| format!("opening {}", folder.display()))?;
    folder_lock
        .lock()
        .with_context(|| format!("locking {}", folder.display()))?;
    let mut results = before(folder)?;
    let (taken, commit) = (machine::today(), machine::commit());
    for section in sections {
        results.put(Section {
            taken: taken.clone(),
            commit: commit.clone(),
            ..section
        });
    }
    // Stable: sections of one piece of work stay in the order in which it tells them. Comparisons on a cloud come last.
    results
        .sections
        .sort_by_key(|section| BenchWork::of_section(&section.id).map_or((true, None), |work| (false, Some(work))));
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
    };
    write(JSON, &results.write()?)?;
    if let Some(svg) = bar_chart::ratios(&results.sections) {
        write("results.svg", &svg)?;
    }
    for (name, lines) in charts(&results.sections) {
        if let Some(svg) = line_chart::growth(&format!("Growth with the cluster: {name}"), &lines) {
            write(&chart_file(name), &svg)?;
        }
    }
    write("figures.md", &markdown(&results.machine, &results.sections))
}

/// What another machine measured says nothing beside what this one did.
fn before(folder: &Path) -> Result<Results> {
    let file = folder.join(JSON);
    let this = Machine::this();
    let results = match fs::read_to_string(&file) {
        Ok(text) => Results::read(&text).with_context(|| format!("reading {}", file.display()))?,
        Err(_) => Results::default(),
    };
    if results.machine == this {
        return Ok(results);
    }
    Ok(Results {
        machine: this,
        sections: Vec::new(),
    })
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

    #[test]
    fn pieces_of_a_benchmark_come_together_in_the_order_of_the_report() {
        let folder = tempfile::tempdir().unwrap();
        publish(folder.path(), vec![section("sizes", 1.0)]).unwrap();
        publish(
            folder.path(),
            vec![section("node-wave-200", 2.0), section("sizes", 3.0)],
        )
        .unwrap();
        let results = before(folder.path()).unwrap();
        let ids: Vec<&str> = results.sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids, ["node-wave-200", "sizes"]);
        assert_eq!(results.sections[1].measures[0].ours.values, [3.0]);
        assert!(!results.sections[0].taken.is_empty());
        let page = fs::read_to_string(folder.path().join("figures.md")).unwrap();
        assert!(page.contains("## node-wave-200"), "{page}");
    }

    #[test]
    fn what_another_machine_measured_is_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        let other = Results {
            machine: Machine {
                cpu: "another".into(),
                ..Machine::default()
            },
            sections: vec![section("sizes", 1.0)],
        };
        fs::write(folder.path().join(JSON), other.write().unwrap()).unwrap();
        assert_eq!(before(folder.path()).unwrap().sections, []);
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
