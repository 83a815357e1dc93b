//! The report as a person reads it: a table in the terminal, and the same as Markdown for the documents.

pub mod bar_chart;
pub mod json;
pub mod ledger;
pub mod line_chart;
pub mod publish;
pub mod svg;

use std::fmt::Write;

use crate::machine::Machine;
use crate::measure::statistics::{Verdict, ratio, summary, verdict};
use crate::measure::{Goal, Measure, Samples, Section};

/// What a cell without a value shows.
const NOTHING: &str = "-";

/// The columns: what was measured, ours with spread, the peer's with spread, ratio, goal, whether it is met.
const COLUMNS: [&str; 6] = ["", "Cloudwit", "upstream", "ratio", "goal", ""];

/// A section for the terminal.
pub fn terminal(section: &Section) -> String {
    let rows: Vec<[String; 6]> = std::iter::once(COLUMNS.map(str::to_owned))
        .chain(section.measures.iter().map(cells))
        .collect();
    let widths: [usize; 6] = std::array::from_fn(|column| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    });
    let mut text = format!("\n{}\n  {}\n", section.title, section.conditions);
    for row in &rows {
        let mut line = format!("  {:width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    for note in notes(section) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

/// The whole report as a page of Markdown.
pub fn markdown(machine: &Machine, sections: &[Section]) -> String {
    let mut text = String::from(
        "# Figures\n\nWritten by `cargo xtask bench`; [how to read and repeat them](README.md). The same as [JSON](results.json), with every sample.\n\n",
    );
    let _ = writeln!(
        text,
        "Medians, with the least and the most seen in brackets. The ratio says how many times as good as upstream's Cloudwit's figure is: above 1, Cloudwit is \
         better.\n\nMachine: {}.\n",
        machine.sentence()
    );
    let _ = writeln!(text, "![Ratios](results.svg)\n");
    let missed = missed(sections);
    if !missed.is_empty() {
        let _ = writeln!(text, "## Goals that are missed\n");
        for line in missed {
            let _ = writeln!(text, "- {line}");
        }
        text.push('\n');
    }
    for section in sections {
        text += &section_as_markdown(section);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn section_as_markdown(section: &Section) -> String {
    let mut text = format!("## {}\n\n{}\n\n", section.title, section.conditions);
    if !section.taken.is_empty() {
        let _ = writeln!(text, "Taken on {} at commit {}.\n", section.taken, section.commit);
    }
    let _ = writeln!(text, "| {} |", COLUMNS.join(" | ").replace("  ", " "));
    let _ = writeln!(text, "| - | -: | -: | -: | -: | - |");
    for measure in &section.measures {
        let _ = writeln!(
            text,
            "| {} |",
            cells(measure).map(|cell| cell.replace('|', "\\|")).join(" | ")
        );
    }
    let notes = notes(section);
    if !notes.is_empty() {
        text.push('\n');
        for note in notes {
            let _ = writeln!(text, "- {note}");
        }
    }
    text.push('\n');
    text
}

/// A line for each goal that is missed: `1,000 Nodes...: CPU time: 2.1 times, goal 3 times`.
pub fn missed(sections: &[Section]) -> Vec<String> {
    let all = sections
        .iter()
        .flat_map(|section| section.measures.iter().map(move |measure| (section, measure)));
    all.filter(|(_, measure)| verdict(measure) == Some(Verdict::Missed))
        .map(|(section, measure)| {
            let [title, ours, peer, ratio, goal, _] = cells(measure);
            let beside = if measure.peer.is_some() {
                format!(" beside {peer}, ratio {ratio}")
            } else {
                String::new()
            };
            format!("{}: {title}: {ours}{beside}; goal: {goal}", section.title)
        })
        .collect()
}

fn cells(measure: &Measure) -> [String; 6] {
    [
        measure.title.clone(),
        side(measure, &measure.ours),
        measure
            .peer
            .as_ref()
            .map_or_else(|| NOTHING.to_owned(), |peer| side(measure, peer)),
        ratio(measure).map_or_else(|| NOTHING.to_owned(), times),
        measure.goal.map_or_else(String::new, |goal| wanted(measure, goal)),
        match verdict(measure) {
            Some(Verdict::Met) => "met",
            Some(Verdict::Missed) => "MISSED",
            Some(Verdict::Unknown) => "not measured",
            None => "",
        }
        .to_owned(),
    ]
}

/// `3.31 s (3.20 s..3.52 s)`; one value has no spread.
fn side(measure: &Measure, samples: &Samples) -> String {
    let runs = samples.values.len() + samples.failures.len();
    let failed = match samples.failures.len() {
        0 => String::new(),
        failed => format!(" [{failed} of {runs} failed]"),
    };
    let Some(summary) = summary(samples) else {
        return format!("{NOTHING}{failed}");
    };
    let [median, min, max] = [summary.median, summary.min, summary.max].map(|value| measure.unit.shown(value));
    if min == max {
        return format!("{median}{failed}");
    }
    format!("{median} ({min}..{max}){failed}")
}

/// `2.3`, `1,000`, or what it is when ours needs nothing.
pub fn times(ratio: f64) -> String {
    if ratio.is_infinite() {
        return "none at all".to_owned();
    }
    crate::measure::Unit::Count.shown(if ratio >= 9.95 { ratio.round() } else { ratio })
}

fn wanted(measure: &Measure, goal: Goal) -> String {
    match goal {
        Goal::Times(times) => format!("{times} times"),
        Goal::AtMost(most) => format!("at most {}", measure.unit.shown(most)),
    }
}

/// What the figures say, remarks, and why runs failed.
fn notes(section: &Section) -> Vec<String> {
    let mut notes = section.notes.clone();
    for measure in &section.measures {
        if !measure.note.is_empty() {
            notes.push(format!("{}: {}", measure.title, measure.note));
        }
        let peer = measure
            .peer
            .iter()
            .flat_map(|peer| &peer.failures)
            .map(|why| ("upstream", why));
        let ours = measure.ours.failures.iter().map(|why| ("Cloudwit", why));
        for (side, why) in ours.chain(peer) {
            let line = format!("a run of {side} failed: {}", why.lines().next().unwrap_or_default());
            // A failed run has no value in any measure: once is enough.
            if !notes.contains(&line) {
                notes.push(line);
            }
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Unit;

    fn section() -> Section {
        let mut section = Section::new("wave", "A wave", "1,000 Nodes");
        let mut cpu = Measure::new("cpu", "CPU time", Unit::Seconds)
            .ours([1.0, 2.0, 4.0])
            .goal(Goal::Times(3.0));
        cpu.peer = Some(Samples {
            values: vec![5.0],
            failures: vec!["no end\nof the log".into()],
        });
        let memory = Measure::new("memory", "peak memory", Unit::Bytes)
            .ours([20.0 * 1_048_576.0])
            .goal(Goal::AtMost(30.0 * 1_048_576.0));
        section.measures = vec![cpu, memory.note("of the process")];
        section
    }

    #[test]
    fn the_terminal_shows_median_spread_ratio_goal_and_verdict() {
        let text = terminal(&section());
        assert!(text.contains("2 s (1 s..4 s)"), "{text}");
        assert!(
            text.contains("5 s [1 of 2 failed]   2.50         3 times  MISSED"),
            "{text}"
        );
        assert!(text.contains("-  at most 30 MiB     met"), "{text}");
        assert!(text.contains("a run of upstream failed: no end\n"), "{text}");
        assert!(text.contains("peak memory: of the process"), "{text}");
    }

    #[test]
    fn columns_stand_below_each_other() {
        let text = terminal(&section());
        let ends: Vec<usize> = text
            .lines()
            .filter(|line| line.contains("times") || line.contains("at most"))
            .filter_map(|line| {
                line.find(" times")
                    .map(|at| at + 6)
                    .or(line.find("30 MiB").map(|at| at + 6))
            })
            .collect();
        assert_eq!(ends[0], ends[1], "{text}");
    }

    #[test]
    fn the_page_names_every_missed_goal_in_front() {
        let page = markdown(&Machine::default(), &[section()]);
        let (before, after) = page.split_once("## A wave").unwrap();
        assert!(
            before.contains("- A wave: CPU time: 2 s (1 s..4 s) beside 5 s [1 of 2 failed], ratio 2.50; goal: 3 times"),
            "{page}"
        );
        assert!(!before.contains("peak memory"), "{page}");
        assert!(
            after.contains("| CPU time | 2 s (1 s..4 s) | 5 s [1 of 2 failed] | 2.50 | 3 times | MISSED |"),
            "{page}"
        );
        assert!(
            page.ends_with("- a run of upstream failed: no end\n- peak memory: of the process\n"),
            "{page}"
        );
    }

    #[test]
    fn ratios_are_short() {
        assert_eq!(
            [2.345, 12.3, 1000.0, f64::INFINITY].map(times),
            ["2.35", "12", "1,000", "none at all"]
        );
    }
}
