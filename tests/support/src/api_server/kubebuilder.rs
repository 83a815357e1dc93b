//! The API server from the binaries `etcd` and `kube-apiserver` of a folder, as `setup-envtest` fetches them.
//!
//! `kubebuilder.sh` makes them behave as our own control plane does: the same two lines on standard output, the same end when
//! standard input closes.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::programs::port;

/// For loopback and a throw-away cluster; it only has to pass authentication.
const TOKEN: &str = "kubebuilder-admin";

/// The folder that the operator wants them to be taken from.
pub fn assets() -> Option<PathBuf> {
    std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from)
}

/// The command that runs both on `port`, not yet started. `audit` gets a line for each stage of each request.
///
/// # Errors
///
/// When a binary is missing in the folder or no port is left.
pub fn command(assets: &Path, dir: &Path, port: u16, audit: Option<&Path>) -> Result<Command> {
    for program in ["etcd", "kube-apiserver"] {
        if !assets.join(program).is_file() {
            bail!(
                "KUBEBUILDER_ASSETS is {}, which has no {program}: fill it with `setup-envtest use`, or unset the variable \
                 to use the API server of this repository",
                assets.display()
            );
        }
    }
    let mut command = Command::new("bash");
    command
        .args(["-c", include_str!("kubebuilder.sh"), "kubebuilder"])
        .arg(assets)
        .arg(dir);
    command
        .args([port::reserve()?.to_string(), port.to_string(), TOKEN.to_owned()])
        .args(audit);
    Ok(command)
}
