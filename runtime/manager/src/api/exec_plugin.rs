//! Exec credential plugin of a kubeconfig (`client.authentication.k8s.io`).

use std::io::IsTerminal as _;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use cloudwit_host::bounded_work::{FILE_LIMIT, bounded};
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// How long a plugin may take, and one that may talk to a person.
const LIMIT: Duration = Duration::from_secs(60);
const INTERACTIVE_LIMIT: Duration = Duration::from_secs(600);

/// Bytes of its answer that are read. Certificates and tokens are a few KiB.
const ANSWER_BYTES: u64 = 1 << 20;

/// What a plugin gave.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecStatus {
    /// A bearer token.
    pub token: Option<String>,
    /// Until when it holds.
    expiration_timestamp: Option<String>,
    /// A client certificate, as PEM.
    pub client_certificate_data: Option<String>,
    /// Its key, as PEM.
    pub client_key_data: Option<String>,
}

impl ExecStatus {
    /// Until when it holds; none for ever.
    pub fn expires(&self) -> anyhow::Result<Option<Timestamp>> {
        let parsed = self.expiration_timestamp.as_deref().map(str::parse).transpose();
        parsed.context("the exec plugin's expirationTimestamp is not a time of RFC 3339")
    }
}

#[derive(Deserialize)]
struct ExecAnswer {
    status: Option<ExecStatus>,
}

/// Runs the plugin and reads its answer.
///
/// # Errors
///
/// When it does not start, fails, is late, or answers something else. None of its output is in the error.
pub async fn run(flag: &'static str, exec: &ExecConfig) -> anyhow::Result<ExecStatus> {
    let name = exec.command.clone().context("users[].user.exec has no command")?;
    let interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never) && std::io::stdin().is_terminal();
    let mut command = command(exec, &name, interactive)?;
    // Starting a program reads its file.
    let spawned = bounded(&format!("{flag}: exec plugin"), FILE_LIMIT, move || command.spawn()).await?;
    let mut child = spawned.map_err(|error| {
        let hint = exec
            .install_hint
            .as_ref()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        anyhow!("the exec plugin {name} cannot be started: {error}{hint}")
    })?;
    let stdout = child.stdout.take().context("the exec plugin has no output")?;
    let limit = if interactive { INTERACTIVE_LIMIT } else { LIMIT };
    let ended = async {
        let mut answer = Vec::new();
        stdout.take(ANSWER_BYTES).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>((answer, child.wait().await?))
    };
    // Dropping the child ends it.
    let ended = tokio::time::timeout(limit, ended).await;
    let (answer, status) = ended
        .map_err(|_| anyhow!("the exec plugin {name} has not ended within {} s", limit.as_secs()))?
        .with_context(|| format!("the exec plugin {name} cannot be waited for"))?;
    if !status.success() {
        bail!("the exec plugin {name} failed: {status}");
    }
    // Neither JSON's nor YAML's own error: it may quote the token.
    let answer: ExecAnswer = serde_saphyr::from_slice(&answer)
        .map_err(|_| anyhow!("the exec plugin {name} answered something else than an ExecCredential"))?;
    answer
        .status
        .with_context(|| format!("the exec plugin {name} answered an ExecCredential without status"))
}

fn command(exec: &ExecConfig, name: &str, interactive: bool) -> anyhow::Result<Command> {
    let mut command = Command::new(name);
    command
        .args(exec.args.iter().flatten())
        .kill_on_drop(true)
        .stdout(Stdio::piped());
    command.stdin(if interactive { Stdio::inherit() } else { Stdio::null() });
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let cluster = match (exec.provide_cluster_info, &exec.cluster) {
        (false, _) => None,
        (true, Some(cluster)) => Some(cluster),
        (true, None) => bail!("users[].user.exec.provideClusterInfo is set, and the cluster is not known"),
    };
    let mut spec = serde_json::json!({ "interactive": interactive });
    if let Some(cluster) = cluster {
        spec["cluster"] = serde_json::to_value(cluster)?;
    }
    let request = serde_json::json!({ "apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec });
    command.env("KUBERNETES_EXEC_INFO", request.to_string());
    Ok(command)
}
