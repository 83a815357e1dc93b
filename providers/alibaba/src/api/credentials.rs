//! Credentials: the operator's access key, whose secret stays in the host, or the role of the machine that Cloudwit runs on.

use std::time::Duration;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::Token;
use serde::{Deserialize, Serialize};

use super::signature::Secret;
use crate::config::{Global, SECRET};

/// How long to wait: the metadata service is on the machine itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds for which a session with the metadata service lasts.
const SESSION: &str = "21600";

const ROLES: &str = "/latest/meta-data/ram/security-credentials/";

/// What the metadata service gives; kept in the state.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Given {
    access_key_id: String,
    access_key_secret: String,
    security_token: String,
    expiration: String,
}

/// What a request is signed with.
pub enum Credentials {
    /// The operator's key.
    Key(String),
    /// Those of the role, from the state.
    Role(Token<Given>),
}

impl Credentials {
    /// Those to sign with now.
    ///
    /// # Errors
    /// The metadata service's error.
    pub fn current(global: &Global, context: Context) -> Result<Self, Failure> {
        match global.access_key_id() {
            Some(id) => Ok(Self::Key(id)),
            None => Token::cached(&context.state(), "role", || of_the_role(global, context)).map(Self::Role),
        }
    }

    /// Drops them, because the cloud refused them. False when there are none but these.
    pub fn forget(&self, context: Context) -> bool {
        match self {
            Self::Key(_) => false,
            Self::Role(token) => {
                token.forget(&context.state());
                true
            }
        }
    }

    /// Id of the key.
    pub fn id(&self) -> &str {
        match self {
            Self::Key(id) => id,
            Self::Role(token) => &token.value.access_key_id,
        }
    }

    /// The secret.
    ///
    /// # Errors
    /// `denied` when it is not granted.
    pub fn secret(&self, context: Context) -> Result<Secret<'_>, Failure> {
        match self {
            Self::Key(_) => context.keys().open(SECRET).map(Secret::Host),
            Self::Role(token) => Ok(Secret::Held(&token.value.access_key_secret)),
        }
    }

    /// What goes with each request of a role.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Key(_) => None,
            Self::Role(token) => Some(&token.value.security_token),
        }
    }
}

/// Credentials of the machine's role, and when they end.
fn of_the_role(global: &Global, context: Context) -> Result<(Given, u64), Failure> {
    let http = context.http().base(global.metadata()).timeout(PATIENCE);
    let session = http
        .put("/latest/api/token")
        .header("x-aliyun-ecs-metadata-token-ttl-seconds", SESSION)
        .send()
        .map_err(|failure| failure.context("the metadata service (without accessKeyID the machine's role is used)"))?;
    let http = http.header("x-aliyun-ecs-metadata-token", session.text().trim());
    let role = match given(&global.role) {
        Some(role) => role.to_owned(),
        None => {
            let roles = http.get(ROLES).send_optional()?;
            let roles = roles.as_ref().map(|roles| roles.text()).unwrap_or_default();
            let first = roles.lines().map(str::trim).find(|role| !role.is_empty());
            let none = "this machine has no RAM role; attach one, or write accessKeyID into the cloud config";
            first.ok_or_else(|| Failure::not_found(none))?.to_owned()
        }
    };
    let response = http.get(&format!("{ROLES}{role}")).send()?;
    // Without the mistake: it may quote a key.
    let not_whole = || {
        Failure::other(format!(
            "the metadata service's credentials for the role {role} are not whole"
        ))
    };
    let given: Given = serde_json::from_slice(&response.body).map_err(|_| not_whole())?;
    let parts = [&given.access_key_id, &given.access_key_secret, &given.security_token];
    match parse_rfc3339(&given.expiration) {
        Some(expires) if parts.iter().all(|part| !part.is_empty()) => Ok((given, expires)),
        _ => Err(not_whole()),
    }
}
