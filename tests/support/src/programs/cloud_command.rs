//! `cloudwit cloud ...` as an operator runs it, on files of a deployment.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use crate::programs;
use crate::programs::guests;
use crate::scenes::deployment::CloudFiles;

/// Runs `cloudwit cloud WORDS COMPONENT FLAGS` of this provider with these files, which are written to the folder.
///
/// # Errors
///
/// When a file cannot be written or the program cannot be started.
pub async fn cloud_command(
    provider: &'static str,
    words: &[&str],
    flags: &[&str],
    (files, folder): (&CloudFiles, &Path),
) -> Result<CloudAnswer> {
    let write = |name: &str, text: &str| -> Result<PathBuf> {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| file.display().to_string())?;
        Ok(file)
    };
    let config = write("command-config", &files.config)?;
    let settings = write("command-settings.yaml", &files.settings)?;
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    let run = move || {
        let mut command = Command::new(programs::cloudwit());
        command
            .arg("cloud")
            .args(words)
            .arg(guests::provider(provider))
            .args(flags);
        command
            .arg(format!("--cloud-config={}", config.display()))
            .arg(format!("--settings={}", settings.display()))
            .arg(format!(
                "--cache-dir={}",
                xtask::workspace::target().join("tmp/code-cache").display()
            ));
        command.output()
    };
    let output = tokio::task::spawn_blocking(run).await?.context("starting cloudwit")?;
    Ok(CloudAnswer::of(&output))
}

/// What became of it.
#[derive(Debug, Clone)]
pub struct CloudAnswer {
    /// The exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub wrong: String,
}

impl CloudAnswer {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            wrong: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Standard output of a command that succeeded.
    ///
    /// # Panics
    ///
    /// When it did not, with what it said.
    #[track_caller]
    pub fn success(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.out, self.wrong);
        self.out
    }
}
