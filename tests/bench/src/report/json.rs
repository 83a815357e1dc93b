//! The report as a program reads it: all samples, and what they come to. Read again to put newer sections in the place of older ones, so that a
//! benchmark of an hour can be run in pieces.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::machine::Machine;
use crate::measure::statistics::{Verdict, ratio, summary, verdict};
use crate::measure::{Measure, Section};

/// All that was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// On which machine.
    pub machine: Machine,
    /// In the order of the report.
    pub sections: Vec<Section>,
}

impl Results {
    /// Puts a newer section in the place of the one with the same id, or at the end.
    pub fn put(&mut self, section: Section) {
        match self.sections.iter_mut().find(|old| old.id == section.id) {
            Some(old) => *old = section,
            None => self.sections.push(section),
        }
    }

    /// As text, with medians, spreads, ratios and verdicts beside the samples.
    ///
    /// # Errors
    ///
    /// Never in practice: what is in it can be written as JSON.
    pub fn write(&self) -> Result<String> {
        let mut all = serde_json::to_value(self).context("writing the results as JSON")?;
        for (section, value) in self.sections.iter().zip(array(&mut all, "sections")) {
            for (measure, value) in section.measures.iter().zip(array(value, "measures")) {
                add_statistics(measure, value);
            }
        }
        let mut text = serde_json::to_string_pretty(&all).context("writing the results as JSON")?;
        text.push('\n');
        Ok(text)
    }

    /// What [`write`](Self::write) wrote.
    ///
    /// # Errors
    ///
    /// When it is something else.
    pub fn read(text: &str) -> Result<Self> {
        serde_json::from_str(text).context("these are no results of this benchmark")
    }
}

fn array<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn add_statistics(measure: &Measure, value: &mut Value) {
    for (side, samples) in [("ours", Some(&measure.ours)), ("peer", measure.peer.as_ref())] {
        if let Some(summary) = samples.and_then(summary) {
            value[side]["median"] = json!(summary.median);
            value[side]["min"] = json!(summary.min);
            value[side]["max"] = json!(summary.max);
        }
    }
    if let Some(ratio) = ratio(measure) {
        // JSON has no infinity: null where ours needs nothing at all.
        value["ratio"] = json!(ratio);
    }
    if let Some(verdict) = verdict(measure) {
        value["verdict"] = json!(match verdict {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Unknown => "not-measured",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Goal, Samples, Unit};

    fn results() -> Results {
        let mut section = Section::new("wave", "A wave", "defaults");
        let mut measure = Measure::new("cpu", "CPU time", Unit::Seconds).ours([1.0, 2.0, 3.0]);
        measure.peer = Some(Samples {
            values: vec![3.0],
            failures: Vec::new(),
        });
        section.measures.push(measure.goal(Goal::Times(2.0)));
        Results {
            machine: Machine::default(),
            sections: vec![section],
        }
    }

    #[test]
    fn samples_are_there_and_what_they_come_to() {
        let text = results().write().unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let cpu = &value["sections"][0]["measures"][0];
        assert_eq!(
            cpu["ours"],
            json!({ "values": [1.0, 2.0, 3.0], "median": 2.0, "min": 1.0, "max": 3.0 })
        );
        assert_eq!((&cpu["ratio"], &cpu["verdict"]), (&json!(1.5), &json!("missed")));
    }

    #[test]
    fn what_was_written_is_read_again() {
        assert_eq!(Results::read(&results().write().unwrap()).unwrap(), results());
        assert!(Results::read("{}").is_err());
    }

    #[test]
    fn a_newer_section_takes_the_place_of_the_older_one() {
        let mut results = results();
        results.put(Section::new("calm", "Calm", ""));
        results.put(Section::new("wave", "Newer", ""));
        let titles: Vec<&str> = results.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["Newer", "Calm"]);
    }
}
