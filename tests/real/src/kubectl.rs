//! kubectl with the rights of an administrator.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
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
        let mut command = Command::new(&self.program);
        command.args(["kubectl", "--kubeconfig"]).arg(&self.kubeconfig);
        tools::output(command.args(arguments))
    }
}
