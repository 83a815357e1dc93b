//! Who asks: the operator's access key, whose secret stays in the host, or the role of the machine that Cloudwit runs on.

use std::time::Duration;

use cloudwit_guest_sdk::config::given;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::Token;
use serde_json::Value;

use super::signature::Secret;
use crate::config::{Global, SECRET};

/// How long to wait: the metadata service is on the machine itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds for which a session with the metadata service lasts.
const SESSION: &str = "21600";

const ROLES: &str = "/latest/meta-data/ram/security-credentials/";

/// Key id, secret and security token, as they are kept.
type Given = Vec<String>;

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
    /// What the metadata service says.
    pub fn current(global: &Global, context: Context) -> Result<Self, Failure> {
        match global.access_key_id() {
            Some(id) => Ok(Self::Key(id)),
            None => Token::cached(&context.state(), "role", || of_the_role(global, context)).map(Self::Role),
        }
    }

    /// Forgets them, because the cloud refused them. False when there are none but these.
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
            Self::Role(token) => part(token, 0),
        }
    }

    /// The secret.
    ///
    /// # Errors
    /// `denied` when it is not granted.
    pub fn secret(&self, context: Context) -> Result<Secret<'_>, Failure> {
        match self {
            Self::Key(_) => context.keys().open(SECRET).map(Secret::Host),
            Self::Role(token) => Ok(Secret::Held(part(token, 1))),
        }
    }

    /// What goes with each request of a role.
    pub fn token(&self) -> Option<&str> {
        match self {
            Self::Key(_) => None,
            Self::Role(token) => Some(part(token, 2)),
        }
    }
}

fn part(token: &Token<Given>, at: usize) -> &str {
    token.value.get(at).map(String::as_str).unwrap_or_default()
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
    let answer: Value = serde_json::from_slice(&response.body).map_err(|_| not_whole())?;
    let field = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let given = vec![field("AccessKeyId"), field("AccessKeySecret"), field("SecurityToken")];
    match parse_rfc3339(&field("Expiration")) {
        Some(expires) if given.iter().all(|part| !part.is_empty()) => Ok((given, expires)),
        _ => Err(not_whole()),
    }
}
