//! Who is asking: a front proxy that speaks for a user, a client certificate, a bearer token (by TokenReview), or nobody in particular.
//!
//! As upstream's chain: the first one that recognises the request decides; if none does and one found something wrong, the answer is
//! 401; if there was nothing to recognise, the request is anonymous.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::http::{HeaderMap, HeaderName, header};
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};

use crate::delegation_args::AuthenticationArgs;
use crate::duration::GoDuration;
use crate::go_values::entries;
use crate::reviews::{Remembered, Reviewer};
use crate::tls_clients::Trust;

/// Who somebody is, as SubjectAccessReviews know it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct User {
    /// The name.
    pub name: String,
    /// An id that tells users of one name apart.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further facts.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// Somebody who has not said who he is.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".into(),
            groups: vec!["system:unauthenticated".into()],
            ..Self::default()
        }
    }

    fn authenticated(mut self) -> Self {
        let group = "system:authenticated".to_owned();
        if !self.groups.contains(&group) {
            self.groups.push(group);
        }
        self
    }
}

/// What the front proxy may say, and in which headers.
#[derive(Debug, Clone, Default)]
pub struct ProxyHeaders {
    /// Common names of the proxy; empty: any.
    pub allowed_names: Vec<String>,
    /// Headers with the name.
    pub username: Vec<String>,
    /// Headers with groups.
    pub group: Vec<String>,
    /// Headers with the id.
    pub uid: Vec<String>,
    /// Beginnings of headers with further facts.
    pub extra_prefix: Vec<String>,
}

impl ProxyHeaders {
    /// As the flags say.
    pub fn of(args: &AuthenticationArgs) -> Self {
        Self {
            allowed_names: entries(&args.requestheader_allowed_names),
            username: entries(&args.requestheader_username_headers),
            group: entries(&args.requestheader_group_headers),
            uid: entries(&args.requestheader_uid_headers),
            extra_prefix: entries(&args.requestheader_extra_headers_prefix),
        }
    }

    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let all = |names: &[String]| -> Vec<String> {
            let values = names
                .iter()
                .flat_map(|name| headers.get_all(name.to_ascii_lowercase()).iter());
            values
                .filter_map(|value| value.to_str().ok())
                .map(str::to_owned)
                .collect()
        };
        let name = all(&self.username).into_iter().find(|name| !name.is_empty())?;
        let mut extra = BTreeMap::<String, Vec<String>>::new();
        for (header, value) in headers {
            let fact = self
                .extra_prefix
                .iter()
                .find_map(|prefix| header.as_str().strip_prefix(&prefix.to_ascii_lowercase()));
            if let (Some(fact), Ok(value)) = (fact, value.to_str()) {
                extra.entry(decoded(fact)).or_default().push(value.to_owned());
            }
        }
        Some(User {
            name,
            uid: all(&self.uid).into_iter().next().unwrap_or_default(),
            groups: all(&self.group),
            extra,
        })
    }
}

/// Percent signs in the key of a fact, as the API server writes them; what is no such sign stays.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let hex = more
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Finds out who is asking.
pub struct Authenticator {
    /// Authorities of clients.
    pub clients: Trust,
    /// Authorities of the front proxy.
    pub proxies: Trust,
    /// What the front proxy may say.
    pub proxy_headers: Arc<RwLock<ProxyHeaders>>,
    /// Who knows tokens.
    pub reviewer: Option<Reviewer>,
    /// Answers by the digest of the token; None for one that counts for nothing.
    answers: Remembered<[u8; 32], Option<User>>,
    hold: GoDuration,
}

impl Authenticator {
    /// With no authorities yet.
    pub fn new(args: &AuthenticationArgs, reviewer: Option<Reviewer>) -> Self {
        Self {
            clients: Trust::default(),
            proxies: Trust::default(),
            proxy_headers: Arc::new(RwLock::new(ProxyHeaders::of(args))),
            reviewer,
            answers: Remembered::default(),
            hold: args.authentication_token_webhook_cache_ttl,
        }
    }

    /// Who is asking, or why that was not believed. Takes the headers that only a proxy may set, and the credentials, out of the request.
    pub async fn who(&self, headers: &mut HeaderMap, chain: &[CertificateDer<'_>]) -> Result<User, String> {
        let mut wrong = Vec::new();
        let by_proxy = self.by_proxy(headers, chain);
        let token = headers.remove(header::AUTHORIZATION);
        match by_proxy {
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
        let bearer = token.as_ref().and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        if let (Some(token), Some(reviewer)) = (bearer.filter(|token| !token.is_empty()), &self.reviewer) {
            match self.by_token(reviewer, token).await {
                Ok(Some(user)) => return Ok(user.authenticated()),
                Ok(None) => wrong.push("the token counts for nothing".into()),
                Err(error) => wrong.push(format!("the token could not be checked: {error}")),
            }
        }
        if wrong.is_empty() {
            Ok(User::anonymous())
        } else {
            Err(wrong.join("; "))
        }
    }

    /// Headers count only from a proxy with a certificate of its authority; a certificate of another one is no mistake here.
    fn by_proxy(&self, headers: &mut HeaderMap, chain: &[CertificateDer<'_>]) -> Option<Result<User, String>> {
        let allowed = self
            .proxy_headers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let user = allowed.user(headers);
        let said = allowed.username.iter().chain(&allowed.group).chain(&allowed.uid);
        let said: Vec<HeaderName> = said.filter_map(|name| name.to_ascii_lowercase().parse().ok()).collect();
        said.iter().for_each(|name| drop(headers.remove(name)));
        let user = user?;
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

    async fn by_token(&self, reviewer: &Reviewer, token: &str) -> Result<Option<User>, kube::Error> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(answer) = self.answers.get(&digest) {
            return Ok(answer);
        }
        let status = reviewer.token(token).await?;
        let user = status
            .user
            .filter(|_| status.authenticated == Some(true))
            .map(|user| User {
                name: user.username.unwrap_or_default(),
                uid: user.uid.unwrap_or_default(),
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            });
        self.answers.put(digest, user.clone(), self.hold.0);
        Ok(user)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn authenticator() -> Authenticator {
        Authenticator::new(&Args::parse_from(["cloudwit"]).authentication, None)
    }

    #[tokio::test]
    async fn headers_of_a_proxy_count_for_nothing_from_others() {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", "admin".parse().unwrap());
        headers.insert("x-remote-group", "system:masters".parse().unwrap());
        assert_eq!(authenticator().who(&mut headers, &[]).await, Ok(User::anonymous()));
        assert!(headers.is_empty(), "nobody later can take them for true");
    }

    #[test]
    fn a_proxy_says_name_groups_and_facts() {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", "ann".parse().unwrap());
        headers.append("x-remote-group", "a".parse().unwrap());
        headers.append("x-remote-group", "b".parse().unwrap());
        headers.insert("x-remote-extra-example.com%2fproject", "p".parse().unwrap());
        let user = ProxyHeaders::of(&Args::parse_from(["cloudwit"]).authentication)
            .user(&headers)
            .unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups),
            ("ann", vec!["a".to_owned(), "b".into()])
        );
        assert_eq!(user.extra["example.com/project"], ["p"]);
    }
}
