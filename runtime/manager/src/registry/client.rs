//! OCI distribution client of one repository: manifests, blobs, referrers, tokens, redirects.
//!
//! The rules of the host's egress hold here too: no redirect is followed blindly, names that lead to special addresses are not connected to,
//! and a credential goes to the registry and to the token service that it names over TLS, never to where a redirect leads.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cloudwit_host::destination::Host;
use cloudwit_host::dns::SystemResolver;
use cloudwit_host::http_client;
use cloudwit_host::resolver::{AddressRule, CheckedResolver};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, StatusCode};
use parking_lot::Mutex;
use reqwest::{Response, Url};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::registry::access::{self, RegistryAccess};
use crate::registry::challenge::{self, Challenge};
use crate::registry::credentials::Credential;
use crate::registry::manifest::{INDEX, MANIFEST, shortened};
use crate::registry::reference::{ContentDigest, Reference};

/// The longest wait for a connection, for the head of an answer, and for each further piece of it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Size of a manifest, in bytes: what registries have to take (OCI distribution 1.1, "Pushing Manifests").
const MANIFEST_BYTES: u64 = 4 << 20;

/// Size of a token service's answer, in bytes.
const TOKEN_BYTES: u64 = 64 << 10;

/// Redirects of one request that are followed.
const REDIRECTS: usize = 5;

/// A client of one repository.
pub struct Client {
    http: reqwest::Client,
    base: Url,
    repository: String,
    plain: bool,
    rule: AddressRule,
    credential: Option<Credential>,
    /// What the registry took last.
    authorization: Mutex<Option<HeaderValue>>,
}

