//! Programs of the system: run with a time limit, no input and bounded output.

use std::ffi::OsStr;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::runtime::Handle;

/// Output of a program that is kept; what is more is read and dropped.
const OUTPUT: u64 = 16 * 1024;

/// Bytes of the output that go into a message.
const TOLD: usize = 512;

/// Where programs are looked for: the places of all distributions.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

impl Ended {
    /// For people: the exit code, and the end of what it said.
    pub fn told(&self) -> String {
        let code = self.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string());
        let said = format!("{} {}", self.output.trim(), self.errors.trim());
        let said: String = said.trim().replace(|sign: char| sign.is_control(), " ");
        let begin = said.len().saturating_sub(TOLD);
        let begin = (begin..said.len()).find(|at| said.is_char_boundary(*at)).unwrap_or(0);
        format!("ended with {code}: {}", &said[begin..])
    }
}

/// Why a program gave no result.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It cannot be started.
    #[error("{program} cannot be run: {error}; the image needs e2fsprogs, xfsprogs and util-linux")]
    Start {
        /// Its name.
        program: String,
        /// Why.
        error: io::Error,
    },
    /// It took too long and was killed.
    #[error("{program} took longer than {} s and was killed", limit.as_secs())]
    Slow {
        /// Its name.
        program: String,
        /// What it had.
        limit: Duration,
    },
}

impl From<ProgramError> for tonic::Status {
    fn from(error: ProgramError) -> Self {
        Self::unavailable(error.to_string())
    }
}

/// Runs a program to its end. Blocks; for threads of [`tokio::task::spawn_blocking`] only.
///
/// # Errors
///
/// When it cannot be started, or is not done in time: then it is killed.
pub fn run(
    program: &str,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    limit: Duration,
) -> Result<Ended, ProgramError> {
    let failed = |error| ProgramError::Start {
        program: program.to_owned(),
        error,
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Handle::current().block_on(async {
        let mut child = command.spawn().map_err(failed)?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::join!(text(output), text(errors), child.wait()) };
        match tokio::time::timeout(limit, ended).await {
            Ok((output, errors, ended)) => Ok(Ended {
                code: ended.map_err(failed)?.code(),
                output,
                errors,
            }),
            Err(_) => {
                // It may have ended by itself meanwhile.
                let _ = child.kill().await;
                Err(ProgramError::Slow {
                    program: program.to_owned(),
                    limit,
                })
            }
        }
    })
}

/// What is read until the end, as far as it is kept. A pipe that breaks ends it.
async fn text(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else {
        return String::new();
    };
    let mut kept = Vec::new();
    // What was read until then is what there is.
    let _ = (&mut pipe).take(OUTPUT).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sh(script: &'static str, limit: Duration) -> Result<Ended, ProgramError> {
        tokio::task::spawn_blocking(move || run("sh", ["-c", script], limit))
            .await
            .unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn code_and_both_outputs_are_reported() {
        let ended = sh("echo out; echo bad >&2; exit 4", LONG).await.unwrap();
        assert_eq!(ended.code, Some(4));
        assert_eq!(ended.told(), "ended with 4: out bad");
    }

    #[tokio::test]
    async fn output_without_end_is_cut() {
        let ended = sh("head -c 1000000 /dev/zero | tr '\\0' x", LONG).await.unwrap();
        assert_eq!(ended.output.len() as u64, OUTPUT);
        assert!(ended.told().len() < TOLD + 40, "{}", ended.told());
    }

    #[tokio::test]
    async fn program_that_hangs_is_killed() {
        let slow = sh("exec sleep 1000", Duration::from_millis(50)).await.unwrap_err();
        assert!(matches!(slow, ProgramError::Slow { .. }), "{slow}");
    }

    #[tokio::test]
    async fn missing_program_is_named() {
        let missing = tokio::task::spawn_blocking(|| run("mkfs.none", ["x"], LONG))
            .await
            .unwrap();
        assert!(missing.unwrap_err().to_string().starts_with("mkfs.none cannot be run"));
    }
}
