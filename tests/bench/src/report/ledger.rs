//! Takes each section as soon as it is measured: shows it, writes it into the report, and tells how long the rest will take. What could not be measured is
//! told at the end, and makes the run fail.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::machine::Machine;
use crate::measure::Section;
use crate::plan::Plan;
use crate::report;
use crate::report::publish::{self, Stamp};
use crate::works::growth::summary;

/// Of one run of the benchmark.
#[derive(Debug)]
pub struct Ledger {
    folder: PathBuf,
    machine: Machine,
    stamp: Stamp,
    left: Plan,
    sections: Vec<Section>,
    missing: Vec<String>,
}

impl Ledger {
    /// Of a run that does `plan`, whose report goes into `folder`. Says on which machine, and how long it will take.
    ///
    /// # Errors
    ///
    /// When the report that is there cannot be read.
    pub fn open(folder: PathBuf, machine: Machine, plan: Plan) -> Result<Self> {
        println!("{}", machine.sentence());
        publish::warn_of_another(&folder, &machine)?;
        println!("{}: {}", about(plan.minutes()), plan.words());
        Ok(Self {
            folder,
            machine,
            stamp: Stamp::now(),
            left: plan,
            sections: Vec::new(),
            missing: Vec::new(),
        })
    }

    /// Measures one section, or several that the same runs give, and takes what they come to; does nothing if `id`, the first one's, is not planned.
    ///
    /// # Errors
    ///
    /// When the report cannot be written.
    pub async fn measure(&mut self, id: &str, measuring: impl Future<Output = Result<Vec<Section>>>) -> Result<()> {
        if self.left.runs(id) == 0 {
            return Ok(());
        }
        self.take(id, measuring.await)
    }

    /// Takes what one section, or several that the same runs give, came to; `id` is the first one's.
    ///
    /// # Errors
    ///
    /// When the report cannot be written.
    pub fn take(&mut self, id: &str, measured: Result<Vec<Section>>) -> Result<()> {
        self.left.done(id);
        match measured {
            Ok(sections) => {
                for section in &sections {
                    println!("{}", report::terminal(section));
                }
                // At once, so that one that fails later costs nothing that was measured.
                publish::publish(&self.folder, &self.machine, &self.stamp, sections.clone())?;
                self.sections.extend(sections);
            }
            Err(error) => {
                println!("\n{id}: not measured: {error:#}");
                self.missing.push(id.to_owned());
            }
        }
        let left = self.left.minutes();
        if left > 0 {
            println!("{} left", about(left));
        }
        Ok(())
    }

    /// The end: what missed its goal, and where the report is.
    ///
    /// # Errors
    ///
    /// When something was not measured.
    pub fn close(self) -> Result<()> {
        if let Some(summary) = summary::of(&self.sections) {
            println!("{}", report::terminal(&summary));
        }
        for line in report::missed(&self.sections) {
            println!("goal missed: {line}");
        }
        println!("written: {}", self.folder.display());
        if !self.missing.is_empty() {
            bail!("not measured: {}", self.missing.join(", "));
        }
        Ok(())
    }
}

fn about(minutes: u64) -> String {
    let plural = if minutes == 1 { "" } else { "s" };
    format!("about {minutes} minute{plural}")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;
    use crate::measure::{Measure, Unit};

    fn ledger(folder: PathBuf) -> Ledger {
        Ledger::open(
            folder,
            Machine::default(),
            Plan::new(false, &["sizes".to_owned()], None),
        )
        .unwrap()
    }

    #[tokio::test]
    async fn what_is_not_planned_is_not_even_begun() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = ledger(folder.path().to_owned());
        let begun = std::cell::Cell::new(false);
        for (id, planned) in [("swap", false), ("sizes", true)] {
            let measuring = async {
                begun.set(true);
                Err(anyhow!("broken"))
            };
            ledger.measure(id, measuring).await.unwrap();
            assert_eq!(begun.get(), planned, "{id}");
        }
        assert_eq!(ledger.missing, ["sizes"]);
    }

    #[test]
    fn measurements_are_reported_despite_other_failures() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = ledger(folder.path().to_owned());
        let mut section = Section::new("sizes", "Sizes", "");
        section.measures = vec![Measure::new("x", "x", Unit::Count).ours([1.0])];
        ledger.take("swap", Err(anyhow!("no swap"))).unwrap();
        ledger.take("sizes", Ok(vec![section])).unwrap();
        assert_eq!(ledger.left.minutes(), 0);
        let page = std::fs::read_to_string(folder.path().join("figures.md")).unwrap();
        assert!(page.contains("## Sizes"), "{page}");
        assert_eq!(ledger.close().unwrap_err().to_string(), "not measured: swap");
    }

    #[test]
    fn a_run_without_failures_ends_well() {
        let folder = tempfile::tempdir().unwrap();
        ledger(folder.path().to_owned()).close().unwrap();
    }
}
