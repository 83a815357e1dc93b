//! The controller of `tests/peer` as an operator would run it: upstream's controllers in Go with a thin provider for the simulated cloud.
//!
//! It gets what [`Deployment::start_on`](crate::scenes::deployment::Deployment::start_on) gives Cloudwit, as far as upstream knows it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use crate::programs::child::Child;
use crate::scenes::deployment::{CLUSTER_CIDR, CLUSTER_NAME, TOKEN, unless_given};

/// Starts `program` on this cluster and the simulated cloud at the URL `cloud`, with further flags. Its files and its log go to `folder`, which is
/// made if it is missing. It serves nothing unless a flag names a `--secure-port`, and takes no part in an election unless one says so.
///
/// # Errors
///
/// When a file cannot be written or the program cannot be started.
pub fn start(program: &Path, folder: &Path, kubeconfig: &Path, cloud: &str, flags: &[&str]) -> Result<Child> {
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let config = folder.join("cloud-config");
    let text = json!({ "endpoint": cloud, "token": TOKEN }).to_string();
    fs::write(&config, text).with_context(|| format!("writing {}", config.display()))?;
    let mut arguments = vec![
        format!("--kubeconfig={}", kubeconfig.display()),
        "--cloud-provider=sim".to_owned(),
        format!("--cloud-config={}", config.display()),
        format!("--cluster-cidr={CLUSTER_CIDR}"),
    ];
    arguments.extend(unless_given(
        flags,
        [
            format!("--cluster-name={CLUSTER_NAME}"),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ],
    ));
    arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
    Child::start(program, &arguments, &folder.join("peer.log"))
}