/// A body to send, and its type.
type Content = (&'static str, Bytes);

impl Client {
    /// A client of the repository of this reference. Reads files of authorities and credentials; sends nothing.
    pub async fn open(reference: &Reference, access: &RegistryAccess) -> anyhow::Result<Self> {
        let (files, of) = (access.clone(), reference.clone());
        let opened = tokio::task::spawn_blocking(move || files.open(&of))
            .await
            .context("reading its files")??;
        let plain = access.is_plain(&reference.host);
        let rule = AddressRule {
            loopback: access::is_loopback(&reference.host),
            link_local: false,
        };
        let tls = http_client::tls(opened.ca.as_deref()).map_err(|wrong| anyhow::anyhow!("registry.ca {wrong}"))?;
        let resolver = CheckedResolver {
            lookup: Arc::new(SystemResolver::default()),
            rule: Some(rule),
        };
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(resolver))
            .connect_timeout(PATIENCE)
            .read_timeout(PATIENCE)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .build()
            .ok()
            .context("no HTTP client can be made")?;
        let scheme = if plain { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{}/", reference.authority())).context("the registry's address")?;
        Ok(Self {
            http,
            base,
            repository: reference.repository.clone(),
            plain,
            rule,
            credential: opened.credential,
            authorization: Mutex::default(),
        })
    }

    /// The manifest under a digest or tag, as it is; none where there is none. Its digest is for the caller to check.
    pub async fn manifest(&self, version: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let response = self
            .send(Method::GET, self.url(&format!("manifests/{version}"))?, None)
            .await?;
        body_if_found(response, MANIFEST_BYTES)
            .await
            .with_context(|| format!("the manifest {version}"))
    }

    /// The list of what refers to a manifest; none where the registry has no such lists.
    pub async fn referrers(&self, digest: &ContentDigest) -> anyhow::Result<Option<Vec<u8>>> {
        let response = self
            .send(Method::GET, self.url(&format!("referrers/{digest}"))?, None)
            .await?;
        body_if_found(response, MANIFEST_BYTES)
            .await
            .context("the list of referrers")
    }

    /// A blob of at most so many bytes, checked by its digest.
    pub async fn blob(&self, digest: &ContentDigest, limit: u64) -> anyhow::Result<Vec<u8>> {
        let named = || format!("the blob {digest}");
        let response = self
            .send(Method::GET, self.url(&format!("blobs/{digest}"))?, None)
            .await
            .with_context(named)?;
        if !response.status().is_success() {
            bail!("{}: {}", named(), refused(response.status()));
        }
        let (content, found) = read(response, limit).await.with_context(named)?;
        if found != *digest {
            bail!("{}: what the registry sent has the digest {found}", named());
        }
        Ok(content)
    }

    /// Puts a blob there, if it is not there yet.
    pub async fn put_blob(&self, content: Vec<u8>) -> anyhow::Result<()> {
        let digest = ContentDigest::of(&content);
        let named = || format!("sending the blob {digest}");
        let known = self
            .send(Method::HEAD, self.url(&format!("blobs/{digest}"))?, None)
            .await
            .with_context(named)?;
        if known.status() == StatusCode::OK {
            return Ok(());
        }
        let begun = self
            .send(Method::POST, self.url("blobs/uploads/")?, None)
            .await
            .with_context(named)?;
        if begun.status() != StatusCode::ACCEPTED {
            bail!("{}: {}", named(), refused(begun.status()));
        }
        let mut place = location(&begun, &self.base).with_context(named)?;
        place.query_pairs_mut().append_pair("digest", &digest.to_string());
        let content: Content = ("application/octet-stream", content.into());
        let put = self.send(Method::PUT, place, Some(content)).await.with_context(named)?;
        if !put.status().is_success() {
            bail!("{}: {}", named(), refused(put.status()));
        }
        Ok(())
    }

    /// Puts a manifest or a list of them under a tag or its digest. Whether the registry lists it among the referrers of its subject.
    pub async fn put_manifest(
        &self,
        version: &str,
        media_type: &'static str,
        content: Vec<u8>,
    ) -> anyhow::Result<bool> {
        let url = self.url(&format!("manifests/{version}"))?;
        let put = self.send(Method::PUT, url, Some((media_type, content.into()))).await?;
        if !put.status().is_success() {
            bail!("sending the manifest {version}: {}", refused(put.status()));
        }
        Ok(put.headers().contains_key("oci-subject"))
    }

    fn url(&self, path: &str) -> anyhow::Result<Url> {
        self.base
            .join(&format!("v2/{}/{path}", self.repository))
            .context("the registry's address")
    }

    /// Sends a request: with the credentials that the registry requires, and after redirects of a GET.
    async fn send(&self, method: Method, url: Url, content: Option<Content>) -> anyhow::Result<Response> {
        let (mut url, mut asked, mut redirects) = (url, false, 0);
        loop {
            self.check(&url)?;
            let at_registry = url.origin() == self.base.origin();
            let mut request = self
                .http
                .request(method.clone(), url.clone())
                .header(ACCEPT, format!("{MANIFEST}, {INDEX}, */*"));
            if let Some(shown) = self.authorization.lock().clone().filter(|_| at_registry) {
                request = request.header(AUTHORIZATION, shown);
            }
            if let Some((kind, content)) = &content {
                request = request.header(CONTENT_TYPE, *kind).body(content.clone());
            }
            let response = request.send().await.map_err(|error| failed(&url, error))?;
            match response.status() {
                StatusCode::UNAUTHORIZED if at_registry && !asked => {
                    asked = true;
                    let shown = self.authorize(&response).await?;
                    *self.authorization.lock() = Some(shown);
                }
                status if status.is_redirection() && method == Method::GET => {
                    redirects += 1;
                    if redirects > REDIRECTS {
                        bail!("the registry redirects more than {REDIRECTS} times");
                    }
                    url = location(&response, &url)?;
                }
                _ => return Ok(response),
            }
        }
    }

    /// What the registry's challenge is answered with.
    async fn authorize(&self, response: &Response) -> anyhow::Result<HeaderValue> {
        let headers = response.headers().get_all(WWW_AUTHENTICATE).iter();
        let challenge = challenge::choose(headers.filter_map(|header| header.to_str().ok()));
        match challenge {
            Some(Challenge::Basic) => {
                let credential = self.credential.as_ref().context(
                    "the registry requires a user and a password; name a docker config file with an entry for it (registry.dockerConfig)",
                )?;
                Ok(basic(credential))
            }
            Some(Challenge::Bearer { realm, service, scope }) => self.token(&realm, service, scope).await,
            None => bail!("the registry answered 401 and does not say how to log in"),
        }
    }

    /// A token of the service that the registry names.
    async fn token(&self, realm: &str, service: Option<String>, scope: Option<String>) -> anyhow::Result<HeaderValue> {
        let mut url = Url::parse(realm)
            .ok()
            .context("the registry names a token service whose URL cannot be read")?;
        self.check(&url)?;
        let parameters = [("service", service), ("scope", scope)];
        for (name, value) in parameters
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)))
        {
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut request = self.http.get(url.clone());
        if let Some(credential) = &self.credential {
            request = request.header(AUTHORIZATION, basic(credential));
        }
        let response = request.send().await.map_err(|error| failed(&url, error))?;
        if !response.status().is_success() {
            let with = if self.credential.is_some() {
                "the credentials of registry.dockerConfig"
            } else {
                "no credentials (registry.dockerConfig)"
            };
            bail!(
                "the token service {} answered {} to a request with {with}",
                host_of(&url),
                response.status().as_u16()
            );
        }
        let (answer, _) = read(response, TOKEN_BYTES)
            .await
            .context("the token service's answer")?;
        let answer: TokenAnswer = serde_json::from_slice(&answer)
            .ok()
            .context("the token service's answer has no token")?;
        let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
        let token = token.context("the token service's answer has no token")?;
        sensitive(&format!("Bearer {token}")).context("the token service's answer has a token that fits into no header")
    }

    /// Whether a request may go to this URL: by its scheme, and by its address where it is a literal one; names are checked by the resolver.
    fn check(&self, url: &Url) -> anyhow::Result<()> {
        let fits = match url.scheme() {
            "https" => true,
            "http" => self.plain,
            _ => false,
        };
        if !fits {
            bail!(
                "{} is not reached over TLS; `plainHttp: true` allows that",
                host_of(url)
            );
        }
        if let Some(Host::Ip(ip)) = url.host_str().and_then(Host::parse) {
            let ip: IpAddr = ip;
            if let Err(why) = self.rule.check(ip) {
                bail!("{ip} is {why}, which a registry may not lead to");
            }
        }
        Ok(())
    }
}

