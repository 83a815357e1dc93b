//! Authentication: front proxy, client certificate, bearer token, anonymous.
//!
//! As upstream's chain: the first one that recognises the request decides; if none does and one found something wrong, the answer is
//! 401; if there was nothing to recognise, the request is anonymous.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, header};
use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use thiserror::Error;
use tokio::time::Instant;

use crate::flags::groups::delegation::AuthenticationArgs;
use crate::flags::values::duration::GoDuration;
use crate::serving::access::metrics::AccessMetrics;
use crate::serving::access::proxy_headers::ProxyHeaders;
use crate::serving::access::review_cache::{NoAnswer, ReviewCache};
use crate::serving::access::review_gate::ReviewGate;
use crate::serving::access::reviews::Reviewer;
use crate::serving::access::user::User;
use crate::serving::tls::clients::Trust;

/// Why it was not found out who the client is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotAuthenticated {
    /// What was shown counts for nothing.
    #[error("{0}")]
    Wrong(String),
    /// Too many unknown tokens came; later this one may count.
    #[error("too many unknown tokens")]
    Busy,
}

/// Finds out who the client is.
pub struct Authenticator {
    /// Authorities of clients.
    pub clients: Trust,
    /// Authorities of the front proxy.
    pub proxies: Trust,
    /// What the front proxy may say.
    pub proxy_headers: RwLock<Arc<ProxyHeaders>>,
    /// Reviewer of tokens.
    pub reviewer: Option<Reviewer>,
    /// Answers by token; None for one that counts for nothing.
    answers: ReviewCache<Option<User>>,
    gate: ReviewGate,
    hold: GoDuration,
    metrics: AccessMetrics,
}

impl Authenticator {
    /// With no authorities yet.
    pub fn new(args: &AuthenticationArgs, reviewer: Option<Reviewer>, metrics: AccessMetrics) -> Self {
        Self {
            clients: Trust::default(),
            proxies: Trust::default(),
            proxy_headers: RwLock::new(Arc::new(ProxyHeaders::of(args))),
            reviewer,
            answers: ReviewCache::default(),
            gate: ReviewGate::default(),
            hold: args.authentication_token_webhook_cache_ttl,
            metrics,
        }
    }

    /// The client's user, or why authentication failed. Takes the headers that only a proxy may set, and the credentials, out of the request.
    pub async fn who(&self, headers: &mut HeaderMap, chain: &[CertificateDer<'_>]) -> Result<User, NotAuthenticated> {
        let since = Instant::now();
        let who = self.first_match(headers, chain).await;
        self.metrics
            .authenticated(who.as_ref().ok().map(|user| user.name.as_str()), since);
        who
    }

    async fn first_match(
        &self,
        headers: &mut HeaderMap,
        chain: &[CertificateDer<'_>],
    ) -> Result<User, NotAuthenticated> {
        let allowed = self.proxy_headers.read().clone();
        let spoken_for = allowed.take(headers);
        let credentials = headers.remove(header::AUTHORIZATION);
        let mut wrong = Vec::new();
        match spoken_for.and_then(|user| self.by_proxy(&allowed, user, chain)) {
            Some(Ok(user)) => return Ok(user.authenticated()),
            Some(Err(why)) => wrong.push(why),
            None => {}
        }
        match self.clients.subject(chain) {
            Some(Ok(subject)) => {
                let user = User {
                    name: subject.name,
                    groups: subject.groups,
                    ..User::default()
                };
                return Ok(user.authenticated());
            }
            Some(Err(why)) => wrong.push(format!("the client certificate does not count: {why}")),
            None => {}
        }
        if let (Some(token), Some(reviewer)) = (credentials.as_ref().and_then(bearer), &self.reviewer) {
            match self.by_token(reviewer, token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => wrong.push("the token counts for nothing".into()),
                Err(error) if *error == *BUSY => return Err(NotAuthenticated::Busy),
                Err(error) => wrong.push(format!("the token could not be checked: {error}")),
            }
        }
        if wrong.is_empty() {
            Ok(User::anonymous())
        } else {
            Err(NotAuthenticated::Wrong(wrong.join("; ")))
        }
    }

    /// Headers count only from a proxy with a certificate of its authority; a certificate of another one is no mistake here.
    fn by_proxy(
        &self,
        allowed: &ProxyHeaders,
        user: User,
        chain: &[CertificateDer<'_>],
    ) -> Option<Result<User, String>> {
        match self.proxies.subject(chain)? {
            Ok(proxy) if allowed.allowed_names.is_empty() || allowed.allowed_names.contains(&proxy.name) => {
                Some(Ok(user))
            }
            Ok(proxy) => Some(Err(format!(
                "{:?} is none of --requestheader-allowed-names",
                proxy.name
            ))),
            Err(_) => None,
        }
    }

    async fn by_token(&self, reviewer: &Reviewer, token: &str) -> Result<Option<User>, NoAnswer> {
        let (digest, since) = (Sha256::digest(token).into(), Instant::now());
        if let Some(answer) = self.answers.known(&digest) {
            self.metrics.looked(true, since);
            return Ok(answer);
        }
        let (reviewer, token, hold) = (reviewer.clone(), token.to_owned(), self.hold.0);
        let (metrics, gate) = (self.metrics.clone(), self.gate.clone());
        let ask = async move {
            let _turn = gate.enter(&digest).ok_or(BUSY)?;
            let fetch = metrics.fetch();
            let status = reviewer.token(&token).await;
            fetch.ended(status.is_ok());
            let status = status?;
            let user = status.user.filter(|_| status.authenticated == Some(true));
            let user = user.map(|user| User {
                name: user.username.unwrap_or_default(),
                uid: user.uid.unwrap_or_default(),
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            });
            let user = user.filter(|user| !user.name.is_empty());
            if user.is_some() {
                gate.good(digest);
            }
            Ok((user, hold))
        };
        let answer = self.answers.ask(digest, ask).await;
        self.metrics.looked(false, since);
        answer
    }
}

/// The result of a review that was not sent.
const BUSY: &str = "too many unknown tokens";

/// The token of `Authorization: Bearer TOKEN`.
fn bearer(credentials: &HeaderValue) -> Option<&str> {
    let (scheme, token) = credentials.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
