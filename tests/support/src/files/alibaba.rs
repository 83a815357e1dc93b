//! What an operator writes to have Cloudwit work on the stand-in for Alibaba Cloud: the cloud config, the grants and the access key's secret.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The cluster's id in the stand-in, a part of the names of what is made.
pub const CLUSTER_ID: &str = "c0a1b2c3d4e5f6";

/// The files for the stand-in's account. The secret is written beside the other files of the deployment. `more` are further keys of `Global`, which win;
/// without `accessKeyID`, by null, the machine's role is used.
///
/// # Errors
///
/// When the stand-in does not answer, or the secret cannot be written.
pub async fn alibaba_files(cloud: &StandIn, more: &Value, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
    let account = cloud.call("account", json!({})).await?;
    let secret = account["secret"].as_str().context("the account has no secret")?;
    let file = deployment.write("access-key-secret", secret)?;
    let url = cloud.url();
    let mut global = json!({
        "accessKeyID": account["key"], "clusterID": CLUSTER_ID, "region": account["region"], "vpcid": account["vpc"],
        "vswitchid": "cn-hangzhou-g:vsw-1,cn-hangzhou-h:vsw-2", "endpoints": { "ecs": url, "nlb": url, "slb": url, "vpc": url }, "metadata": url,
    });
    if let (Some(global), Some(more)) = (global.as_object_mut(), more.as_object()) {
        global.extend(more.clone());
        global.retain(|_, value| !value.is_null());
    }
    let secrets = match global["accessKeyID"] {
        Value::Null => "[]".to_owned(),
        _ => format!("[{{name: access-key-secret, file: {}, uses: [hmac]}}]", file.display()),
    };
    Ok(CloudFiles {
        config: json!({ "Global": global }).to_string(),
        settings: format!(
            "grants:\n  cluster: {{nodes: true}}\n  http:\n    \
             - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT], allowLoopback: true}}\n  secrets: {secrets}\n"
        ),
    })
}

/// Runs Alibaba Cloud's two SDKs on the stand-in (`judge.py`): what they say as JSON.
///
/// # Errors
///
/// When they fail, with what they said.
pub async fn alibaba_sdks(cloud: &StandIn) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(cloud.python())
        .args(["-B", "-m", "alibaba.judge", cloud.url()])
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!("the SDKs: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_str(&text).with_context(|| format!("the SDKs say {text}"))
}
