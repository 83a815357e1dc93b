//! The table at the end, and the figures in `docs/reference/soak.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::faults::schedule::Turn;
use crate::findings::{Broken, Promise};
use crate::watch::Sample;

/// Figures stand between these lines.
const BEGIN: &str = "<!-- figures: generated -->";
const END: &str = "<!-- end of figures -->";

/// Memory at rest may grow by this share, and by so many bytes, from the first half of the run to its end.
const GROWTH: f64 = 1.25;
const GROWTH_BYTES: u64 = 16 << 20;

/// Descriptors at rest may grow by so many.
const GROWTH_DESCRIPTORS: u64 = 32;

/// How a turn went.
#[derive(Debug, Clone)]
pub struct Went {
    /// What went wrong on purpose.
    pub turn: Turn,
    /// From the end of the fault until a Node that joined then was initialised; none when it was not while the calm lasted.
    pub recovered: Option<Duration>,
}

/// A run, as it is reported.
pub struct Report {
    /// Sizes, seed, build, machine.
    pub conditions: String,
    /// All turns.
    pub turns: Vec<Went>,
    /// What was left out, and why.
    pub left_out: Vec<String>,
    /// Broken promises.
    pub broken: BTreeMap<Promise, Broken>,
    /// Looks at each replica.
    pub samples: [Vec<Sample>; 2],
    /// How often each replica was started.
    pub starts: [u32; 2],
    /// From the end of the last fault until all had converged; none when it had not.
    pub converged: Option<Duration>,
}

/// What grew at rest from the first half of the run to its last eighth. Each process is compared with itself or, when it was started anew, with
/// the largest of its replica before.
pub fn growth(samples: &[Sample]) -> Vec<(Promise, String)> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else {
        return Vec::new();
    };
    let length = last.at.duration_since(first.at);
    let early: Vec<&Sample> = samples
        .iter()
        .filter(|one| one.calm && one.at.duration_since(first.at) <= length / 2)
        .collect();
    let late: Vec<&Sample> = samples
        .iter()
        .filter(|one| one.calm && last.at.duration_since(one.at) <= length / 8)
        .collect();
    let most = |of: &[&Sample], value: fn(&Sample) -> u64| of.iter().map(|one| value(one)).max();
    let mut grown = Vec::new();
    if let (Some(before), Some(after)) = (most(&early, |one| one.memory), most(&late, |one| one.memory))
        && after as f64 > before as f64 * GROWTH + GROWTH_BYTES as f64
    {
        grown.push((
            Promise::Memory,
            format!("at rest {} in the first half, {} at the end", mib(before), mib(after)),
        ));
    }
    if let (Some(before), Some(after)) = (most(&early, |one| one.descriptors), most(&late, |one| one.descriptors))
        && after > before + GROWTH_DESCRIPTORS
    {
        grown.push((
            Promise::Descriptors,
            format!("at rest {before} in the first half, {after} at the end"),
        ));
    }
    grown
}

impl Report {
    /// Whether all promises held.
    pub fn held(&self) -> bool {
        self.broken.is_empty()
    }

    /// For people, in Markdown too.
    pub fn table(&self) -> String {
        let mut text = format!("{}\n\n| promise | outcome |\n| ------- | ------- |\n", self.conditions);
        for promise in Promise::ALL {
            let outcome = match self.broken.get(&promise) {
                None => "held".to_owned(),
                Some(broken) => format!("**broken {} times**, first at {}", broken.count, cell(&broken.first)),
            };
            let _ = writeln!(text, "| {} | {outcome} |", promise.sentence());
        }
        text.push_str("\n| figure | replica 0 | replica 1 |\n| ------ | --------: | --------: |\n");
        for (name, figure) in FIGURES {
            let [one, other] = &self.samples;
            let _ = writeln!(text, "| {name} | {} | {} |", figure(one), figure(other));
        }
        let _ = writeln!(text, "| starts | {} | {} |", self.starts[0], self.starts[1]);
        let converged = self
            .converged
            .map_or("not".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
        let _ = writeln!(text, "\nConverged after the last fault: {converged}.");
        text.push_str("\n| fault | hostile component | lasted | next Node initialised after | broken |\n");
        text.push_str("| ----- | ----------------- | -----: | --------------------------: | ------ |\n");
        for Went { turn, recovered } in &self.turns {
            let recovered = recovered.map_or("not in the calm".to_owned(), |time| {
                format!("{:.1} s", time.as_secs_f64())
            });
            let name = turn.disturbance.name();
            let broken = self.broken.iter().filter_map(|(promise, broken)| {
                let count = broken.turns.get(name)?;
                Some(format!("{promise:?} {count}"))
            });
            let broken = broken.collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                text,
                "| {name} | {} | {} s | {recovered} | {broken} |",
                turn.guest,
                turn.lasts.as_secs()
            );
        }
        for what in &self.left_out {
            let _ = writeln!(text, "\nLeft out: {what}.");
        }
        text
    }

