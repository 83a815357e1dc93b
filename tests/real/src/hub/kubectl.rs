//! kubectl with the rights of an administrator.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::tools;

/// The kubectl of `tests/kubernetes` on the cluster.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// Of this program of Kubernetes.
    pub fn new(program: &Path, kubeconfig: &Path) -> Self {
        Self {
            program: program.to_owned(),
            kubeconfig: kubeconfig.to_owned(),
        }
    }

    /// Runs it with these arguments. Gives what it prints.
    ///
    /// # Errors
    ///
    /// When it fails; with what it says.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        tools::output(self.command().args(arguments))
    }

    /// Makes or changes an object, or a list of them.
    ///
    /// # Errors
    ///
    /// When it fails; with what it says.
    pub fn apply(&self, object: &Value) -> Result<()> {
        let mut command = self.command();
        command.args(["apply", "-f", "-"]).stdin(Stdio::piped());
        let mut kubectl = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting kubectl")?;
        let mut input = kubectl.stdin.take().context("kubectl has no standard input")?;
        input
            .write_all(object.to_string().as_bytes())
            .context("writing to kubectl")?;
        drop(input);
        let done = kubectl.wait_with_output().context("waiting for kubectl")?;
        if !done.status.success() {
            bail!(
                "`kubectl apply` failed: {}",
                String::from_utf8_lossy(&done.stderr).trim()
            );
        }
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["kubectl", "--kubeconfig"]).arg(&self.kubeconfig);
        command
    }
}
