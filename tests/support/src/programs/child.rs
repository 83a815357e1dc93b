//! A child process that cannot outlive us: on a leash, with its output in a log file.
//!
//! A shell stands between us and the program. When our end of its standard input closes, in whichever way we end, it tells the program
//! to end, and kills it five seconds later.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

/// Says its process id before the program says anything, since the shell has another. The program gets no standard input.
const LEASH: &str = r#"exec 3<&0
(echo "PID=$BASHPID"; exec "$@" 3<&- </dev/null) &
child=$!
(
  cat <&3
  kill "$child"
  for _ in {1..50}; do kill -0 "$child" || exit; sleep 0.1; done
  kill -KILL "$child"
) >/dev/null 2>&1 &
wait "$child""#;

/// How many of the last lines of a log a failure shows.
const TAIL: usize = 15;

/// How long a shell may take to say something, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A running program. Dropping it ends the program.
#[derive(Debug)]
pub struct Child {
    name: String,
    log: PathBuf,
    pid: u32,
    shell: Process,
    leash: Option<ChildStdin>,
    said: Receiver<String>,
}

impl Child {
    /// Starts a program; both its outputs go to `log`.
    ///
    /// # Errors
    ///
    /// When the log cannot be made or the program cannot be started.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !program.is_file() {
            bail!(
                "there is no program {}: build it with cargo build --bin {name}",
                program.display()
            );
        }
        let file = File::create(log).with_context(|| format!("making {}", log.display()))?;
        let mut shell = Command::new("bash")
            .args(["-c", LEASH, "leash"])
            .arg(program)
            .args(arguments)
            // A group of its own: Ctrl-C reaches us alone, and we end the others in order.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file.try_clone().context("opening a log twice")?)
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let leash = shell.stdin.take();
        let said = copy_lines(shell.stdout.take().expect("standard output is piped"), file);
        let mut child = Self {
            name,
            log: log.to_owned(),
            pid: 0,
            shell,
            leash,
            said,
        };
        let pid = child.said("PID=", SOON)?;
        child.pid = pid.parse().with_context(|| format!("{pid:?} is no process id"))?;
        Ok(child)
    }

    /// Waits for a line of standard output that begins with `key` and gives the rest of it.
    ///
    /// # Errors
    ///
    /// When the program ends or the time is over first; with the end of the log.
    pub fn said(&self, key: &str, timeout: Duration) -> Result<String> {
        loop {
            let line = self.said.recv_timeout(timeout).map_err(|_| {
                anyhow!(
                    "{} did not say {key} within {timeout:?}; the end of its log:\n{}",
                    self.name,
                    self.log_end()
                )
            })?;
            if let Some(rest) = line.strip_prefix(key) {
                return Ok(rest.to_owned());
            }
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it is there; for those who share it. [`ended`](Self::ended) knows more.
    pub fn runs(&self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// Its exit status once it has ended.
    ///
    /// # Errors
    ///
    /// When the system does not tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.shell
            .try_wait()
            .with_context(|| format!("looking after {}", self.name))
    }

    /// Sends it a signal, such as `TERM`, `STOP` or `CONT`.
    ///
    /// # Errors
    ///
    /// When there is no such process any more.
    pub fn signal(&self, name: &str) -> Result<()> {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.pid.to_string()])
            .status()
            .context("starting kill")?;
        if !sent.success() {
            bail!(
                "{} (process {}) got no {name}; the end of its log:\n{}",
                self.name,
                self.pid,
                self.log_end()
            );
        }
        Ok(())
    }

    /// Kills it as the kernel kills a process without memory: with SIGKILL, so that it can finish nothing. Returns when it is gone.
    ///
    /// # Errors
    ///
    /// When there is no such process any more.
    pub fn kill(mut self) -> Result<()> {
        let pid = self.pid.to_string();
        let sent = Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .context("starting kill")?;
        if !sent.success() {
            bail!(
                "{} (process {pid}) could not be killed; the end of its log:\n{}",
                self.name,
                self.log_end()
            );
        }
        self.shell
            .wait()
            .with_context(|| format!("waiting for {}", self.name))?;
        Ok(())
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its output.
    pub fn log_end(&self) -> String {
        log_end(&self.log)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.leash.take());
        // The leash ends it; a shell that cannot be awaited is beyond our help.
        let _ = self.shell.wait();
    }
}

/// Copies lines to the log and hands them on, until the stream ends.
fn copy_lines(stream: impl std::io::Read + Send + 'static, mut log: File) -> Receiver<String> {
    let (lines, said) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(|line| line.ok()) {
            // A full disk loses lines of the log, and nobody may listen any more; the program goes on in both cases.
            let _ = writeln!(log, "{line}");
            let _ = lines.send(line);
        }
    });
    said
}

/// The last lines of a log.
pub fn log_end(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> (Child, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let arguments = ["-c".to_owned(), script.to_owned()];
        (
            Child::start(Path::new("/bin/sh"), &arguments, &dir.path().join("log")).unwrap(),
            dir,
        )
    }

    fn is_alive(pid: u32) -> bool {
        Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn dropping_it_ends_the_program() {
        let (child, _dir) = start("echo READY; exec sleep 1000");
        child.said("READY", SOON).unwrap();
        let pid = child.pid();
        assert!(is_alive(pid) && child.runs());
        drop(child);
        assert!(!is_alive(pid));
    }

    #[test]
    fn a_killed_program_finishes_nothing() {
        let (child, _dir) = start("trap 'echo finished' EXIT TERM; echo READY; while :; do sleep 0.1; done");
        child.said("READY", SOON).unwrap();
        let (pid, log) = (child.pid(), child.log().to_owned());
        child.kill().unwrap();
        assert!(!is_alive(pid));
        let log = log_end(&log);
        assert!(log.contains("READY") && !log.contains("finished"), "{log}");
    }

    #[test]
    fn output_is_awaited_and_logged() {
        let (child, _dir) = start("echo PORT=80; echo oh >&2; exec sleep 1000");
        assert_eq!(child.said("PORT=", SOON).unwrap(), "80");
        assert!(child.log_end().contains("PORT=80"), "{}", child.log_end());
    }

    #[test]
    fn early_program_exit_is_an_error_with_log_tail() {
        let (mut child, _dir) = start("echo broken; exit 3");
        let error = child.said("READY", SOON).unwrap_err().to_string();
        assert!(error.contains("broken"), "{error}");
        let status = child.shell.wait().unwrap();
        assert_eq!(child.ended().unwrap(), Some(status));
        assert_eq!(status.code(), Some(3));
    }
}
