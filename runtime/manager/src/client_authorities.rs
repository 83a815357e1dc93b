//! The authorities of client certificates and of the front proxy: from the files of the flags, else from the cluster's
//! `kube-system/extension-apiserver-authentication`, which the API server keeps. Both are followed when they change.

use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use anyhow::Context;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::authentication::{Authenticator, ProxyHeaders};
use crate::delegation_args::AuthenticationArgs;
use crate::watched_files;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Reads the authorities, and follows their changes from then on. Says whether there are any, so whether to ask for certificates.
pub async fn follow(authenticator: &Arc<Authenticator>, args: &AuthenticationArgs) -> anyhow::Result<()> {
    for (flag, file, trust) in [
        ("--client-ca-file", &args.client_ca_file, &authenticator.clients),
        (
            "--requestheader-client-ca-file",
            &args.requestheader_client_ca_file,
            &authenticator.proxies,
        ),
    ] {
        let Some(file) = file.clone() else { continue };
        let trust = trust.clone();
        let read = move |file: &Path| trust.set(&std::fs::read(file)?);
        read(&file).with_context(|| format!("{flag}={}: cannot be used", file.display()))?;
        watched_files::follow(vec![file.clone()], flag, move || read(&file));
    }
    let from_files = args.client_ca_file.is_some() && args.requestheader_client_ca_file.is_some();
    let Some(reviewer) = authenticator
        .reviewer
        .as_ref()
        .filter(|_| !args.authentication_skip_lookup && !from_files)
    else {
        return Ok(());
    };
    let client = reviewer.client();
    let found = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE).get(NAME).await;
    match found {
        Ok(map) => take(authenticator, args, &map),
        Err(error) if args.authentication_tolerate_lookup_failure => {
            tracing::warn!(%error, "{NAMESPACE}/{NAME} cannot be read, so client certificates count for nothing yet");
        }
        Err(error) => {
            return Err(error).context(format!(
                "{NAMESPACE}/{NAME} cannot be read; bind the role extension-apiserver-authentication-reader in kube-system to this \
                 account, or give --authentication-tolerate-lookup-failure or --authentication-skip-lookup"
            ));
        }
    }
    tokio::spawn(watch(authenticator.clone(), args.clone(), client));
    Ok(())
}

async fn watch(authenticator: Arc<Authenticator>, args: AuthenticationArgs, client: Client) {
    let config = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let mut changes = pin!(
        watcher(Api::<ConfigMap>::namespaced(client, NAMESPACE), config)
            .default_backoff()
            .applied_objects()
    );
    while let Some(change) = changes.next().await {
        match change {
            Ok(map) => take(&authenticator, &args, &map),
            Err(error) => tracing::debug!(%error, "the watch of {NAMESPACE}/{NAME} was interrupted, trying again"),
        }
    }
}

/// What no flag says comes from the cluster. A wrong entry is told and leaves what was before.
fn take(authenticator: &Authenticator, args: &AuthenticationArgs, map: &ConfigMap) {
    let entry = |key: &str| map.data.as_ref().and_then(|data| data.get(key));
    if args.client_ca_file.is_none() {
        adopt("client-ca-file", entry("client-ca-file"), |pem| {
            authenticator.clients.set(pem)
        });
    }
    if args.requestheader_client_ca_file.is_some() {
        return;
    }
    let list = |key: &str| {
        entry(key)
            .and_then(|json| serde_json::from_str::<Vec<String>>(json).ok())
            .unwrap_or_default()
    };
    let headers = ProxyHeaders {
        allowed_names: list("requestheader-allowed-names"),
        username: list("requestheader-username-headers"),
        group: list("requestheader-group-headers"),
        uid: list("requestheader-uid-headers"),
        extra_prefix: list("requestheader-extra-headers-prefix"),
    };
    *authenticator
        .proxy_headers
        .write()
        .unwrap_or_else(PoisonError::into_inner) = headers;
    let key = "requestheader-client-ca-file";
    adopt(key, entry(key), |pem| authenticator.proxies.set(pem));
}

fn adopt(key: &str, pem: Option<&String>, set: impl Fn(&[u8]) -> anyhow::Result<()>) {
    if let Some(Err(error)) = pem.map(|pem| set(pem.as_bytes())) {
        tracing::warn!("{NAMESPACE}/{NAME}: {key} cannot be used: {error:#}");
    }
}
