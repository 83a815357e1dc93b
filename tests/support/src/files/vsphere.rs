//! What an operator writes to have Cloudwit work on [`vcsim`](crate::clouds::vcsim), and on the stand-in for NSX beside it: the cloud config with upstream's keys, the
//! grants and the secrets.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::clouds::vcsim::{PASSWORD, USERNAME, Vcsim};
use crate::gate::Gate;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// Load balancers with two classes, and routes, as the stand-in for NSX has what they need.
pub const NSX_CONFIG: &str = "loadBalancer:\n  ipPoolName: public\n  tier1GatewayPath: /infra/tier-1s/t1\n  size: SMALL\n  \
    tcpAppProfileName: default-tcp-lb-app-profile\n  udpAppProfileName: default-udp-lb-app-profile\nloadBalancerClass:\n  inside: {ipPoolId: private-pool}\n\
    route: {routerPath: /infra/tier-1s/t1}\n";

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

/// The same with an NSX manager behind this gate, and what `more` says about it, such as [`NSX_CONFIG`]. The user is the stand-in's, with this password, or the right one.
///
/// # Errors
///
/// As [`vsphere_files`].
pub async fn nsx_files(
    vcsim: &Vcsim,
    nsx: (&StandIn, &Gate),
    password: Option<&str>,
    more: &str,
    deployment: &Deployment,
) -> Result<CloudFiles> {
    let mut files = vsphere_files(vcsim, deployment)?;
    let (manager, gate) = nsx;
    let host = gate.url().trim_start_matches("https://").to_owned();
    let port = host.rsplit(':').next().context("the gate has a port")?;
    files.config = format!(
        "global: {{port: {}}}\nvcenter: {{vcsim: {{server: 127.0.0.1}}}}\nnsxt: {{host: '{host}', secretName: nsx, secretNamespace: kube-system}}\n{more}",
        vcsim.port()
    );
    let grant = format!(
        "  http:\n    - {{host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, PATCH, DELETE], ca: {}, allowLoopback: true}}\n",
        vcsim.authority().display()
    );
    files.settings = files.settings.replacen("  http:\n", &grant, 1);
    let account = manager.call("account", json!({})).await?;
    let known = |name: &str| {
        account[name]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("no {name} in {account}"))
    };
    let secrets = [
        ("nsxt.username", known("user")?),
        (
            "nsxt.password",
            password.map_or_else(|| known("password"), |text| Ok(text.to_owned()))?,
        ),
    ];
    for (name, text) in secrets {
        let file = deployment.write(name, &text)?;
        files.settings += &format!(
            "    - {{name: {name}, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n",
            file.display()
        );
    }
    Ok(files)
}

/// An NSX manager whose TLS demands a client certificate.
#[derive(Debug, Clone, Copy)]
pub struct NsxOverTls<'a> {
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// The file of its authority.
    pub authority: &'a Path,
    /// The file of the client certificate.
    pub certificate: &'a Path,
    /// The file of its key.
    pub key: &'a Path,
}

/// As [`nsx_files`], by a client certificate and without any secret for NSX.
///
/// # Errors
///
/// As [`vsphere_files`].
pub fn nsx_certificate_files(
    vcsim: &Vcsim,
    nsx: &NsxOverTls<'_>,
    more: &str,
    deployment: &Deployment,
) -> Result<CloudFiles> {
    let mut files = vsphere_files(vcsim, deployment)?;
    let (port, certificate, key) = (nsx.port, nsx.certificate.display(), nsx.key.display());
    files.config = format!(
        "global: {{port: {}}}\nvcenter: {{vcsim: {{server: 127.0.0.1}}}}\n\
         nsxt: {{host: '127.0.0.1:{port}', clientAuthCertFile: {certificate}, clientAuthKeyFile: {key}}}\n{more}",
        vcsim.port()
    );
    let grant = format!(
        "  http:\n    - {{host: 127.0.0.1, port: {port}, methods: [GET, PUT, PATCH, DELETE], ca: {}, clientCertificate: {certificate}, \
         clientKey: {key}, allowLoopback: true}}\n",
        nsx.authority.display()
    );
    files.settings = files.settings.replacen("  http:\n", &grant, 1);
    Ok(files)
}

/// Runs VMware's own client for NSX on the stand-in (`judge.py`), with these arguments: what it says as JSON.
///
/// # Errors
///
/// When it fails, with what it said.
pub async fn nsx_client(manager: &StandIn, arguments: &[&str]) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(manager.python())
        .args(["-B", "-m", "nsx.judge", manager.url()])
        .args(arguments)
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!("VMware's client: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_str(&text).with_context(|| format!("VMware's client says {text}"))
}
