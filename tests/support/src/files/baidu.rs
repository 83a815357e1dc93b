//! What an operator writes to have Cloudwit work on the stand-in for Baidu AI Cloud: the cloud config, the grants and the secret access key.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The cluster's id in the stand-in, a part of the names of its load balancers.
pub const CLUSTER_ID: &str = "cce-8z8q9x1k";

/// The files for the stand-in. The secret key is written beside the other files of the deployment. `more` are further keys of the cloud config, which win.
///
/// # Errors
///
/// When the stand-in does not answer, or the secret key cannot be written.
pub async fn baidu_files(cloud: &StandIn, more: &Value, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
    let account = cloud.call("account", json!({})).await?;
    let secret = account["secret"].as_str().context("the account has no secret")?;
    let file = deployment.write("secret-access-key", secret)?;
    let mut config = json!({
        "AccessKeyID": account["key"], "Region": "bj", "ClusterId": CLUSTER_ID, "VpcId": account["vpc"], "BccEndpoint": cloud.url(), "BlbEndpoint": cloud.url(),
        "EipEndpoint": cloud.url(),
    });
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
        config.extend(more.clone());
    }
    Ok(CloudFiles {
        config: config.to_string(),
        settings: format!(
            "grants:\n  cluster: {{nodes: true}}\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, DELETE], allowLoopback: true}}\n  \
             secrets:\n    - {{name: secret-access-key, file: {}, uses: [hmac]}}\n",
            file.display()
        ),
    })
}
