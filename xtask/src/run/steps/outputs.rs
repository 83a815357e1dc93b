//! What test runners say: shown as it comes, and kept as far as the table of steps repeats it.

use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::run::steps::{Found, describe};

/// Some tests failed; what the runners said.
#[derive(Debug)]
pub(super) struct TestsFailed {
    pub(super) summaries: Vec<String>,
    pub(super) failures: Vec<String>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::steps::Steps;

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
