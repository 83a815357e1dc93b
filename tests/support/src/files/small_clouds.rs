//! What an operator writes to have Cloudwit work on the stand-ins of small clouds: cloud config, grants and secrets.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::clouds::stand_in::StandIn;
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The files for the stand-in of an oVirt engine. `more` are further lines of the cloud config, which come after `[connection]`.
///
/// # Errors
///
/// When the stand-in does not answer, or a secret cannot be written.
pub async fn ovirt_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let account = Account::of(cloud, deployment).await?;
    let mut secrets = vec![account.secret("password", "password", "placeholder")?];
    if more.contains("auth = basic") {
        secrets.push(account.secret("username", "user", "placeholder")?);
    }
    Ok(CloudFiles {
        config: format!("[connection]\nuri = {}/ovirt-engine/api\n{more}\n", cloud.url()),
        settings: account.settings(&["GET", "POST"], &secrets),
    })
}

/// The files for the stand-in of Mesos masters behind DC/OS, asked by a service account. `more` are further lines of the cloud config, which win.
///
/// # Errors
///
/// As [`ovirt_files`].
pub async fn mesos_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let account = Account::of(cloud, deployment).await?;
    let secrets = match more {
        basic if basic.contains("auth = basic") => vec![
            account.secret("principal", "user", "placeholder")?,
            account.secret("secret", "password", "placeholder")?,
        ],
        password if password.contains("auth = dcos-password") => {
            vec![account.secret("password", "password", "placeholder")?]
        }
        _ => vec![account.secret("private-key", "key", "sign")?],
    };
    let dcos = format!("mesos-master = {}/mesos\nauth = dcos\nuid = cloudwit\n", cloud.url());
    Ok(CloudFiles {
        config: format!("[mesos-cloud]\n{dcos}{more}\n"),
        settings: account.settings(&["GET", "POST"], &secrets),
    })
}

/// The files for the stand-in of Photon Controller with Lightwave. `more` are further lines of the cloud config, which win.
///
/// # Errors
///
/// As [`ovirt_files`].
pub async fn photon_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let account = Account::of(cloud, deployment).await?;
    let (url, user) = (cloud.url(), account.text("user")?);
    let lightwave = format!("lightwave = {url}\nusername = {user}\n");
    Ok(CloudFiles {
        config: format!("[Global]\ntarget = {url}\ntenant = demo\nproject = nodes\n{lightwave}{more}\n"),
        settings: account.settings(
            &["GET", "POST", "DELETE"],
            &[account.secret("password", "password", "placeholder")?],
        ),
    })
}

/// The files for the stand-in of Rancher 1.x, for the environment of the Nodes. `more` are further lines of the cloud config, which win; `{}` in them is the stand-in's
/// URL.
///
/// # Errors
///
/// As [`ovirt_files`].
pub async fn rancher_files(cloud: &StandIn, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
    let account = Account::of(cloud, deployment).await?;
    let (url, more) = (cloud.url(), more.replace("{}", cloud.url()));
    Ok(CloudFiles {
        config: format!("[Global]\ncattle-url = {url}/v2-beta/projects/1a5\n{more}\n"),
        settings: account.settings(
            &["GET", "POST", "PUT", "DELETE"],
            &[
                account.secret("access-key", "user", "placeholder")?,
                account.secret("secret-key", "password", "placeholder")?,
            ],
        ),
    })
}

/// Who there is at a stand-in.
struct Account<'a> {
    fields: Value,
    port: &'a str,
    deployment: &'a Deployment,
}

impl<'a> Account<'a> {
    async fn of(cloud: &'a StandIn, deployment: &'a Deployment) -> Result<Self> {
        let (_, port) = cloud.url().rsplit_once(':').context("a URL has a port")?;
        let fields = cloud.call("account", json!({})).await?;
        Ok(Self {
            fields,
            port,
            deployment,
        })
    }

    fn text(&self, field: &str) -> Result<&str> {
        let found = self.fields[field].as_str();
        found.with_context(|| format!("the account has no {field}"))
    }

    /// Writes a field beside the other files of the deployment: its grant.
    fn secret(&self, name: &str, field: &str, used_as: &str) -> Result<String> {
        let file = self.deployment.write(name, self.text(field)?)?;
        let hosts = match used_as {
            "placeholder" => format!(", hosts: [\"127.0.0.1:{}\"]", self.port),
            _ => String::new(),
        };
        Ok(format!(
            "{{name: {name}, file: {}, uses: [{used_as}]{hosts}}}",
            file.display()
        ))
    }

    fn settings(&self, methods: &[&str], secrets: &[String]) -> String {
        let (methods, port) = (methods.join(", "), self.port);
        let http =
            format!("{{scheme: http, host: 127.0.0.1, port: {port}, methods: [{methods}], allowLoopback: true}}");
        let secrets: String = secrets.iter().map(|secret| format!("    - {secret}\n")).collect();
        format!("grants:\n  http:\n    - {http}\n  secrets:\n{secrets}")
    }
}

/// Runs a cloud's own client on its stand-in (`CLOUD.judge`): what it says as JSON.
///
/// # Errors
///
/// When it fails, with what it said.
pub async fn own_client(cloud: &StandIn, module: &str) -> Result<Value> {
    own_client_with(cloud, module, &[]).await
}

/// The same with further arguments.
///
/// # Errors
///
/// As [`own_client`].
pub async fn own_client_with(cloud: &StandIn, module: &str, arguments: &[&str]) -> Result<Value> {
    let folder = xtask::workspace::root().join("tests/stand-ins");
    let output = tokio::process::Command::new(cloud.python())
        .args(["-B", "-m", module, cloud.url()])
        .args(arguments)
        .env("PYTHONPATH", folder)
        .output()
        .await
        .context("starting Python")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        anyhow::bail!("{module}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_str(&text).with_context(|| format!("{module} says {text}"))
}
