//! Clients of the API server, one for each part of the process.
//!
//! ```text
//!   controller -> request_budget  waits for its turn          (--kube-api-qps, --kube-api-burst)
//!              -> credentials     its own service account     (--use-service-account-credentials)
//!              -> Leadership      writes only while it leads, and requests carry the deadline as `timeout`
//!              -> api_transport   token, limits, counts, kube's client
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use cloudwit_controllers::Leadership;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use kube::client::Body;
use kube::{Client, Config};
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::BoxError;

use crate::api::accounts::Account;
use crate::api::config::{ApiConfig, root_cause};
use crate::api::metrics::{RestClientMetrics, host, verb};
use crate::api::request_budget::RequestBudget;
use crate::api::transport;
use crate::flags::groups::api_server::ApiServerArgs;

/// How long a first answer of the API server may take; upstream waits as long (`app/controllermanager.go`).
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// The deadline is sent to the API server only up to this; beyond it the API server has a limit of its own.
const LONGEST_WRITE: Duration = Duration::from_secs(60);

/// A client for that kubeconfig, or for the service account of the Pod, whose API server has answered; for commands that only read.
pub async fn connect(kubeconfig: Option<&Path>) -> anyhow::Result<Client> {
    let args = ApiServerArgs {
        kubeconfig: kubeconfig.map(Path::to_owned),
        ..ApiServerArgs::default()
    };
    let requests = RestClientMetrics::new(&mut Registry::default());
    Ok(ApiServer::connect(&args, "", requests).await?.client("command").await?)
}

/// An API server that has answered, and the way to it.
pub struct ApiServer {
    from: ApiConfig,
    identity: String,
    args: ApiServerArgs,
    requests: RestClientMetrics,
}

impl ApiServer {
    /// Finds the API server of these flags and reads its version. `identity` distinguishes replicas in the audit log.
    pub async fn connect(args: &ApiServerArgs, identity: &str, requests: RestClientMetrics) -> anyhow::Result<Self> {
        let (from, origin) = config(args).await?;
        let url = from.config.cluster_url.to_string();
        let server = Self {
            from,
            identity: identity.to_owned(),
            args: args.clone(),
            requests,
        };
        let client = server
            .client("start")
            .await
            .with_context(|| format!("{origin}: no usable client"))?;
        let answer = tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await;
        let version = answer
            .map_err(|_| anyhow!("no answer within {} s", FIRST_ANSWER.as_secs()))
            .and_then(|answer| answer.map_err(|error| anyhow!(root_cause(&error))))
            .map_err(|why| {
                anyhow!(
                    "the API server at {url} ({origin}) cannot be used: {why}; check address, certificate and network"
                )
            })?;
        tracing::info!(%url, version = %version.git_version, "connected to the API server");
        Ok(server)
    }

    /// A client with the credentials of the process, for what is done whether it leads or not. `name` ends its user agent. Its connections
    /// live on the runtime that this is called on.
    pub async fn client(&self, name: &'static str) -> Result<Client, kube::Error> {
        self.bare_client(name, &self.from).await
    }

    /// The client of a part of the process that writes only while it leads.
    pub async fn leading_client(&self, name: &'static str, leading: &Leadership) -> Result<Client, kube::Error> {
        Ok(self.behind(self.client(name).await?, leading, None))
    }

    /// The same for a controller, which may have an account of its own.
    pub async fn controller_client(&self, name: &'static str, leading: &Leadership) -> Result<Client, kube::Error> {
        if !self.args.use_service_account_credentials {
            return self.leading_client(name, leading).await;
        }
        let account = self.leading_client("service-account-credentials", leading).await?;
        let account = Account::new(name, account);
        let inner = self.bare_client(name, &self.from.without_credentials()).await?;
        Ok(self.behind(inner, leading, Some(Arc::new(account))))
    }

    async fn bare_client(&self, name: &'static str, from: &ApiConfig) -> Result<Client, kube::Error> {
        let agent = format!(
            "cloudwit/{} ({}/{}) {name} {}",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.identity
        );
        let agent = HeaderValue::try_from(agent).map_err(|error| kube::Error::Service(error.into()))?;
        transport::client(from, Some(agent), &self.requests).await
    }

