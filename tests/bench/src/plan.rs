//! How often each piece of work is done and how long that takes: the schedule of a run.
//!
//! A full run does five pairs of what is short and varies, and two or three of what takes a minute. One pair is enough where a limit of requests decides
//! to the second how long a side takes, and for five minutes of rest, which are a mean by themselves.

use clap::ValueEnum;
use xtask::commands::bench::work::BenchWork;

/// A section of the report, or several that the same runs give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The section's id; of several, the first one's.
    pub id: &'static str,
    /// Runs of each side in a run of small sizes; 0 for what only a full run does.
    pub small: usize,
    /// Runs of each side in a full run; 0 where it does a larger size instead.
    pub full: usize,
    /// Seconds for one pair, or for the whole where Cloudwit is alone, on two cores.
    pub seconds: u64,
}

const fn row(id: &'static str, small: usize, full: usize, seconds: u64) -> Row {
    Row {
        id,
        small,
        full,
        seconds,
    }
}

/// All of them, in the order of the report.
pub const ROWS: [Row; 27] = [
    row("node-wave-1000-0ms", 2, 5, 21),
    row("node-wave-1000-20ms", 2, 3, 21),
    row("node-wave-5000-0ms", 0, 3, 55),
    row("node-wave-5000-20ms", 0, 2, 55),
    row("node-wave-200-limited", 0, 1, 70),
    row("node-wave-200-defaults", 1, 2, 50),
    row("node-wave-1000-defaults", 0, 1, 175),
    row("services-10-0ms", 2, 5, 30),
    row("services-1-0ms", 1, 3, 34),
    row("services-10-20ms", 0, 2, 40),
    row("services-1-20ms", 0, 1, 110),
    row("services-500-defaults", 0, 1, 235),
    row("services-100-defaults", 1, 0, 65),
    row("fan-out-0ms", 2, 5, 42),
    row("fan-out-20ms", 0, 3, 55),
    row("steady-1000", 1, 0, 165),
    row("steady-5000", 0, 1, 820),
    row("cold-start-warm", 2, 5, 24),
    row("cold-start-cold", 1, 3, 24),
    row("component", 1, 1, 15),
    row("passing-5000", 1, 1, 8),
    row("swap", 1, 1, 25),
    row("sizes", 1, 1, 20),
    row("growth-1000", 1, 1, 60),
    row("growth-5000", 1, 1, 75),
    row("growth-15000", 0, 1, 150),
    row("growth-50000", 0, 1, 400),
];

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Rows, and how often each side does them.
    rows: Vec<(Row, usize)>,
}

impl Plan {
    /// Of the pieces of work and sections of these names, or all if there are none; with so many pairs of each instead of the usual number.
    pub fn new(full: bool, only: &[String], pairs: Option<usize>) -> Self {
        let named = |row: &Row, name: &str| {
            row.id
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let wanted = |row: &&Row| only.is_empty() || only.iter().any(|name| named(row, name));
        let rows = ROWS.iter().filter(wanted).map(|row| {
            let usual = if full { row.full } else { row.small };
            let runs = match pairs {
                Some(pairs) if usual > 0 && !is_alone(row) => pairs,
                _ => usual,
            };
            (*row, runs)
        });
        Self {
            rows: rows.filter(|(_, runs)| *runs > 0).collect(),
        }
    }

    /// How often each side does what this section tells; 0 if it is not done.
    pub fn runs(&self, id: &str) -> usize {
        let row = self.rows.iter().find(|(row, _)| row.id == id);
        row.map_or(0, |(_, runs)| *runs)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether a piece of work is among them.
    pub fn has(&self, work: BenchWork) -> bool {
        self.rows.iter().any(|(row, _)| self::work(row) == Some(work))
    }

    /// What this section tells has been done.
    pub fn done(&mut self, id: &str) {
        self.rows.retain(|(row, _)| row.id != id);
    }

    /// How many minutes what is left will take, about.
    pub fn minutes(&self) -> u64 {
        minutes(&self.rows)
    }

    /// `node-wave 14, services 12`: how many minutes each piece of work will take, about.
    pub fn words(&self) -> String {
        let works = BenchWork::value_variants().iter().filter_map(|work| {
            let of_it = |row: &&(Row, usize)| self::work(&row.0) == Some(*work);
            let rows: Vec<(Row, usize)> = self.rows.iter().filter(of_it).copied().collect();
            (!rows.is_empty()).then(|| format!("{} {}", work.name(), minutes(&rows)))
        });
        works.collect::<Vec<String>>().join(", ")
    }
}

/// Where a section stands in the report: those that the same runs give share a place, and what has no row is the last.
pub fn place(id: &str) -> usize {
    let row = ROWS.iter().rposition(|row| id.starts_with(row.id));
    row.unwrap_or(ROWS.len())
}

fn minutes(rows: &[(Row, usize)]) -> u64 {
    let seconds = rows.iter().map(|(row, runs)| row.seconds * *runs as u64);
    seconds.sum::<u64>().div_ceil(60)
}

fn work(row: &Row) -> Option<BenchWork> {
    BenchWork::of_section(row.id)
}

/// Whether there is no peer for it, and so no pair.
fn is_alone(row: &Row) -> bool {
    use BenchWork::{Component, Growth, Passing, Sizes, Swap};
    matches!(work(row), Some(Component | Passing | Swap | Sizes | Growth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_of_work_has_rows_and_every_row_a_piece_of_work() {
        for row in &ROWS {
            assert!(work(row).is_some(), "{row:?}");
        }
        for work in BenchWork::value_variants() {
            for full in [false, true] {
                assert!(Plan::new(full, &[], None).has(*work), "{work:?}, full: {full}");
            }
        }
    }

    #[test]
    fn a_number_of_pairs_holds_for_all_that_has_a_peer() {
        let plan = Plan::new(true, &[], Some(7));
        assert_eq!(
            [
                "node-wave-5000-0ms",
                "steady-5000",
                "steady-1000",
                "swap",
                "growth-50000"
            ]
            .map(|id| plan.runs(id)),
            [7, 7, 0, 1, 1]
        );
    }

    #[test]
    fn only_what_was_requested_is_planned() {
        let plan = Plan::new(false, &["swap".to_owned(), "cold-start".to_owned()], None);
        assert_eq!(
            (plan.runs("cold-start-warm"), plan.runs("swap"), plan.runs("sizes")),
            (2, 1, 0)
        );
        assert_eq!(plan.words(), "cold-start 2, swap 1");
        let plan = Plan::new(true, &["growth-5000".to_owned()], None);
        assert_eq!((plan.runs("growth-5000"), plan.runs("growth-50000")), (1, 0));
        assert!(Plan::new(false, &["growth-50000".to_owned()], None).is_empty());
    }

    #[test]
    fn minutes_are_those_of_what_is_left() {
        let mut plan = Plan::new(true, &["steady".to_owned()], Some(2));
        assert_eq!(plan.minutes(), 28);
        plan.done("steady-5000");
        assert_eq!((plan.minutes(), plan.has(BenchWork::Steady)), (0, false));
    }
}