    /// Puts the table into the page, between its marks.
    ///
    /// # Errors
    ///
    /// When the page cannot be read or written, or has no marks.
    pub fn write(&self, page: &Path) -> Result<()> {
        let old = std::fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
        let (before, rest) = old
            .split_once(BEGIN)
            .with_context(|| format!("{} has no {BEGIN}", page.display()))?;
        let (_, after) = rest
            .split_once(END)
            .with_context(|| format!("{} has no {END}", page.display()))?;
        let new = format!("{before}{BEGIN}\n\n{}\n{END}{after}", self.table());
        std::fs::write(page, new).with_context(|| format!("writing {}", page.display()))
    }
}

type Figure = fn(&[Sample]) -> String;

/// Rows of the table of figures.
const FIGURES: [(&str, Figure); 6] = [
    ("/livez, slowest", |samples| livez(samples, 1.0)),
    ("/livez, 99 % within", |samples| livez(samples, 0.99)),
    ("memory, most", |samples| mib(most(samples, |one| one.memory))),
    ("memory at rest at the end", |samples| {
        mib(at_end(samples, |one| one.memory))
    }),
    ("descriptors, most", |samples| {
        most(samples, |one| one.descriptors).to_string()
    }),
    ("descriptors at rest at the end", |samples| {
        at_end(samples, |one| one.descriptors).to_string()
    }),
];

fn most(samples: &[Sample], value: fn(&Sample) -> u64) -> u64 {
    samples.iter().map(value).max().unwrap_or_default()
}

fn at_end(samples: &[Sample], value: fn(&Sample) -> u64) -> u64 {
    samples.iter().rev().find(|one| one.calm).map(value).unwrap_or_default()
}

fn livez(samples: &[Sample], share: f64) -> String {
    let mut times: Vec<Duration> = samples.iter().filter_map(|one| one.livez).collect();
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let time = times
        .get((last as f64 * share).round() as usize)
        .copied()
        .unwrap_or_default();
    format!("{:.0} ms", time.as_secs_f64() * 1000.0)
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn cell(text: &str) -> String {
    let text: String = text.chars().take(300).collect();
    text.replace(['\n', '|'], " ")
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn samples(memory: impl Fn(u64) -> u64) -> Vec<Sample> {
        let start = Instant::now();
        let sample = |second: u64| Sample {
            at: start + Duration::from_secs(second),
            calm: second.is_multiple_of(2),
            memory: memory(second) << 20,
            descriptors: 20 + second / 50,
            livez: Some(Duration::from_millis(second)),
        };
        (0..100).map(sample).collect()
    }

    #[test]
    fn flat_memory_is_no_growth_and_a_leak_is() {
        assert!(growth(&samples(|second| 50 + second % 7)).is_empty());
        let grown = growth(&samples(|second| 50 + second));
        assert_eq!(grown.len(), 1, "{grown:?}");
        assert!(grown[0].1.contains("at rest 98.0 MiB in the first half"), "{grown:?}");
    }

    #[test]
    fn peak_under_fault_is_no_growth_at_rest() {
        assert!(growth(&samples(|second| if second % 2 == 1 { 500 } else { 50 })).is_empty());
    }

    #[test]
    fn slowest_answer_and_quantile_are_distinguished() {
        let samples = samples(|_| 1);
        assert_eq!(
            (livez(&samples, 1.0), livez(&samples, 0.5)),
            ("99 ms".to_owned(), "50 ms".to_owned())
        );
        assert_eq!(livez(&[], 1.0), "0 ms");
    }
}
