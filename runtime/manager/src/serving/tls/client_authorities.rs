//! Authorities of client certificates and of the front proxy, followed when they change.

use std::pin::pin;
use std::sync::Arc;

use anyhow::Context;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};

use crate::flags::groups::delegation::AuthenticationArgs;
use crate::process::watched_files;
use crate::serving::access::authentication::Authenticator;
use crate::serving::access::proxy_headers::ProxyHeaders;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Reads the authorities, and follows their changes from then on.
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
        let path = file.clone();
        let read = move || {
            let (trust, path) = (trust.clone(), path.clone());
            watched_files::read_change(flag, move || trust.set(&watched_files::read_file(&path)?))
        };
        read()
            .await
            .with_context(|| format!("{flag}={}: cannot be used", file.display()))?;
        let files = vec![file];
        watched_files::follow(move || files.clone(), flag, read);
    }
    let from_files = args.client_ca_file.is_some() && args.requestheader_client_ca_file.is_some();
    let Some(reviewer) = authenticator
        .reviewer
        .as_ref()
        .filter(|_| !args.authentication_skip_lookup && !from_files)
    else {
        return Ok(());
    };
    let clients = reviewer.clients();
    let client = clients.borrow().clone();
    match Api::<ConfigMap>::namespaced(client, NAMESPACE).get(NAME).await {
        Ok(map) => take(authenticator, args, &map),
        Err(error) if args.authentication_tolerate_lookup_failure => {
            tracing::warn!(%error, "failed to read {NAMESPACE}/{NAME}; client certificates are not accepted yet");
        }
        Err(error) => {
            return Err(error).context(format!(
                "failed to read {NAMESPACE}/{NAME}; bind the role extension-apiserver-authentication-reader in kube-system to this \
                 account, or give --authentication-tolerate-lookup-failure or --authentication-skip-lookup"
            ));
        }
    }
    tokio::spawn(keep_watching(authenticator.clone(), args.clone(), clients));
    Ok(())
}

/// Begins anew with each new way to the API server.
async fn keep_watching(
    authenticator: Arc<Authenticator>,
    args: AuthenticationArgs,
    mut clients: tokio::sync::watch::Receiver<Client>,
) {
    loop {
        let client = clients.borrow_and_update().clone();
        tokio::select! {
            () = watch(&authenticator, &args, client) => return,
            Ok(()) = clients.changed() => {}
        }
    }
}

async fn watch(authenticator: &Authenticator, args: &AuthenticationArgs, client: Client) {
    let config = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let mut changes = pin!(
        watcher(Api::<ConfigMap>::namespaced(client, NAMESPACE), config)
            .default_backoff()
            .applied_objects()
    );
    while let Some(change) = changes.next().await {
        match change {
            Ok(map) => take(authenticator, args, &map),
            Err(error) => tracing::debug!(%error, "watch of {NAMESPACE}/{NAME} interrupted; retrying"),
        }
    }
}

/// What no flag says comes from the cluster. A wrong entry is logged and leaves what was before.
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
    match headers(map) {
        Ok(headers) => {
            *authenticator.proxy_headers.write() = Arc::new(headers);
        }
        // An unreadable list of names must not become an empty one, which stands for any name.
        Err(why) => {
            tracing::warn!("{NAMESPACE}/{NAME}: {why}; keeping the last settings of the front proxy");
            return;
        }
    }
    let key = "requestheader-client-ca-file";
    adopt(key, entry(key), |pem| authenticator.proxies.set(pem));
}

/// What the front proxy may say: lists as JSON.
fn headers(map: &ConfigMap) -> Result<ProxyHeaders, String> {
    let list = |key: &str| {
        let entry = map.data.as_ref().and_then(|data| data.get(key)).map(String::as_str);
        match entry {
            None | Some("") => Ok(Vec::new()),
            Some(json) => serde_json::from_str::<Vec<String>>(json)
                .map_err(|error| format!("{key} is not a list of names: {error}")),
        }
    };
    Ok(ProxyHeaders {
        allowed_names: list("requestheader-allowed-names")?,
        username: list("requestheader-username-headers")?,
        group: list("requestheader-group-headers")?,
        uid: list("requestheader-uid-headers")?,
        extra_prefix: list("requestheader-extra-headers-prefix")?,
    })
}

fn adopt(key: &str, pem: Option<&String>, set: impl Fn(&[u8]) -> anyhow::Result<()>) {
    if let Some(Err(error)) = pem.map(|pem| set(pem.as_bytes())) {
        tracing::warn!("{NAMESPACE}/{NAME}: {key} cannot be used: {error:#}");
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use prometheus_client::registry::Registry;
    use serde_json::json;

    use super::*;
    use crate::flags::args::Args;
    use crate::serving::access::metrics::AccessMetrics;

    fn map(data: serde_json::Value) -> ConfigMap {
        serde_json::from_value(json!({ "data": data })).unwrap()
    }

    #[test]
    fn an_unreadable_entry_leaves_what_was_before() {
        let args = Args::parse_from(["cloudwit"]).authentication;
        let authenticator = Authenticator::new(&args, None, AccessMetrics::new(&mut Registry::default()));
        let made = rcgen::generate_simple_self_signed(vec!["a".into()]).unwrap().cert.pem();
        let good = map(json!({
            "client-ca-file": made, "requestheader-client-ca-file": made,
            "requestheader-allowed-names": r#"["front-proxy"]"#, "requestheader-username-headers": r#"["X-User"]"#,
        }));
        take(&authenticator, &args, &good);
        let said = || authenticator.proxy_headers.read().clone();
        let before = said();
        assert_eq!(
            (&before.allowed_names, &before.username),
            (&vec!["front-proxy".to_owned()], &vec!["X-User".to_owned()])
        );
        for broken in [
            json!({ "requestheader-allowed-names": "front-proxy", "client-ca-file": "" }),
            json!({ "requestheader-username-headers": "{}", "client-ca-file": "no certificate" }),
        ] {
            take(&authenticator, &args, &map(broken));
            assert_eq!(said(), before);
            assert!(authenticator.clients.has_authorities() && authenticator.proxies.has_authorities());
        }
    }

    #[test]
    fn the_files_of_the_flags_win_over_the_cluster() {
        let line = ["cloudwit", "--client-ca-file=a", "--requestheader-client-ca-file=b"];
        let args = Args::parse_from(line).authentication;
        let authenticator = Authenticator::new(&args, None, AccessMetrics::new(&mut Registry::default()));
        let made = rcgen::generate_simple_self_signed(vec!["a".into()]).unwrap().cert.pem();
        let all = map(json!({
            "client-ca-file": made, "requestheader-client-ca-file": made,
            "requestheader-username-headers": r#"["X-User"]"#,
        }));
        take(&authenticator, &args, &all);
        assert!(!authenticator.clients.has_authorities() && !authenticator.proxies.has_authorities());
        assert_eq!(authenticator.proxy_headers.read().username, ["x-remote-user"]);
    }
}
