//! Authentication: tokens of Microsoft Entra ID, kept in the host's memory until shortly before they end.
//!
//! ```text
//!   useFederatedWorkloadIdentityExtension   the token of a Kubernetes service account, filled in by the host
//!   useManagedIdentityExtension             the metadata service of the machine that Cloudwit runs on
//!   aadClientCertThumbprint                 a certificate, whose key signs in the host (assertion.rs)
//!   aadClientId                             a client secret, filled in by the host
//! ```
//!
//! As with upstream the first one that is configured counts, but for the certificate: its thumbprint is a key of Cloudwit's own, so it is only there on purpose.

mod assertion;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::keys::Signature;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde::Deserialize;
use serde_json::Value;

use crate::arm::errors;
use crate::config::{Config, given};

const CLIENT_SECRET: &str = "client-secret";
const CERTIFICATE_KEY: &str = "client-certificate-key";
const FEDERATED_TOKEN: &str = "federated-token";

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The metadata service is near: a machine without one does not answer at all.
const NEAR: std::time::Duration = std::time::Duration::from_secs(5);

/// Where a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source<'a> {
    Federated { client: &'a str },
    Managed { identity: Option<&'a str> },
    Certificate { client: &'a str, thumbprint: &'a str },
    Secret { client: &'a str, plain: Option<&'a str> },
}

impl<'a> Source<'a> {
    fn of(config: &'a Config) -> Self {
        let client = given(&config.aad_client_id).unwrap_or_default();
        let plain = given(&config.aad_client_secret);
        // So AKS writes a managed identity.
        let is_msi = |text: &str| text.eq_ignore_ascii_case("msi");
        if config.use_federated_workload_identity_extension {
            Self::Federated { client }
        } else if config.use_managed_identity_extension || is_msi(client) {
            Self::Managed {
                identity: given(&config.user_assigned_identity_id),
            }
        } else if let Some(thumbprint) = given(&config.aad_client_cert_thumbprint) {
            Self::Certificate { client, thumbprint }
        } else {
            Self::Secret { client, plain }
        }
    }
}

/// Where tokens come from.
pub fn wish(config: &Config) -> Option<HttpWish> {
    match Source::of(config) {
        Source::Managed { .. } => {
            let reason = "access tokens of the machine's identity (allowLinkLocal: true)";
            HttpWish::for_url(&config.metadata(), &["GET"], reason)
        }
        _ => HttpWish::for_url(&config.active_directory(), &["POST"], "access tokens"),
    }
}

/// The secret that this configuration needs from the host.
pub fn secret(config: &Config) -> Option<SecretWish> {
    let (name, uses, reason) = match Source::of(config) {
        Source::Managed { .. } | Source::Secret { plain: Some(_), .. } => return None,
        Source::Federated { .. } => (
            FEDERATED_TOKEN,
            SecretUse::Placeholder,
            "the projected token of Cloudwit's service account",
        ),
        Source::Certificate { .. } => (
            CERTIFICATE_KEY,
            SecretUse::Sign,
            "the private key of the application's certificate, by which the host signs",
        ),
        Source::Secret { plain: None, .. } => {
            (CLIENT_SECRET, SecretUse::Placeholder, "the application's client secret")
        }
    };
    let wish = SecretWish::new(name, &[uses], reason);
    Some(match uses {
        SecretUse::Placeholder => wish.only_to(self::wish(config).iter()),
        _ => wish,
    })
}

/// Reports what is missing to authenticate.
pub fn validate(config: &Config, problems: &mut Problems) {
    let source = Source::of(config);
    if let Source::Managed { .. } = source {
        return;
    }
    for (key, value) in [("tenantId", &config.tenant_id), ("aadClientId", &config.aad_client_id)] {
        match given(value) {
            None => problems.add(
                key,
                "this key is missing; write it, or useManagedIdentityExtension: true",
            ),
            Some(text) if text.contains(['/', '?', '#', '%', ' ']) => {
                problems.add(
                    key,
                    format!("\"{text}\" is no id; write it like 00000000-0000-0000-0000-000000000000"),
                );
            }
            Some(_) => {}
        }
    }
    match source {
        Source::Certificate { thumbprint, .. } => {
            if assertion::thumbprint(thumbprint).is_none() {
                let text = format!("\"{thumbprint}\" is no SHA-1 thumbprint; write its 40 hexadecimal digits");
                problems.add("aadClientCertThumbprint", text);
            }
            if given(&config.aad_client_secret).is_some() {
                let text = "the certificate is used, and this secret is not; remove one of them";
                problems.warn("aadClientSecret", text);
            }
        }
        Source::Secret { plain: Some(_), .. } => {
            let text = "a secret in plain text; better remove it here and grant the secret client-secret";
            problems.warn("aadClientSecret", text);
        }
        _ => {}
    }
}

/// Makes a request with a token, and once again with a new one when it is refused.
///
/// # Errors
/// The error of `attempt`; why there is no token.
pub fn with_token(
    config: &Config,
    context: Context,
    attempt: impl Fn(&str) -> Result<Response, Failure>,
) -> Result<Response, Failure> {
    let obtain = || obtain(config, context).map_err(|failure| failure.context("getting an access token"));
    Token::with(&context.state(), "access", obtain, |token: &String| {
        let answer = attempt(token)?;
        if answer.status != 401 {
            return Ok(Tried::Done(answer));
        }
        Ok(Tried::Refused(errors::failure(&answer)))
    })
}

/// The answer of a token endpoint. The metadata service writes numbers as texts.
#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: Value,
}

