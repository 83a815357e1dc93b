//! What an operator writes to have Cloudwit work on the stand-in for Azure: `azure.json`, the grants and the application's secrets.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The files for the stand-in's resource group `demo`, with a client secret. The secrets are written beside the other files of the deployment. `more`
/// are further keys of the cloud config, which win.
///
/// # Errors
///
/// When the stand-in does not answer, or a secret cannot be written.
pub async fn azure_files(cloud: &StandIn, more: &Value, deployment: &Deployment) -> Result<CloudFiles> {
    let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
    let account = cloud.call("account", json!({})).await?;
    let mut config = json!({
        "cloud": "AzurePublicCloud", "tenantId": account["tenant"], "aadClientId": account["client"],
        "subscriptionId": account["subscription"], "resourceGroup": "demo", "location": account["location"], "vnetName": "vnet",
        "subnetName": "subnet", "securityGroupName": "nsg", "routeTableName": "table", "loadBalancerSku": "standard", "useInstanceMetadata": true,
        "resourceManagerEndpoint": cloud.url(), "activeDirectoryEndpoint": cloud.url(), "metadataEndpoint": cloud.url(),
    });
    if let (Some(config), Some(more)) = (config.as_object_mut(), more.as_object()) {
        config.extend(more.clone());
    }
    let mut settings = format!(
        "grants:\n  cluster: {{nodes: true}}\n  http:\n    \
         - {{scheme: http, host: 127.0.0.1, port: {port}, methods: [GET, POST, PUT, PATCH, DELETE], allowLoopback: true}}\n  secrets:\n"
    );
    let sent = format!(", hosts: [\"127.0.0.1:{port}\"]");
    for (name, field, how, hosts) in [
        ("client-secret", "secret", "placeholder", sent.as_str()),
        ("federated-token", "federated", "placeholder", sent.as_str()),
        ("client-certificate-key", "private_key", "sign", ""),
    ] {
        let text = account[field]
            .as_str()
            .with_context(|| format!("the account has no {field}"))?;
        let file = deployment.write(name, text)?;
        settings += &format!(
            "    - {{name: {name}, file: {}, uses: [{how}]{hosts}}}\n",
            file.display()
        );
    }
    Ok(CloudFiles {
        config: config.to_string(),
        settings,
    })
}

/// Runs Microsoft's own clients on the stand-in (`judge.py`): what they say as JSON. `what` is `all`, or `shown` for the load balancers that are there and their rules.
///
/// # Errors
///
/// When they fail, with what they said.
pub async fn microsofts_clients(cloud: &StandIn, what: &str) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(cloud.python())
        .args(["-B", "-m", "azure.judge", cloud.url(), what])
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!(
            "Microsoft's clients: {text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_str(&text).with_context(|| format!("Microsoft's clients say {text}"))
}