/// The answer of a token service (distribution's token specification); other fields are of no use here.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

fn basic(credential: &Credential) -> HeaderValue {
    use base64::Engine as _;
    let both = format!("{}:{}", credential.user, credential.password);
    let encoded = base64::engine::general_purpose::STANDARD.encode(both);
    sensitive(&format!("Basic {encoded}")).unwrap_or_else(|| HeaderValue::from_static("Basic Og=="))
}

/// A header that nothing prints.
fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Where an answer leads, from the URL of the request.
fn location(response: &Response, from: &Url) -> anyhow::Result<Url> {
    let header = response.headers().get(LOCATION).and_then(|header| header.to_str().ok());
    let target = header.and_then(|target| from.join(target).ok());
    target.context("the registry redirects to an invalid URL")
}

async fn body_if_found(response: Response, limit: u64) -> anyhow::Result<Option<Vec<u8>>> {
    match response.status() {
        StatusCode::NOT_FOUND => Ok(None),
        status if status.is_success() => Ok(Some(read(response, limit).await?.0)),
        status => bail!(refused(status)),
    }
}

/// The body of at most so many bytes, and its digest, which is taken while it comes.
async fn read(mut response: Response, limit: u64) -> anyhow::Result<(Vec<u8>, ContentDigest)> {
    let (mut content, mut hasher) = (Vec::new(), Sha256::new());
    let host = response.url().clone();
    while let Some(piece) = response.chunk().await.map_err(|error| failed(&host, error))? {
        if content.len() as u64 + piece.len() as u64 > limit {
            bail!("it has more than {limit} bytes");
        }
        hasher.update(&piece);
        content.extend_from_slice(&piece);
    }
    Ok((content, ContentDigest::finish(hasher)))
}

fn refused(status: StatusCode) -> String {
    let why = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; the credentials of registry.dockerConfig do not allow it, or there are none"
        }
        StatusCode::NOT_FOUND => "; there is none, or the credentials do not show it",
        StatusCode::TOO_MANY_REQUESTS => "; too many requests",
        _ => "",
    };
    format!("the registry answered {}{why}", status.as_u16())
}

fn host_of(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}{port}", shortened(url.host_str().unwrap_or_default()))
}

/// Why there is no answer, without the URL: the place of a blob may be a secret.
fn failed(url: &Url, error: reqwest::Error) -> anyhow::Error {
    let host = host_of(url);
    if error.is_timeout() {
        return anyhow::anyhow!("{host} does not answer within {} s", PATIENCE.as_secs());
    }
    let error = error.without_url();
    let mut deepest: &dyn std::error::Error = &error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    let what = if error.is_connect() {
        "no connection to"
    } else {
        "no whole answer from"
    };
    anyhow::anyhow!("{what} {host}: {}", shortened(&deepest.to_string()))
}
