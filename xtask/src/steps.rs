//! Runs steps one after the other, all of them, and shows what became of each.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

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

impl Steps {
    /// Runs one step and remembers how it went.
    pub fn run(&mut self, name: &str, work: impl FnOnce() -> Result<Found>) {
        println!("\n== {name}");
        let started = Instant::now();
        let (outcome, summaries) = match work() {
            Ok(found) => (Ok(found.note), found.summaries),
            Err(error) => {
                println!("{error:#}");
                let failed = error.downcast::<TestsFailed>();
                let summaries = failed
                    .as_ref()
                    .map(|failed| failed.summaries.clone())
                    .unwrap_or_default();
                (
                    Err(failed.map_or_else(|error| first_line(&format!("{error:#}")), |failed| failed.to_string())),
                    summaries,
                )
            }
        };
        self.done.push(Step {
            name: name.to_owned(),
            time: started.elapsed(),
            outcome,
            summaries,
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
}

impl std::fmt::Display for TestsFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", counted(&self.summaries))
    }
}

impl std::error::Error for TestsFailed {}

/// What test runners said: shown as it comes, with the summary line of each kept.
#[derive(Debug, Default)]
pub struct Outputs {
    runner: String,
    summaries: Vec<String>,
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

    /// All summaries, and how many tests that are.
    ///
    /// # Errors
    ///
    /// When not all passed.
    pub fn finish(self, passed: bool) -> Result<Found> {
        let summaries = self.summaries;
        if !passed {
            return Err(TestsFailed { summaries }.into());
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
}
