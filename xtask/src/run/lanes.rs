//! Runs programs at the same time, some at once, each with its output in one piece.

use std::collections::VecDeque;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

/// So many run at the same time. Most wait for other processes most of the time: with two, a quarter of the time of two processors was idle.
pub const AT_ONCE: usize = 3;

/// Does `work` with each job, in their order, so many at once.
///
/// # Errors
///
/// The first of `work`, after which that lane does nothing more.
pub fn run<J: Send>(
    lanes: usize,
    jobs: impl IntoIterator<Item = J>,
    work: impl Fn(J) -> Result<()> + Sync,
) -> Result<()> {
    let waiting = Mutex::new(jobs.into_iter().collect::<VecDeque<J>>());
    let lane = || -> Result<()> {
        loop {
            let Some(job) = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else {
                return Ok(());
            };
            work(job)?;
        }
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        let ends = lanes
            .into_iter()
            .map(|lane| lane.join().ok().context("a thread that runs programs panicked")?);
        ends.collect::<Result<Vec<()>>>().map(drop)
    })
}

/// What a program says on both outputs, in order, and whether all went well; a failure's last line says so.
///
/// # Errors
///
/// When it cannot be started or read.
pub fn captured(name: &str, mut command: Command) -> Result<(String, bool)> {
    let (reader, writer) = std::io::pipe().context("making a pipe")?;
    command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("making a pipe")?)
        .stderr(writer);
    let mut child = command.spawn().with_context(|| format!("starting {name}"))?;
    // Drops our ends of the pipe, or it would never end.
    drop(command);
    let text = std::io::read_to_string(reader).with_context(|| format!("reading what {name} says"))?;
    let status = child.wait().with_context(|| format!("waiting for {name}"))?;
    let end = if status.success() {
        String::new()
    } else {
        format!("\n{name} failed ({status})\n")
    };
    Ok((text + &end, status.success()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_done_and_an_error_is_given_back() {
        let done = Mutex::new(Vec::new());
        let note = |job: u32| {
            done.lock().unwrap().push(job);
            anyhow::ensure!(job != 7, "seven");
            Ok(())
        };
        run(3, 0..7, note).unwrap();
        done.lock().unwrap().sort_unstable();
        assert_eq!(*done.lock().unwrap(), (0..7).collect::<Vec<u32>>());
        assert_eq!(run(2, 0..20, note).unwrap_err().to_string(), "seven");
        assert_eq!(done.lock().unwrap().len(), 27, "the other lane goes on");
    }

    #[test]
    fn captured_output_has_both_streams_and_exit_status() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo hello; echo oh >&2; exit 3"]);
        let (text, passed) = captured("sh", command).unwrap();
        assert!(!passed);
        assert_eq!(text, "hello\noh\n\nsh failed (exit status: 3)\n");
    }
}
