//! ServiceAccounts of the controllers (`--use-service-account-credentials`).
//!
//! The account `kube-system/NAME` is fetched or created with the process's own credentials, and its tokens come from TokenRequest:
//! an hour long, renewed when a fifth of that is left (`spec/flags-and-process.md`, section 7). Ages are measured on our own steady
//! clock from before the request, so a wrong wall clock does not matter.

use std::fmt;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use http::HeaderValue;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

/// Where the accounts are.
const NAMESPACE: &str = "kube-system";
/// The lifetime that is requested.
const LIFETIME: Duration = Duration::from_secs(3600);
/// A lifetime that the API server gives as shorter than this is not believed, as upstream does.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(600);
/// Retries in one renewal, and the pause before the first of them; it doubles.
const RETRIES: usize = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Why there is no token.
#[derive(Debug, Error)]
#[error(
    "no token for the service account {NAMESPACE}/{name}: {why}; the process needs the rights to get and create it and its tokens"
)]
pub struct NoToken {
    name: &'static str,
    why: String,
}

/// The account of one client.
pub struct Account {
    name: &'static str,
    /// With the process's own credentials.
    client: Client,
    token: Mutex<Option<Token>>,
}

struct Token {
    header: HeaderValue,
    asked: Instant,
    lifetime: Duration,
}

impl Token {
    fn is_fresh(&self) -> bool {
        self.asked.elapsed() < self.lifetime * 4 / 5
    }

    fn is_valid(&self) -> bool {
        self.asked.elapsed() < self.lifetime
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Account {
    /// The account of that name. Nothing is requested before the first request that needs it.
    pub fn new(name: &'static str, client: Client) -> Self {
        Self {
            name,
            client,
            token: Mutex::new(None),
        }
    }

    /// The value of the header `authorization`. Requests that come meanwhile wait for the same token.
    pub async fn bearer(&self) -> Result<HeaderValue, NoToken> {
        let mut token = self.token.lock().await;
        if let Some(token) = token.as_ref().filter(|token| token.is_fresh()) {
            return Ok(token.header.clone());
        }
        match self.renew().await {
            Ok(new) => Ok(token.insert(new).header.clone()),
            Err(error) => match token.as_ref().filter(|token| token.is_valid()) {
                Some(old) => {
                    warn!(%error, "failed to renew token; using the last one");
                    Ok(old.header.clone())
                }
                None => Err(error),
            },
        }
    }

    /// The API server did not accept this token; the next request gets a new one.
    pub async fn refused(&self, header: &HeaderValue) {
        let mut token = self.token.lock().await;
        if token.as_ref().is_some_and(|token| token.header == *header) {
            *token = None;
        }
    }

    async fn renew(&self) -> Result<Token, NoToken> {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_times(RETRIES);
        let asked = (|| self.request()).retry(pauses).await;
        asked.map_err(|error| NoToken {
            name: self.name,
            why: error.to_string(),
        })
    }

    async fn request(&self) -> Result<Token, kube::Error> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), NAMESPACE);
        if accounts.get_opt(self.name).await?.is_none() {
            self.create(&accounts).await?;
        }
        let wanted = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(LIFETIME.as_secs().cast_signed()),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let asked = Instant::now();
        let answer = accounts
            .create_token_request(self.name, &PostParams::default(), &wanted)
            .await?;
        let seconds = answer
            .spec
            .and_then(|spec| u64::try_from(spec.expiration_seconds?).ok());
        let text = answer.status.and_then(|status| status.token).unwrap_or_default();
        let mut header =
            HeaderValue::try_from(format!("Bearer {text}")).map_err(|error| kube::Error::Service(error.into()))?;
        header.set_sensitive(true);
        Ok(Token {
            header,
            asked,
            lifetime: seconds.map_or(LIFETIME, Duration::from_secs).max(SHORTEST_LIFETIME),
        })
    }

    async fn create(&self, accounts: &Api<ServiceAccount>) -> Result<(), kube::Error> {
        let named = |name: &str| ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let account = ServiceAccount {
            metadata: named(self.name),
            ..ServiceAccount::default()
        };
        let create = || async { existing(accounts.create(&PostParams::default(), &account).await) };
        info!(account = self.name, "creating service account");
        match create().await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let namespace = Namespace {
                    metadata: named(NAMESPACE),
                    ..Namespace::default()
                };
                let namespaces: Api<Namespace> = Api::all(self.client.clone());
                existing(namespaces.create(&PostParams::default(), &namespace).await)?;
                create().await
            }
            other => other,
        }
    }
}

/// A conflict is success too.
fn existing<T>(created: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match created {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}
