//! Credentials: where they come from, and how temporary ones are kept and renewed.
//!
//! ```text
//!   static            access-key-id, secret-access-key (stay in the host)            -+
//!   web identity      web-identity-token -> STS AssumeRoleWithWebIdentity -> temporary +-> RoleARN? STS AssumeRole -> temporary
//!   instance profile  IMDSv2 -> temporary                                            -+
//! ```
//!
//! Temporary ones live in the host's state, shared by all calls, and are renewed a little before they end (the SDK's `token`), or once
//! when AWS refuses them in mid-call.

pub mod profile;
pub mod signature;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::Token;
use cloudwit_guest_sdk::xml::Element;

use crate::api::endpoints::{Endpoint, Service};
use crate::api::sender::Sender;
use crate::auth::profile::from_instance_profile;
use crate::auth::signature::{HeldSecret, SigningKey};
use crate::config::credentials::{ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN, Source, WEB_IDENTITY_TOKEN};
use crate::config::{Config, account_of};

/// Credentials that AWS gave for a while, as they are kept: id of the key, the key, and the token that goes with every request.
pub type Given = Vec<String>;

/// The same in their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Temporary {
    /// Id of the key.
    pub access_key_id: String,
    /// The key.
    pub secret_access_key: HeldSecret,
    /// Goes with every request.
    pub session_token: HeldSecret,
}

impl Temporary {
    fn of(given: &Given) -> Self {
        let part = |index: usize| given.get(index).cloned().unwrap_or_default();
        Self {
            access_key_id: part(0),
            secret_access_key: HeldSecret(part(1)),
            session_token: HeldSecret(part(2)),
        }
    }
}

/// What a request is signed with.
#[derive(Debug)]
pub enum Credential {
    /// The operator's keys; the token of temporary ones.
    Static(Option<HeldSecret>),
    /// From the state, where the token can be dropped.
    Temporary(Temporary, Token<Given>),
}

impl Credential {
    /// The id of the key, or the place where the host writes it.
    ///
    /// # Errors
    /// `denied` when the secret is not granted.
    pub fn access_key_id(&self, context: &Context) -> Result<String, Failure> {
        match self {
            Self::Static(_) => context.keys().placeholder(ACCESS_KEY_ID).map(String::from),
            Self::Temporary(given, _) => Ok(given.access_key_id.clone()),
        }
    }

    /// The token that goes with each request.
    pub fn session_token(&self) -> Option<&str> {
        match self {
            Self::Static(token) => token.as_ref().map(|token| token.0.as_str()),
            Self::Temporary(given, _) => Some(&given.session_token.0),
        }
    }

    /// The key.
    ///
    /// # Errors
    /// `denied` when the secret is not granted.
    pub fn signing_key(&self, context: &Context) -> Result<SigningKey<'_>, Failure> {
        match self {
            Self::Static(_) => context.keys().open(SECRET_ACCESS_KEY).map(SigningKey::Host),
            Self::Temporary(given, _) => Ok(SigningKey::Held(&given.secret_access_key)),
        }
    }
}

/// The way to credentials that the configuration chose.
#[derive(Debug)]
pub struct Credentials {
    source: Source,
    session_token: bool,
    metadata: String,
    web_role: String,
    session_name: String,
    role: String,
    role_source: String,
    sts: Endpoint,
}

impl Credentials {
    /// As configured.
    pub fn new(config: &Config, sts: Endpoint) -> Self {
        let settings = &config.credentials;
        Self {
            source: settings.source(),
            session_token: settings.session_token,
            metadata: settings.metadata().into(),
            web_role: settings.web_identity_role_arn.clone(),
            session_name: settings.session_name().into(),
            role: config.global.role_arn.clone(),
            role_source: config.global.source_arn.clone(),
            sts,
        }
    }

    /// What to sign with now.
    ///
    /// # Errors
    /// The error of STS or of the metadata service; `denied` when a secret is not granted.
    pub fn current(&self, sender: &Sender) -> Result<Credential, Failure> {
        if self.role.is_empty() {
            return self.base(sender);
        }
        kept(sender, "role", &|| self.take_role(sender))
    }