    /// Puts a client behind its budget, its account and its leadership.
    fn behind(&self, inner: Client, leading: &Leadership, account: Option<Arc<Account>>) -> Client {
        let budget = RequestBudget::new(self.args.kube_api_qps, self.args.kube_api_burst).map(Arc::new);
        let leading = leading.clone();
        let namespace = self.from.config.default_namespace.clone();
        let (requests, host) = (self.requests.clone(), host(&self.from.config));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, leading) = (inner.clone(), leading.clone());
            let (budget, account) = (budget.clone(), account.clone());
            let (requests, host) = (requests.clone(), host.clone());
            async move {
                if let Some(budget) = budget {
                    let since = Instant::now();
                    budget.turn().await;
                    requests.limited(verb(request.method()), &host, since.elapsed());
                }
                match account {
                    None => send(&inner, &leading, request).await,
                    Some(account) => send_as(&account, &inner, &leading, request).await,
                }
            }
        });
        Client::new(service, namespace)
    }
}

async fn send_as(
    account: &Account,
    inner: &Client,
    leading: &Leadership,
    mut request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let bearer = account.bearer().await?;
    request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
    let response = send(inner, leading, request).await?;
    if response.status() == StatusCode::UNAUTHORIZED {
        account.refused(&bearer).await;
    }
    Ok(response)
}

/// Sends a request; one that changes something only while we lead, and with a limit for the API server too.
async fn send(inner: &Client, leading: &Leadership, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(inner.send(request).await?);
    }
    let rest = leading.remaining();
    if rest < LONGEST_WRITE && !rest.is_zero() {
        *request.uri_mut() = with_timeout(request.uri(), rest)?;
    }
    Ok(leading.write(inner.send(request)).await??)
}

/// The API server gives a request up after `timeout`, so that it does not carry out what we have given up ourselves.
fn with_timeout(uri: &Uri, timeout: Duration) -> Result<Uri, http::uri::InvalidUri> {
    let text = uri.to_string();
    let text = text.trim_end_matches(['?', '&']);
    let joint = if text.contains('?') { '&' } else { '?' };
    format!("{text}{joint}timeout={}ms", timeout.as_millis().max(1)).parse()
}

/// The way to the API server, and where it was found.
async fn config(args: &ApiServerArgs) -> anyhow::Result<(ApiConfig, String)> {
    let (mut found, origin) = match (&args.kubeconfig, &args.master) {
        (Some(file), _) => {
            let found = ApiConfig::of_kubeconfig("--kubeconfig", file).await?;
            (found, format!("--kubeconfig={}", file.display()))
        }
        (None, Some(url)) => (ApiConfig::plain(Config::new(url.clone())), format!("--master={url}")),
        (None, None) => {
            let found = ApiConfig::of_pod().await.context(
                "no kubeconfig and no service account: give --kubeconfig=FILE, or run in a Pod with a service account",
            )?;
            (found, "the service account of this Pod".to_owned())
        }
    };
    if let Some(url) = &args.master {
        found.config.cluster_url = url.clone();
    }
    Ok((found, origin))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        api_server: ApiServerArgs,
    }

    fn of(flags: &[&str]) -> ApiServerArgs {
        Flags::parse_from(["x"].iter().chain(flags)).api_server
    }

    #[tokio::test]
    async fn the_address_of_the_flag_wins_over_the_kubeconfigs() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
                    clusters: [{name: a, cluster: {server: 'https://kubeconfig:1'}}], users: [{name: a, user: {token: t}}]}";
        std::fs::write(file.path(), text).unwrap();
        let kubeconfig = format!("--kubeconfig={}", file.path().display());
        let url = async |flags: &[&str]| config(&of(flags)).await.unwrap().0.config.cluster_url.to_string();
        assert_eq!(url(&[&kubeconfig]).await, "https://kubeconfig:1/");
        assert_eq!(url(&[&kubeconfig, "--master=https://flag:2"]).await, "https://flag:2/");
        assert_eq!(url(&["--master=http://flag:2"]).await, "http://flag:2/");
    }

    #[test]
    fn api_server_gets_deadline_beside_existing_request_parts() {
        let with = |uri: &str| {
            with_timeout(&uri.parse().unwrap(), Duration::from_millis(1500))
                .unwrap()
                .to_string()
        };
        assert_eq!(with("/api/v1/nodes/a?"), "/api/v1/nodes/a?timeout=1500ms");
        assert_eq!(
            with("/api/v1/nodes/a?&dryRun=All"),
            "/api/v1/nodes/a?&dryRun=All&timeout=1500ms"
        );
    }
}
