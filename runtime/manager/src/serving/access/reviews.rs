//! TokenReviews and SubjectAccessReviews, with retries.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use backon::{ExponentialBuilder, Retryable as _};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use k8s_openapi::api::authorization::v1::{SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus};
use kube::api::PostParams;
use kube::config::Kubeconfig;
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::api::config::ApiConfig;
use crate::api::metrics::RestClientMetrics;
use crate::api::transport;
use crate::process::watched_files;
use crate::serving::access::metrics::DelegatedMetrics;

/// How long one question may take, and how long it may wait for its turn.
const LIMIT: Duration = Duration::from_secs(10);
/// Retries, and the pause before the first.
const RETRIES: usize = 4;
const PAUSE: Duration = Duration::from_millis(500);
/// Questions under way at a time, so that a flood of wrong tokens is not passed on.
const AT_A_TIME: usize = 32;
/// The authority of the API server in a Pod.
const POD_AUTHORITY: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";

/// The way to the API server for reviews; clones share it.
#[derive(Clone)]
pub struct Reviewer {
    clients: Arc<watch::Sender<Client>>,
    turns: Arc<Semaphore>,
    metrics: DelegatedMetrics,
}

impl Reviewer {
    /// For that kubeconfig, or the service account of the Pod; None where there is neither.
    pub async fn new(
        flag: &'static str,
        kubeconfig: Option<PathBuf>,
        requests: RestClientMetrics,
        metrics: DelegatedMetrics,
    ) -> anyhow::Result<Option<Self>> {
        if kubeconfig.is_none() && ApiConfig::of_pod().await.is_err() {
            return Ok(None);
        }
        let reviewer = Self {
            metrics,
            ..Self::over(client(flag, kubeconfig.clone(), &requests).await?)
        };
        let clients = reviewer.clients.clone();
        let files = {
            let kubeconfig = kubeconfig.clone();
            move || {
                kubeconfig
                    .as_deref()
                    .map_or_else(|| vec![POD_AUTHORITY.into()], files_of)
            }
        };
        watched_files::follow(files, flag, move || {
            let (kubeconfig, requests, clients) = (kubeconfig.clone(), requests.clone(), clients.clone());
            async move {
                clients.send_replace(client(flag, kubeconfig, &requests).await?);
                Ok(())
            }
        });
        Ok(Some(reviewer))
    }

    /// For that client.
    pub fn over(client: Client) -> Self {
        Self {
            clients: Arc::new(watch::Sender::new(client)),
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            metrics: DelegatedMetrics::default(),
        }
    }

    /// The client for other questions to the same API server, and each that comes after it.
    pub fn clients(&self) -> watch::Receiver<Client> {
        self.clients.subscribe()
    }

    /// Whose token it is.
    pub async fn token(&self, token: &str) -> Result<TokenReviewStatus, String> {
        let spec = TokenReviewSpec {
            token: token.to_owned(),
            ..TokenReviewSpec::default()
        };
        let answer = self
            .ask(&TokenReview {
                spec,
                ..TokenReview::default()
            })
            .await?;
        Ok(answer.status.unwrap_or_default())
    }

    /// Whether a user is authorized.
    pub async fn access(&self, spec: SubjectAccessReviewSpec) -> Result<SubjectAccessReviewStatus, String> {
        let answer = self
            .ask(&SubjectAccessReview {
                spec,
                ..SubjectAccessReview::default()
            })
            .await?;
        Ok(answer.status.unwrap_or_default())
    }

    async fn ask<K>(&self, question: &K) -> Result<K, String>
    where
        K: kube::Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let turn = tokio::time::timeout(LIMIT, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(format!("{AT_A_TIME} questions to the API server are under way already"));
        };
        let pauses = ExponentialBuilder::default()
            .with_min_delay(PAUSE)
            .with_factor(1.5)
            .with_max_times(RETRIES)
            .with_jitter();
        let answer = (|| self.ask_once(question))
            .retry(pauses)
            .when(|refused| refused.may_pass)
            .await;
        answer.map_err(|refused| refused.why)
    }

    async fn ask_once<K>(&self, question: &K) -> Result<K, Refused>
    where
        K: kube::Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let api: Api<K> = Api::all(self.clients.borrow().clone());
        let sent = Instant::now();
        let answer = tokio::time::timeout(LIMIT, api.create(&PostParams::default(), question)).await;
        self.metrics.seen(
            match &answer {
                Ok(Ok(_)) => Some(201),
                Ok(Err(kube::Error::Api(status))) => Some(status.code),
                _ => None,
            },
            sent,
        );
        let (why, may_pass) = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(kube::Error::Api(status))) => (status.message, status.code >= 500 || status.code == 429),
            Ok(Err(error)) => (error.to_string(), true),
            Err(_) => (format!("no answer within {} s", LIMIT.as_secs()), true),
        };
        Err(Refused { why, may_pass })
    }
}

/// A question without an answer, and whether the next attempt may have one.
struct Refused {
    why: String,
    may_pass: bool,
}

async fn client(
    flag: &'static str,
    kubeconfig: Option<PathBuf>,
    requests: &RestClientMetrics,
) -> anyhow::Result<Client> {
    let Some(file) = kubeconfig else {
        return Ok(transport::client(&ApiConfig::of_pod().await?, None, requests).await?);
    };
    let from = ApiConfig::of_kubeconfig(flag, &file).await?;
    let made = transport::client(&from, None, requests).await;
    made.with_context(|| format!("{flag}={}: cannot be used", file.display()))
}

/// A kubeconfig and the certificates and keys that it names. Files with tokens are read again by the library.
fn files_of(kubeconfig: &Path) -> Vec<PathBuf> {
    let mut files = vec![kubeconfig.to_owned()];
    if let Ok(read) = Kubeconfig::read_from(kubeconfig) {
        let authorities = read
            .clusters
            .into_iter()
            .filter_map(|one| one.cluster?.certificate_authority);
        files.extend(authorities.map(PathBuf::from));
        for user in read.auth_infos.into_iter().filter_map(|one| one.auth_info) {
            files.extend(
                user.client_certificate
                    .into_iter()
                    .chain(user.client_key)
                    .map(PathBuf::from),
            );
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificates_that_a_kubeconfig_names_are_followed_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}], \
                    clusters: [{name: a, cluster: {server: 'https://a:1', certificate-authority: ca.crt}}], \
                    users: [{name: a, user: {client-certificate: a.crt, client-key: /keys/a.key}}]}";
        std::fs::write(&file, text).unwrap();
        let here = |name: &str| folder.path().join(name);
        assert_eq!(
            files_of(&file),
            [file, here("ca.crt"), here("a.crt"), "/keys/a.key".into()]
        );
        assert_eq!(files_of(Path::new("/missing")), [PathBuf::from("/missing")]);
    }
}
