//! Runs steps one after the other, all of them, and shows what became of each.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lanes;

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

/// Some tests failed; what the runners said.
#[derive(Debug)]
struct TestsFailed {
    summaries: Vec<String>,
    failures: Vec<String>,
}

impl std::fmt::Display for TestsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", counted(&self.summaries))
    }
}

impl std::error::Error for TestsFailed {}

/// How many lines of a failed test are repeated below the table.
const FAILURE_LINES: usize = 60;

/// What test runners said: shown as it comes, with the summary line of each and the output of failed tests kept.
#[derive(Debug, Default)]
pub struct Outputs {
    runner: String,
    summaries: Vec<String>,
    failures: Vec<String>,
    /// Lines that are still to be kept of the failed test whose output is being read.
    wanted: usize,
}

impl Outputs {
    /// Runs `cargo test`; true when no test failed.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn of(&mut self, command: &mut Command) -> Result<bool> {
        let name = describe(command);
        // One pipe for both, so that the line with a runner's name stays in front of the runner's own lines.
        let (reader, writer) = std::io::pipe().context("making a pipe")?;
        command
            .stdin(Stdio::null())
            .stdout(writer.try_clone().context("making a pipe")?)
            .stderr(writer);
        let mut child = command.spawn().with_context(|| format!("starting {name}"))?;
        // Drops our ends of the pipe, or it would never end.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        for line in BufReader::new(reader).lines() {
            self.show(&line.with_context(|| format!("reading what {name} says"))?);
        }
        let status = child.wait().with_context(|| format!("waiting for {name}"))?;
        Ok(status.success())
    }

    /// Shows a line and keeps it if it is a summary.
    pub fn show(&mut self, line: &str) {
        println!("{line}");
        self.read(line);
    }

    fn read(&mut self, line: &str) {
        let text = line.trim();
        self.read_failure(line);
        if let Some(runner) = text
            .strip_prefix("Running ")
            .or_else(|| text.strip_prefix("Doc-tests "))
        {
            let binary = runner.rsplit_once('(').map(|(_, path)| path.trim_end_matches(')'));
            let file = binary
                .and_then(|path| path.rsplit('/').next())
                .and_then(|file| file.rsplit_once('-'));
            self.runner = file.map_or_else(|| format!("{runner} (documentation)"), |(name, _)| name.to_owned());
        } else if let Some(summary) = text.strip_prefix("test result: ")
            && !summary.starts_with("ok. 0 passed")
        {
            self.summaries.push(format!("{}: {summary}", self.runner));
        }
    }

    /// A failed test's output stands between `---- NAME stdout ----` and the next such line or the list of all that failed.
    fn read_failure(&mut self, line: &str) {
        if let Some(test) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            self.failures.push(format!("{}: {test}", self.runner));
            self.wanted = FAILURE_LINES;
        } else if line == "failures:" || line.starts_with("test result: ") {
            self.wanted = 0;
        } else if self.wanted > 0
            && let Some(failure) = self.failures.last_mut()
        {
            self.wanted -= 1;
            let cut = if self.wanted == 0 { "\n  ..." } else { "" };
            let _ = write!(failure, "\n  {line}{cut}");
        }
    }

    /// All summaries, and how many tests that are.
    ///
    /// # Errors
    ///
    /// When not all passed.
    pub fn finish(self, passed: bool) -> Result<Found> {
        let Self {
            summaries, failures, ..
        } = self;
        if !passed {
            return Err(TestsFailed { summaries, failures }.into());
        }
        Ok(Found {
            note: counted(&summaries),
            summaries,
        })
    }
}

/// `12 passed, 1 failed, 0 ignored` over all summary lines.
fn counted(summaries: &[String]) -> String {
    let sum = |word: &str| -> u64 {
        let numbers = summaries
            .iter()
            .flat_map(|line| line.split([';', '.']))
            .filter_map(|part| part.trim().strip_suffix(word));
        numbers.filter_map(|number| number.trim().parse::<u64>().ok()).sum()
    };
    format!(
        "{} passed, {} failed, {} ignored",
        sum("passed"),
        sum("failed"),
        sum("ignored")
    )
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

    #[test]
    fn the_runners_summaries_are_kept_with_their_names() {
        let mut outputs = Outputs::default();
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/cloudwit_model-6afbd1d1)",
            "test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "     Running unittests src/main.rs (target/debug/deps/empty-6afbd1d1)",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "   Doc-tests cloudwit_model",
            "test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
        ] {
            outputs.read(line);
        }
        let summaries = outputs.summaries;
        assert_eq!(summaries.len(), 2);
        assert!(
            summaries[0].starts_with("cloudwit_model: ok. 5 passed"),
            "{summaries:?}"
        );
        assert!(
            summaries[1].starts_with("cloudwit_model (documentation): FAILED"),
            "{summaries:?}"
        );
        assert_eq!(counted(&summaries), "6 passed, 3 failed, 2 ignored");
    }

    #[test]
    fn output_of_a_failing_runner_is_kept() {
        let script =
            "echo '     Running x (a/b-c)'; echo 'test result: FAILED. 1 passed; 2 failed; 0 ignored'; exit 101";
        let mut outputs = Outputs::default();
        let passed = outputs.of(Command::new("sh").args(["-c", script])).unwrap();
        let error = outputs.finish(passed).unwrap_err();
        assert_eq!(error.to_string(), "1 passed, 2 failed, 0 ignored");
    }

    #[test]
    fn what_failed_tests_said_ends_the_table() {
        let mut steps = Steps::default();
        steps.run("tests", || {
            let mut outputs = Outputs::default();
            for line in [
                "     Running unittests src/lib.rs (target/debug/deps/cloudwit_model-6afbd1d1)",
                "test good ... ok",
                "test bad ... FAILED",
                "failures:",
                "---- bad stdout ----",
                "assertion failed: 1 == 2",
                "failures:",
                "    bad",
                "test result: FAILED. 1 passed; 1 failed; 0 ignored",
                "one line more",
            ] {
                outputs.read(line);
            }
            (0..2 * FAILURE_LINES).for_each(|_| outputs.read_failure("x"));
            outputs.read_failure("---- long stdout ----");
            (0..2 * FAILURE_LINES).for_each(|_| outputs.read_failure("x"));
            outputs.finish(false)
        });
        let table = steps.table();
        let long = "  x\n".repeat(FAILURE_LINES);
        let end = format!(
            "\n\ncloudwit_model: bad stdout\n  assertion failed: 1 == 2\n\ncloudwit_model: long stdout\n{long}  ...\n"
        );
        assert!(table.ends_with(&end), "{table}");
    }
}
