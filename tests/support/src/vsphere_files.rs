//! What an operator writes to have Cloudwit work on [`vcsim`](crate::vcsim): the cloud config with upstream's keys, the grants and the two
//! secrets.

use anyhow::Result;
use serde_json::json;

use crate::deployment::{CloudFiles, Deployment};
use crate::vcsim::{PASSWORD, USERNAME, Vcsim};

/// The files for all datacenters, with zones and regions from the tag categories `k8s-zone` and `k8s-region`. The secrets are written beside
/// the other files of the deployment.
///
/// # Errors
///
/// When a secret cannot be written.
pub fn vsphere_files(vcsim: &Vcsim, deployment: &Deployment) -> Result<CloudFiles> {
    let (host, port) = ("127.0.0.1", vcsim.port());
    let config = json!({
        "global": { "port": port },
        "vcenter": { "vcsim": { "server": host } },
        "labels": { "zone": "k8s-zone", "region": "k8s-region" },
    });
    let mut secrets = String::new();
    for (name, text) in [("username", USERNAME), ("password", PASSWORD)] {
        let file = deployment.write(name, text)?;
        secrets += &format!(
            "    - {{name: {host}.{name}, file: {}, hosts: [\"{host}:{port}\"], uses: [placeholder]}}\n",
            file.display()
        );
    }
    let settings = format!(
        "grants:\n  http:\n    - {{host: {host}, port: {port}, methods: [GET, POST, DELETE], ca: {}, allowLoopback: true}}\n  secrets:\n{secrets}",
        vcsim.authority().display()
    );
    Ok(CloudFiles {
        config: config.to_string(),
        settings,
    })
}
