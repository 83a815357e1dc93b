//! Authentication: OAuth access tokens, kept in the host's memory until shortly before they end.
//!
//! ```text
//!   token-url = nil       no token at all
//!   token-url             the source of upstream's managed control planes: token-body, with the metadata server's token
//!   client-email          a service account's key, by which the host signs (jwt.rs)
//!   none of these         the metadata server: the service account of the machine that Cloudwit runs on
//! ```

mod jwt;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::keys::Signature;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::{Token, Tried};
use cloudwit_guest_sdk::url::is_url;
use serde::Deserialize;

use crate::api::errors;
use crate::config::{Global, given};
use crate::metadata;

/// What the tokens are good for. Enough for all that is done here.
const SCOPE: &str = "https://www.googleapis.com/auth/compute";

/// What tokens for other services than Compute Engine are good for; there is no smaller one for them.
const PLATFORM_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// Where keys give tokens, and for whom their assertions are.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// The secret: the PEM text under `private_key` in a service account's key file.
const SECRET: &str = "private-key";

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// Where a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source<'a> {
    Nobody,
    Other { url: &'a str, body: &'a str },
    Key { email: &'a str },
    Metadata,
}

impl<'a> Source<'a> {
    fn of(global: &'a Global) -> Self {
        match (given(&global.token_url), given(&global.client_email)) {
            (Some("nil"), _) => Self::Nobody,
            (Some(url), _) => Self::Other {
                url,
                body: given(&global.token_body).unwrap_or_default(),
            },
            (None, Some(email)) => Self::Key { email },
            (None, None) => Self::Metadata,
        }
    }
}

/// Whether tokens need the metadata server.
pub fn needs_metadata(global: &Global) -> bool {
    matches!(Source::of(global), Source::Metadata | Source::Other { .. })
}

/// Where tokens come from.
pub fn wishes(global: &Global) -> Option<HttpWish> {
    match Source::of(global) {
        Source::Key { .. } => HttpWish::for_url(token_uri(global), &["POST"], "access tokens of the service account"),
        Source::Other { url, .. } => HttpWish::for_url(url, &["POST"], "access tokens"),
        Source::Nobody | Source::Metadata => None,
    }
}

/// The key, if one is used.
pub fn secrets(global: &Global) -> Option<SecretWish> {
    let reason = "the service account's private key (private_key of its key file), by which the host signs";
    matches!(Source::of(global), Source::Key { .. }).then(|| SecretWish::new(SECRET, &[SecretUse::Sign], reason))
}

/// Reports what is missing to authenticate.
pub fn validate(global: &Global, problems: &mut Problems) {
    match Source::of(global) {
        Source::Other { url, .. } if !is_url(url) => {
            let text = format!("\"{url}\" is no URL; write one, or nil for no tokens, or remove the key");
            problems.add("global.token-url", text);
        }
        Source::Key { email } if !email.contains('@') => {
            let text = format!("\"{email}\" is no service account; write client_email of its key file");
            problems.add("global.client-email", text);
        }
        _ => {}
    }
    let key = [
        ("private-key-id", &global.private_key_id),
        ("token-uri", &global.token_uri),
    ];
    for (name, _) in key.iter().filter(|(_, value)| given(value).is_some()) {
        if given(&global.client_email).is_none() {
            let text =
                "this key has no effect without client-email; write client_email of the service account's key file";
            problems.add(format!("global.{name}"), text);
        }
    }
    if given(&global.token_url).is_some() && given(&global.client_email).is_some() {
        let text = "token-url is used, and client-email is not; remove one of them";
        problems.add("global.client-email", text);
    }
}

fn token_uri(global: &Global) -> &str {
    given(&global.token_uri).unwrap_or(TOKEN_URI)
}

/// Makes a request with a token, and once again with a new one when it is refused.
///
/// # Errors
/// The error of `attempt`; why there is no token.
pub fn with_token(
    global: &Global,
    context: Context,
    attempt: impl Fn(Option<&str>) -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    with_token_for(SCOPE, "access", (global, context), attempt)
}

/// The same, for other services of Google Cloud.
///
/// # Errors
/// As [`with_token`].
pub fn with_platform_token(
    global: &Global,
    context: Context,
    attempt: impl Fn(Option<&str>) -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    with_token_for(PLATFORM_SCOPE, "access-platform", (global, context), attempt)
}

fn with_token_for(
    scope: &str,
    kept: &str,
    (global, context): (&Global, Context),
    attempt: impl Fn(Option<&str>) -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    let source = Source::of(global);
    if source == Source::Nobody {
        return attempt(None);
    }
    let obtain =
        || obtain(global, context, source, scope).map_err(|failure| failure.context("getting an access token"));
    Token::with(&context.state(), kept, obtain, |token: &String| {
        let answer = attempt(Some(token))?;
        if answer.status != 401 {
            return Ok(Tried::Done(answer));
        }
        Ok(Tried::Refused(errors::failure(&answer)))
    })
}

/// The answer of a token endpoint.
#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: u64,
}

/// The answer of upstream's other source.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Other {
    access_token: String,
    expire_time: String,
}

/// A token and when it ends.
fn obtain(global: &Global, context: Context, source: Source<'_>, scope: &str) -> Result<(String, u64), Failure> {
    let granted: Granted = match source {
        Source::Nobody => return Ok(Default::default()),
        Source::Key { email } => {
            let key = context.keys().open(SECRET)?;
            let unsigned = jwt::unsigned(&jwt::Claims {
                issuer: email,
                key_id: given(&global.private_key_id),
                scope,
                audience: audience(global),
                now: context.now(),
            });
            let signature = key.sign(Signature::RsaPkcs1Sha256, unsigned.as_bytes())?;
            let form = Form::new().field("grant_type", GRANT);
            let form = form.field("assertion", jwt::signed(&unsigned, &signature));
            let answer = context.http().post(token_uri(global)).form(&form).send_any()?;
            errors::success_of_token(answer)?.json()?
        }
        Source::Metadata => from_metadata(global, context)?,
        Source::Other { url, body } => {
            let token = from_metadata(global, context)?.access_token;
            let request = context.http().post(url).body("application/json", body);
            let answer = request.header("authorization", format!("Bearer {token}")).send_any()?;
            let other: Other = errors::success_of_token(answer)?.json()?;
            let ends = parse_rfc3339(&other.expire_time).unwrap_or(context.now());
            return Ok((other.access_token, ends));
        }
    };
    Ok((granted.access_token, context.now() + granted.expires_in))
}

fn from_metadata(global: &Global, context: Context) -> Result<Granted, Failure> {
    metadata::get(global, context, "/instance/service-accounts/default/token")?.json()
}

/// Assertions are for Google's own endpoint, also where a proxy or a test stands before it.
fn audience(global: &Global) -> &str {
    let uri = token_uri(global);
    if uri.starts_with("https://") { uri } else { TOKEN_URI }
}

#[cfg(test)]
mod tests;
