//! Runs steps one after the other, all of them, and shows what became of each.

pub mod outputs;

use std::fmt::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run::lanes;
use crate::run::steps::outputs::TestsFailed;

/// The steps so far.
#[derive(Debug, Default)]
pub struct Steps {
    done: Vec<Step>,
    left_out: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: String,
    time: Duration,
    /// A few words for the table, or why it failed.
    outcome: Result<String, String>,
    /// The summary lines of the test runners.
    summaries: Vec<String>,
    /// What the tests that failed said.
    failures: Vec<String>,
}

/// What a step found.
#[derive(Debug, Default)]
pub struct Found {
    /// A few words for the table.
    pub note: String,
    /// The summary lines of the test runners.
    pub summaries: Vec<String>,
}

impl From<String> for Found {
    fn from(note: String) -> Self {
        Self {
            note,
            summaries: Vec::new(),
        }
    }
}

/// A program that is a step.
#[derive(Debug)]
pub struct Job {
    /// The step's.
    pub name: String,
    /// Succeeds with exit code 0.
    pub command: Command,
    /// A few words for the table when it has succeeded.
    pub note: &'static str,
}

impl Steps {
    /// Runs programs as steps, some at the same time; each is shown when it has ended.
    pub fn run_together(&mut self, jobs: Vec<Job>) {
        let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
        let done = Mutex::new(Vec::new());
        let ran = lanes::run(lanes::AT_ONCE, jobs, |Job { name, command, note }| {
            let started = Instant::now();
            let (text, passed) = lanes::captured(&name, command)?;
            let outcome = match passed {
                true => Ok(note.to_owned()),
                false => Err("see above".to_owned()),
            };
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            println!("\n== {name}\n{text}");
            done.push(Step {
                name,
                time: started.elapsed(),
                outcome,
                summaries: Vec::new(),
                failures: Vec::new(),
            });
            Ok(())
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|step| names.iter().position(|name| *name == step.name));
        self.done.append(&mut done);
        if let Err(error) = ran {
            self.run("programs at the same time", || Err(error));
        }
    }

    /// Runs one step and remembers how it went.
    pub fn run(&mut self, name: &str, work: impl FnOnce() -> Result<Found>) {
        println!("\n== {name}");
        let started = Instant::now();
        let (outcome, summaries, failures) = match work() {
            Ok(found) => (Ok(found.note), found.summaries, Vec::new()),
            Err(error) => {
                println!("{error:#}");
                match error.downcast::<TestsFailed>() {
                    Ok(failed) => (Err(failed.to_string()), failed.summaries, failed.failures),
                    Err(error) => (Err(first_line(&format!("{error:#}"))), Vec::new(), Vec::new()),
                }
            }
        };
        self.done.push(Step {
            name: name.to_owned(),
            time: started.elapsed(),
            outcome,
            summaries,
            failures,
        });
    }

    /// Remembers that something was left out on purpose, and why.
    pub fn leave_out(&mut self, what_and_why: &str) {
        self.left_out.push(what_and_why.to_owned());
    }

    /// Prints the table.
    ///
    /// # Errors
    ///
    /// When a step failed; names all that did.
    pub fn finish(self) -> Result<()> {
        print!("{}", self.table());
        let failed: Vec<&str> = self
            .done
            .iter()
            .filter(|step| step.outcome.is_err())
            .map(|step| step.name.as_str())
            .collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = String::from("\n");
        for (step, summary) in self
            .done
            .iter()
            .flat_map(|step| step.summaries.iter().map(move |line| (step, line)))
        {
            let _ = writeln!(text, "{}: {summary}", step.name);
        }
        let width = self.done.iter().map(|step| step.name.len()).max().unwrap_or_default();
        let _ = writeln!(text, "\n{:width$}  result  {:>7}", "step", "time");
        for Step {
            name, time, outcome, ..
        } in &self.done
        {
            let (result, note) = match outcome {
                Ok(note) => ("ok", note),
                Err(why) => ("FAILED", why),
            };
            let line = format!("{name:width$}  {result:6}  {:>5.1} s  {note}", time.as_secs_f64());
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for what in &self.left_out {
            let _ = writeln!(text, "left out: {what}");
        }
        // Last, so that the end of a long log shows why it ended badly.
        for failure in self.done.iter().flat_map(|step| &step.failures) {
            let _ = writeln!(text, "\n{failure}");
        }
        text
    }
}

/// Runs a command with its output shown as it comes.
///
/// # Errors
///
/// When it cannot be started or fails.
pub fn shown(command: &mut Command) -> Result<Found> {
    let name = describe(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("starting {name}"))?;
    if !status.success() {
        bail!("`{name}` failed ({status})");
    }
    Ok(Found::default())
}

fn describe(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    command.get_args().fold(program, |text, argument| {
        format!("{text} {}", argument.to_string_lossy())
    })
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_does_not_stop_the_next_and_is_named_at_the_end() {
        let mut steps = Steps::default();
        steps.run("first", || bail!("broken\nin detail"));
        steps.run("second", || Ok("fine".to_owned().into()));
        steps.leave_out("third, since it is slow");
        let table = steps.table();
        assert!(
            table.contains("first   FAILED") && table.contains("broken\n"),
            "{table}"
        );
        assert!(table.contains("second  ok") && table.contains("fine"), "{table}");
        assert!(table.contains("left out: third, since it is slow"), "{table}");
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: first");
    }

    #[test]
    fn programs_at_the_same_time_are_listed_in_their_order() {
        let job = |name: &str, script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Job {
                name: name.to_owned(),
                command,
                note: "fine",
            }
        };
        let mut steps = Steps::default();
        steps.run_together(vec![job("one", "read x"), job("two", "exit 0"), job("three", "exit 3")]);
        let outcomes: Vec<(&str, bool)> = steps
            .done
            .iter()
            .map(|step| (&*step.name, step.outcome.is_ok()))
            .collect();
        assert_eq!(outcomes, [("one", false), ("two", true), ("three", false)]);
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: one, three");
    }
}