    /// Drops credentials that AWS refused, so that the next ones are new. False when there are none but these.
    pub fn forget(&self, sender: &Sender, refused: &Credential) -> bool {
        match refused {
            Credential::Static(_) => false,
            Credential::Temporary(_, token) => {
                token.forget(&sender.context.state());
                true
            }
        }
    }

    fn base(&self, sender: &Sender) -> Result<Credential, Failure> {
        match self.source {
            Source::Static if !self.session_token => Ok(Credential::Static(None)),
            Source::Static => {
                let token = sender.context.keys().reveal(SESSION_TOKEN)?;
                let token = String::from_utf8(token)
                    .map_err(|_| Failure::invalid(format!("the secret {SESSION_TOKEN} is no text")))?;
                Ok(Credential::Static(Some(HeldSecret(token.trim().into()))))
            }
            Source::WebIdentity => kept(sender, "web-identity", &|| self.exchange_token(sender)),
            Source::InstanceProfile => kept(sender, "instance-profile", &|| {
                from_instance_profile(sender, &self.metadata)
            }),
        }
    }

    /// `AssumeRoleWithWebIdentity`: not signed, the token is what counts. It never enters the component.
    fn exchange_token(&self, sender: &Sender) -> Result<(Given, u64), Failure> {
        let token = sender
            .context
            .keys()
            .placeholder_as(WEB_IDENTITY_TOKEN, Encoding::Form)?;
        let form = sts_form("AssumeRoleWithWebIdentity")
            .field("RoleArn", &self.web_role)
            .field("RoleSessionName", &self.session_name)
            .field("WebIdentityToken", token.as_str());
        self.ask_sts(sender, "AssumeRoleWithWebIdentity", &form, &[], None)
    }

    /// `AssumeRole`, signed with what the source gives; once again when that was over.
    fn take_role(&self, sender: &Sender) -> Result<(Given, u64), Failure> {
        let form = sts_form("AssumeRole")
            .field("RoleArn", &self.role)
            .field("RoleSessionName", &self.session_name);
        let account = account_of(&self.role_source).unwrap_or_default();
        let headers = [
            ("x-amz-source-account", account),
            ("x-amz-source-arn", self.role_source.as_str()),
        ];
        let headers: &[(&'static str, &str)] = if self.role_source.is_empty() { &[] } else { &headers };
        let base = self.base(sender)?;
        self.ask_sts(sender, "AssumeRole", &form, headers, Some(&base))
            .inspect_err(|failure| {
                // The next attempt begins with new ones: a refusal here may mean that these ended early.
                if failure.kind == FailureKind::Denied {
                    self.forget(sender, &base);
                }
            })
    }

    fn ask_sts(
        &self,
        sender: &Sender,
        action: &str,
        form: &Form,
        headers: &[(&'static str, &str)],
        credential: Option<&Credential>,
    ) -> Result<(Given, u64), Failure> {
        let answer = sender.ask(&self.sts, action, form, headers, credential);
        let answer = answer.map_err(|error| Failure::from(error).context("getting credentials"))?;
        let result = format!("{action}Result");
        let given = answer.at(&[&result, "Credentials"]);
        given.and_then(read_credentials).ok_or_else(|| {
            Failure::other(format!(
                "getting credentials: {action} was answered without whole credentials"
            ))
        })
    }
}

fn sts_form(action: &str) -> Form {
    Form::new()
        .field("Action", action)
        .field("Version", Service::Sts.version())
}

fn read_credentials(given: &Element) -> Option<(Given, u64)> {
    let text = |name| given.text(name).filter(|text| !text.is_empty());
    let parts = [text("AccessKeyId")?, text("SecretAccessKey")?, text("SessionToken")?];
    Some((parts.map(String::from).into(), parse_rfc3339(text("Expiration")?)?))
}

/// Temporary credentials of this name, from the state while they last.
fn kept(
    sender: &Sender,
    name: &str,
    obtain: &dyn Fn() -> Result<(Given, u64), Failure>,
) -> Result<Credential, Failure> {
    let token = Token::cached(&sender.context.state(), name, obtain)?;
    Ok(Credential::Temporary(Temporary::of(&token.value), token))
}

#[cfg(test)]
mod tests;
