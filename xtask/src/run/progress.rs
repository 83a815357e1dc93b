//! Runs a long command and shows what it is at: on a terminal in one line that changes, elsewhere in a line every ten seconds.
//!
//! Written past Rust's `eprintln!`, whose output the test harness hides: a test that has to build the API server first would
//! otherwise look hung for minutes.

use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// How many of the last lines a failure shows.
const TAIL: usize = 40;

/// A line about something that takes long. What is over within a second is not shown at all.
pub struct Progress {
    what: String,
    started: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// It begins.
    pub fn start(what: &str) -> Self {
        let terminal = std::io::stderr().is_terminal();
        Self {
            what: what.to_owned(),
            started: Instant::now(),
            shown: None,
            terminal,
        }
    }

    /// Shows the newest state, unless the last one was shown just now.
    pub fn show(&mut self, detail: &str) {
        let second = Duration::from_secs(1);
        let pause = if self.terminal || self.shown.is_none() {
            second
        } else {
            10 * second
        };
        if self.shown.unwrap_or(self.started).elapsed() >= pause {
            self.shown = Some(Instant::now());
            self.write(detail, if self.terminal { "" } else { "\n" });
        }
    }

    /// It is over.
    pub fn finish(mut self, detail: &str) {
        if self.shown.is_some() {
            self.write(detail, "\n");
        }
    }

    fn write(&mut self, detail: &str, end: &str) {
        let begin = if self.terminal { "\r\x1b[K" } else { "" };
        let separator = if detail.is_empty() { "" } else { ": " };
        let seconds = self.started.elapsed().as_secs();
        let line = format!("{begin}{seconds:>5} s  {}{separator}{detail}{end}", self.what);
        // Nobody to tell when standard error is closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

/// Runs a command to its end and gives the lines of its standard output.
///
/// `describe` sees each line of its standard error and says what to show; what it said last stays. A failure carries the last
/// lines of standard error.
pub fn run(command: &mut Command, what: &str, mut describe: impl FnMut(&str) -> Option<String>) -> Result<Vec<String>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {name}"))?;
    let (lines, incoming) = channel();
    forward(
        child.stdout.take().expect("standard output is piped"),
        lines.clone(),
        Line::Out,
    );
    forward(child.stderr.take().expect("standard error is piped"), lines, Line::Err);
    let mut progress = Progress::start(what);
    let (mut out, mut err, mut detail) = (Vec::new(), Vec::new(), String::new());
    loop {
        match incoming.recv_timeout(Duration::from_millis(500)) {
            Ok(Line::Out(line)) => out.push(line),
            Ok(Line::Err(line)) => {
                detail = describe(&line).unwrap_or(detail);
                err.push(line);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        progress.show(&detail);
    }
    let status = child.wait().with_context(|| format!("waiting for {name}"))?;
    if !status.success() {
        progress.finish("failed");
        bail!(
            "{name} failed ({status}):\n{}",
            err[err.len().saturating_sub(TAIL)..].join("\n")
        );
    }
    progress.finish("done");
    Ok(out)
}

/// Runs `cargo build` with these arguments.
///
/// # Errors
///
/// When something does not build; with the compiler's last lines.
pub fn cargo_build(arguments: &[&str], what: &str) -> Result<()> {
    let mut command = workspace::cargo();
    command.arg("build").args(arguments).env("CARGO_TERM_COLOR", "never");
    let mut crates = 0;
    run(&mut command, what, |line| {
        if let Some(name) = line.trim().strip_prefix("Compiling ") {
            crates += 1;
            return Some(format!("crate {crates}, {name}"));
        }
        line.contains("Blocking")
            .then(|| "waiting for another cargo".to_owned())
    })?;
    Ok(())
}

enum Line {
    Out(String),
    Err(String),
}

fn forward(stream: impl Read + Send + 'static, lines: Sender<Line>, wrap: fn(String) -> Line) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(|line| line.ok()) {
            if lines.send(wrap(line)).is_err() {
                break;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_returned_and_each_stderr_line_described() {
        let mut seen = Vec::new();
        let out = run(
            Command::new("sh").args(["-c", "echo a; echo x >&2; echo b; echo y >&2"]),
            "a test",
            |line| {
                seen.push(line.to_owned());
                None
            },
        );
        assert_eq!(out.unwrap(), ["a", "b"]);
        assert_eq!(seen, ["x", "y"]);
    }

    #[test]
    fn a_failure_carries_the_last_lines_of_standard_error() {
        let failed = run(
            Command::new("sh").args(["-c", "echo broken >&2; exit 3"]),
            "a test",
            |_| None,
        );
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("broken") && message.contains('3'), "{message}");
    }
}
