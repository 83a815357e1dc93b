//! What an operator writes to have Cloudwit work on the stand-in for Compute Engine: the cloud config, the grants and the service account's key.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The files for the stand-in's project `demo` in `us-central1`. The private key is written beside the other files of the deployment. `more` are
/// further lines of `[global]`.
///
/// # Errors
///
/// When the stand-in does not answer, or the key cannot be written.
pub async fn gce_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
    let key = cloud.call("key", json!({})).await?;
    let text = |name: &str| key[name].as_str().with_context(|| format!("the key has no {name}"));
    let file = deployment.write("private-key.pem", text("private_key")?)?;
    let config = format!(
        "[global]\nproject-id = demo\nlocal-zone = us-central1-a\nnetwork-name = default\nmultizone = true\nnode-tags = node\n\
         api-endpoint = {url}/compute/v1/\ncontainer-api-endpoint = {url}/\ntoken-uri = {url}/token\nclient-email = {}\nprivate-key-id = {}\n{more}",
        text("client_email")?,
        text("private_key_id")?,
        url = cloud.url()
    );
    // The key itself goes nowhere: the host signs with it.
    let settings = format!(
        "grants:\n  cluster: {{nodes: true}}\n  http:\n    \
         - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, PATCH, DELETE], allowLoopback: true}}\n  secrets:\n    \
         - {{name: private-key, file: {}, uses: [sign]}}\n",
        file.display()
    );
    Ok(CloudFiles { config, settings })
}

/// Runs Google's own client on the stand-in (`judge.py`): what it says as JSON.
///
/// # Errors
///
/// When it fails, with what it said.
pub async fn google_client(cloud: &StandIn, arguments: &[&str]) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(cloud.python())
        .args(["-B", "-m", "gce.judge", cloud.url()])
        .args(arguments)
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!("Google's client: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_str(&text).with_context(|| format!("Google's client says {text}"))
}
