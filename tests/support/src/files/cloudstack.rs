//! What an operator writes to have Cloudwit work on the stand-in for CloudStack: `cloud-config`, the grants and the user's secret key.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The files for the stand-in's project `demo`. The secret key is written beside the other files of the deployment. `more` are further lines of the
/// cloud config, which win.
///
/// # Errors
///
/// When the stand-in does not answer, or the secret key cannot be written.
pub async fn cloudstack_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
    let account = cloud.call("account", json!({})).await?;
    let text = |field: &str| {
        let found = account[field].as_str();
        found.with_context(|| format!("the account has no {field}"))
    };
    let file = deployment.write("secret-key", text("secret")?)?;
    Ok(CloudFiles {
        config: format!(
            "[Global]\napi-url = {}/client/api\napi-key = {}\nproject-id = {}\n{more}\n",
            cloud.url(),
            text("key")?,
            text("project")?
        ),
        settings: format!(
            "grants:\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [POST], allowLoopback: true}}\n  secrets:\n    \
             - {{name: secret-key, file: {}, uses: [hmac]}}\n",
            file.display()
        ),
    })
}

/// Runs two clients of others, cs and Apache Libcloud, on the stand-in (`judge.py`): what they say as JSON. `what` is `all`, or `shown` for the load
/// balancer rules that are there.
///
/// # Errors
///
/// When they fail, with what they said.
pub async fn clients_of_others(cloud: &StandIn, what: &str) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(cloud.python())
        .args(["-B", "-m", "cloudstack.judge", cloud.url(), what])
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!(
            "the clients of others: {text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_str(&text).with_context(|| format!("the clients of others say {text}"))
}