impl Granted {
    fn seconds(&self) -> u64 {
        let text = self.expires_in.as_str().and_then(|text| text.parse().ok());
        text.or(self.expires_in.as_u64()).unwrap_or(0)
    }
}

/// A token and when it ends.
fn obtain(config: &Config, context: Context) -> Result<(String, u64), Failure> {
    let source = Source::of(config);
    let answer = match source {
        Source::Managed { identity } => from_metadata(config, context, identity)?,
        _ => from_directory(config, context, source)?,
    };
    let granted: Granted = errors::success_of_token(answer)?.json()?;
    let ends = context.now() + granted.seconds();
    Ok((granted.access_token, ends))
}

fn from_metadata(config: &Config, context: Context, identity: Option<&str>) -> Result<Response, Failure> {
    let http = context.http().base(&config.metadata()).timeout(NEAR);
    let request = http
        .get("/metadata/identity/oauth2/token")
        .header("metadata", "true")
        .query("api-version", "2018-02-01")
        .query("resource", format!("{}/", config.audience()));
    let by_resource = identity.is_some_and(|id| id.starts_with('/'));
    let name = if by_resource { "msi_res_id" } else { "client_id" };
    request.query_opt(name, identity).send_any()
}

fn from_directory(config: &Config, context: Context, source: Source<'_>) -> Result<Response, Failure> {
    let tenant = given(&config.tenant_id).unwrap_or_default();
    let url = format!("{}/{tenant}/oauth2/v2.0/token", config.active_directory());
    let form = Form::new()
        .field("grant_type", "client_credentials")
        .field("scope", format!("{}/.default", config.audience()));
    let keys = context.keys();
    let by_assertion = |form: Form, client: &str, assertion: String| {
        form.field("client_id", client)
            .field("client_assertion_type", ASSERTION_TYPE)
            .field("client_assertion", assertion)
    };
    let form = match source {
        Source::Managed { .. } => form,
        Source::Federated { client } => {
            let token = keys.placeholder_as(FEDERATED_TOKEN, Encoding::Form)?;
            by_assertion(form, client, token.into())
        }
        Source::Certificate { client, thumbprint } => {
            let unsigned = assertion::unsigned(&assertion::Claims {
                client,
                audience: &url,
                thumbprint,
                id: &context.call_id(),
                now: context.now(),
            });
            let signature = keys
                .open(CERTIFICATE_KEY)?
                .sign(Signature::RsaPkcs1Sha256, unsigned.as_bytes())?;
            by_assertion(form, client, assertion::signed(&unsigned, &signature))
        }
        Source::Secret { client, plain } => {
            let form = form.field("client_id", client);
            match plain {
                Some(plain) => form.field("client_secret", plain),
                None => form.field("client_secret", keys.placeholder_as(CLIENT_SECRET, Encoding::Form)?),
            }
        }
    };
    context.http().post(&url).form(&form).send_any()
}

#[cfg(test)]
mod tests;
