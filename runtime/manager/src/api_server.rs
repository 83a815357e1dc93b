//! The client of the API server, or one sentence why there is none.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// How long a first answer of the API server may take; upstream waits as long (`app/controllermanager.go`).
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A client for that kubeconfig, or for the service account of the Pod, whose API server has answered.
pub async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let (config, origin) = match kubeconfig {
        Some(file) => (from_file(file).await?, format!("--kubeconfig={}", file.display())),
        None => (
            Config::incluster().context(
                "no kubeconfig and no service account: give --kubeconfig=FILE, or run in a Pod with a service account",
            )?,
            "the service account of this Pod".to_owned(),
        ),
    };
    let url = config.cluster_url.to_string();
    let client = Client::try_from(config).with_context(|| format!("{origin}: no usable client"))?;
    let answer = tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await;
    let version = answer
        .map_err(|_| anyhow!("no answer within {} s", FIRST_ANSWER.as_secs()))
        .and_then(|answer| answer.map_err(|error| anyhow!(root_cause(&error))))
        .map_err(|why| {
            anyhow!("the API server at {url} ({origin}) cannot be used: {why}; check address, certificate and network")
        })?;
    tracing::info!(%url, version = %version.git_version, "connected to the API server");
    Ok(client)
}

async fn from_file(file: &Path) -> anyhow::Result<Config> {
    // The library's own words repeat the path and the cause; the cause alone is what helps.
    let unusable = |error: &dyn std::error::Error| {
        anyhow!(
            "--kubeconfig={}: cannot be used: {}; give a kubeconfig file of this cluster",
            file.display(),
            root_cause(error)
        )
    };
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| unusable(&error))?;
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(&error))
}

/// The innermost reason: the outer layers only say that a request failed.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
