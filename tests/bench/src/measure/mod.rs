//! What was measured: a section is one piece of work, a measure one figure of it, with all samples of ours and of the peer.
//!
//! Every file that measures something gives sections; `statistics` makes medians and ratios of them, `report`, `report::json` and the charts show them.

pub mod family;
pub mod meter;
pub mod observer;
pub mod pairs;
pub mod refreshes;
pub mod requests;
pub mod statistics;

use serde::{Deserialize, Serialize};

/// One piece of work, done several times under the same conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Stable, in kebab case: `node-wave-1000-0ms`. A newer section replaces the one of the same id in the results.
    pub id: String,
    /// A line for the reader: `1,000 Nodes that wait, limits lifted`.
    pub title: String,
    /// Flags and settings of both sides, what is counted from where to where.
    pub conditions: String,
    /// The day, `2026-11-21`. The report fills it in.
    #[serde(default)]
    pub taken: String,
    /// The commit that was measured. The report fills it in.
    #[serde(default)]
    pub commit: String,
    /// The figures.
    pub measures: Vec<Measure>,
    /// What the figures say, in sentences that are derived from them; most sections have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How figures grow with the size of the cluster; most sections have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Stable within its section: `time`, `cpu`, `api-requests-per-node`.
    pub id: String,
    /// What it is: `CPU time`.
    pub title: String,
    /// In which the samples are.
    pub unit: Unit,
    /// Which direction is the good one.
    pub better: Better,
    /// Cloudwit's.
    pub ours: Samples,
    /// The peer's; `None` where there is nothing to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Samples>,
    /// What it shall be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<Goal>,
    /// What a reader has to know about this figure; often empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What the runs of one side gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// One value for each run that reached its end, in the order of the runs.
    pub values: Vec<f64>,
    /// Why each of the other runs did not. A run that fails has no value in any measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// In which a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Millionths of a second.
    Microseconds,
    /// Bytes, shown as KiB or MiB.
    Bytes,
    /// A number of things, or of things per thing.
    Count,
    /// Things per second.
    PerSecond,
}

/// Which direction is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
    /// Neither: a part of another figure, which tells where that comes from. It has no ratio.
    Neither,
}

/// What a figure shall be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// So many times as good as the peer's: `3.0` for CPU time is a third of it.
    Times(f64),
    /// Not more than this, in the unit of the measure.
    AtMost(f64),
}

/// How a figure grows: points of (size of the cluster, value).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The chart it belongs to: lines of the same chart are drawn together. `memory`, `CPU time`.
    pub chart: String,
    /// In the legend: `Cloudwit, resident`.
    pub label: String,
    /// Of the values.
    pub unit: Unit,
    /// In the order of the sizes.
    pub points: Vec<(f64, f64)>,
}

impl Section {
    /// Without figures yet.
    pub fn new(id: impl Into<String>, title: impl Into<String>, conditions: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            conditions: conditions.into(),
            taken: String::new(),
            commit: String::new(),
            measures: Vec::new(),
            notes: Vec::new(),
            lines: Vec::new(),
        }
    }
}

impl Measure {
    /// Less is better, no peer, no goal: what most figures of ours alone are.
    pub fn new(id: impl Into<String>, title: impl Into<String>, unit: Unit) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            unit,
            better: Better::Less,
            ours: Samples::default(),
            peer: None,
            goal: None,
            note: String::new(),
        }
    }

    /// More is better.
    #[must_use]
    pub fn more(mut self) -> Self {
        self.better = Better::More;
        self
    }

    /// A part of another figure.
    #[must_use]
    pub fn part(mut self) -> Self {
        self.better = Better::Neither;
        self
    }

    /// With values of ours.
    #[must_use]
    pub fn ours(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.ours.values.extend(values);
        self
    }

    /// With values of the peer.
    #[must_use]
    pub fn peer(mut self, values: impl IntoIterator<Item = f64>) -> Self {
        self.peer.get_or_insert_default().values.extend(values);
        self
    }

    /// With what it shall be.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    /// With a remark.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

impl Unit {
    /// A value with its unit, with as many digits as such figures deserve: three.
    pub fn shown(self, value: f64) -> String {
        match self {
            Self::Seconds if value.abs() < 1.0 => format!("{} ms", digits(value * 1e3)),
            Self::Seconds => format!("{} s", digits(value)),
            Self::Microseconds => format!("{} us", digits(value)),
            Self::Bytes if value < 1_048_576.0 => format!("{} KiB", digits(value / 1024.0)),
            Self::Bytes => format!("{} MiB", digits(value / 1_048_576.0)),
            Self::Count => digits(value),
            Self::PerSecond => format!("{}/s", digits(value)),
        }
    }
}

/// Three digits, whole numbers whole, thousands parted by commas.
fn digits(value: f64) -> String {
    let size = value.abs();
    if size >= 99.5 || value.fract() == 0.0 {
        return thousands(value.round());
    }
    let places = if size >= 9.95 { 1 } else { 2 };
    let text = format!("{value:.places$}");
    // 0.004 would be 0.00, which says that there was nothing.
    if text.trim_matches(['0', '.', '-']).is_empty() {
        return format!("{value:.1e}");
    }
    text
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_with_three_digits_and_their_unit() {
        let shown = [
            (Unit::Seconds, 0.4567, "457 ms"),
            (Unit::Seconds, 0.0123, "12.3 ms"),
            (Unit::Seconds, 13.94, "13.9 s"),
            (Unit::Seconds, 1.5, "1.50 s"),
            (Unit::Microseconds, 57.23, "57.2 us"),
            (Unit::Bytes, 122_880.0, "120 KiB"),
            (Unit::Bytes, 119_537_664.0, "114 MiB"),
            (Unit::Count, 24_000.0, "24,000"),
            (Unit::Count, 1_234_567.0, "1,234,567"),
            (Unit::Count, 2.0, "2"),
            (Unit::Count, 2.25, "2.25"),
            (Unit::Count, 0.0, "0"),
            (Unit::Count, 0.001, "1.0e-3"),
            (Unit::PerSecond, 359.7, "360/s"),
        ];
        for (unit, value, text) in shown {
            assert_eq!(unit.shown(value), text);
        }
    }

    #[test]
    fn a_section_survives_a_round_trip_through_json() {
        let mut section = Section::new("wave", "A wave", "defaults");
        let mut measure = Measure::new("cpu", "CPU time", Unit::Seconds).ours([1.0, 2.0]);
        measure.peer = Some(Samples {
            values: vec![3.0],
            failures: vec!["timed out".into()],
        });
        section.measures.push(measure.goal(Goal::Times(3.0)).note("a remark"));
        let text = serde_json::to_string(&section).unwrap();
        assert!(text.contains(r#""goal":{"times":3.0}"#), "{text}");
        assert_eq!(serde_json::from_str::<Section>(&text).unwrap(), section);
    }
}
