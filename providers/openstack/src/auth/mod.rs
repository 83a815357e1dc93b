//! Authentication: Keystone v3 tokens by password, application credential, trust or another token.
//!
//! The secret is a placeholder that the host fills in, unless the operator left it in `cloud.conf` as upstream has it. The token and the
//! endpoints of its catalog are kept in the host's memory until shortly before the token expires; of several calls that need one at the
//! same time one requests it.

pub mod catalog;

use std::fmt;

use cloudwit_guest_sdk::keys::Keys;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde_json::Value;

use crate::api::wire::{Fields, Object};
use crate::auth::catalog::Catalog;
use crate::config::{Global, given};

/// Under which name the session is kept.
const NAME: &str = "keystone";

/// Assumed where Keystone does not report when a token was issued: half of Keystone's own default of an hour.
const ASSUMED_LIFETIME: u64 = 1800;

/// What a successful authentication gives.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    /// `X-Auth-Token`.
    pub token: String,
    /// Where the services are.
    pub catalog: Catalog,
}

impl Session {
    /// As it is kept: the token and the catalog, line by line.
    fn to_text(&self) -> String {
        format!("{}\n{}", self.token, self.catalog.to_text())
    }

    fn from_text(text: &str) -> Self {
        let (token, catalog) = text.split_once('\n').unwrap_or((text, ""));
        Self {
            token: token.into(),
            catalog: Catalog::from_text(catalog),
        }
    }
}

/// The token is a secret.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("catalog", &self.catalog)
            .finish_non_exhaustive()
    }
}

/// Methods of authentication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Password,
    Trust,
    ApplicationCredential,
    Token,
}

impl Method {
    /// A password in the text wins over everything else, as in upstream's client library.
    fn of(global: &Global) -> Option<Self> {
        if given(&global.trust_id).is_some() {
            return Some(Self::Trust);
        }
        let user = given(&global.user_id).or(given(&global.username)).is_some();
        if user && given(&global.password).is_some() {
            Some(Self::Password)
        } else if global.token.is_some() {
            Some(Self::Token)
        } else if given(&global.application_credential_id)
            .or(given(&global.application_credential_name))
            .is_some()
        {
            Some(Self::ApplicationCredential)
        } else {
            user.then_some(Self::Password)
        }
    }
}

/// The secret that this configuration needs from the host, unless it is in its text: for requests to Keystone only.
pub fn secret_name(global: &Global) -> Option<&'static str> {
    let (name, text) = match Method::of(global)? {
        Method::Password => ("password", &global.password),
        Method::Trust if given(&global.trustee_password).is_some() => return None,
        Method::Trust => ("password", &global.password),
        Method::ApplicationCredential => ("application-credential-secret", &global.application_credential_secret),
        Method::Token => ("token", &global.token),
    };
    given(text).is_none().then_some(name)
}

/// Reports what is missing to authenticate.
pub fn validate(global: &Global, problems: &mut Problems) {
    let Some(method) = Method::of(global) else {
        return problems.add(
            "global",
            "nothing says who to be; write username or user-id, or application-credential-id, or trust-id",
        );
    };
    let user_by_name = given(&global.user_id).is_none();
    let domain = user_domain(global).is_some();
    let needs_user = match method {
        Method::Password => true,
        Method::Trust => given(&global.trustee_id).is_none(),
        Method::ApplicationCredential => given(&global.application_credential_id).is_none(),
        Method::Token => false,
    };
    if needs_user && user_by_name && given(&global.username).is_none() {
        problems.add("global.username", "this key is missing; write it or user-id");
    } else if needs_user && user_by_name && !domain {
        problems.add(
            "global.domain-name",
            "username needs the domain of the user; write domain-name, domain-id or user-domain-name",
        );
    }
    if method == Method::Password && given(&global.tenant_id).is_none() {
        if given(&global.tenant_name).is_none() {
            problems.add(
                "global.tenant-id",
                "this key is missing; write the project's id, or tenant-name",
            );
        } else if project_domain(global).is_none() {
            problems.add(
                "global.tenant-domain-name",
                "tenant-name needs the domain of the project; write domain-name, domain-id or tenant-domain-name",
            );
        }
    }
}

fn domain<'a>(own_id: &'a Option<String>, own_name: &'a Option<String>, global: &'a Global) -> Option<Object> {
    let by_id = |id: &Option<String>| given(id).map(|id| Object::new().text("id", id));
    let by_name = |name: &Option<String>| given(name).map(|name| Object::new().text("name", name));
    by_id(own_id)
        .or_else(|| by_name(own_name))
        .or_else(|| by_id(&global.domain_id))
        .or_else(|| by_name(&global.domain_name))
}

fn user_domain(global: &Global) -> Option<Object> {
    domain(&global.user_domain_id, &global.user_domain_name, global)
}

fn project_domain(global: &Global) -> Option<Object> {
    domain(&global.tenant_domain_id, &global.tenant_domain_name, global)
}

/// The user without its password.
fn user(global: &Global, id: Option<&str>) -> Object {
    match (id, user_domain(global)) {
        (Some(id), _) => Object::new().text("id", id),
        (None, Some(domain)) => Object::new()
            .text_opt("name", given(&global.username))
            .object("domain", domain),
        (None, None) => Object::new().text_opt("name", given(&global.username)),
    }
}

/// The text if it was written, else the host's secret.
fn secret(keys: Keys, object: Object, key: &str, text: Option<&str>, name: &str) -> Result<Object, Failure> {
    Ok(match text {
        Some(text) => object.text(key, text),
        None => object.secret(key, &keys.placeholder_as(name, Encoding::Json)?),
    })
}

/// The body of `POST /v3/auth/tokens`.
fn request(global: &Global, keys: Keys) -> Result<Object, Failure> {
    let method = Method::of(global).unwrap_or(Method::Password);
    let user_id = given(&global.user_id);
    let password = |user: Object, text: Option<&str>| {
        let user = secret(keys, user, "password", text, "password")?;
        let password = Object::new().object("user", user);
        Ok::<_, Failure>(
            Object::new()
                .texts("methods", ["password"])
                .object("password", password),
        )
    };
    let identity = match method {
        Method::Password => password(user(global, user_id), given(&global.password))?,
        Method::Trust => password(
            user(global, given(&global.trustee_id).or(user_id)),
            given(&global.trustee_password).or(given(&global.password)),
        )?,
        Method::ApplicationCredential => {
            let credential = match given(&global.application_credential_id) {
                Some(id) => Object::new().text("id", id),
                None => Object::new()
                    .text_opt("name", given(&global.application_credential_name))
                    .object("user", user(global, user_id)),
            };
            let text = given(&global.application_credential_secret);
            let credential = secret(keys, credential, "secret", text, "application-credential-secret")?;
            Object::new()
                .texts("methods", ["application_credential"])
                .object("application_credential", credential)
        }
        Method::Token => {
            let token = secret(keys, Object::new(), "id", given(&global.token), "token")?;
            Object::new().texts("methods", ["token"]).object("token", token)
        }
    };
    let auth = Object::new().object("identity", identity);
    let auth = match scope(global, method) {
        Some(scope) => auth.object("scope", scope),
        None => auth,
    };
    Ok(Object::new().object("auth", auth))
}

/// An application credential has its project already.
fn scope(global: &Global, method: Method) -> Option<Object> {
    if method == Method::ApplicationCredential {
        return None;
    }
    if let Some(trust) = given(&global.trust_id) {
        return Some(Object::new().object("OS-TRUST:trust", Object::new().text("id", trust)));
    }
    let project = match (
        given(&global.tenant_id),
        given(&global.tenant_name),
        project_domain(global),
    ) {
        (Some(id), ..) => Object::new().text("id", id),
        (None, Some(name), Some(domain)) => Object::new().text("name", name).object("domain", domain),
        _ => return None,
    };
    Some(Object::new().object("project", project))
}

/// Authentication for one call.
#[derive(Debug)]
pub struct Identity {
    http: Http,
    context: Context,
    body: String,
    interface: String,
    region: Option<String>,
}

impl Identity {
    /// For this configuration.
    ///
    /// # Errors
    /// `denied` when a secret is needed and not granted.
    pub fn new(global: &Global, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            http: context.http().base(&global.keystone()),
            context,
            body: request(global, context.keys())?.into_text(),
            interface: global.interface().into(),
            region: given(&global.region).map(String::from),
        })
    }

    /// The session that is kept, or a new one.
    ///
    /// # Errors
    /// `denied` when Keystone refuses the credentials; else its error.
    pub fn session(&self) -> Result<Session, Failure> {
        let token = Token::cached(&self.context.state(), NAME, || self.authenticate())?;
        Ok(Session::from_text(&token.value))
    }

    /// Makes a request with the session, and once again with a new one when its token is refused.
    ///
    /// # Errors
    /// As [`session`](Self::session); the error of `attempt`; the second refusal.
    pub fn with_session(&self, attempt: impl Fn(&Session) -> Result<Response, Failure>) -> Result<Response, Failure> {
        let state = self.context.state();
        Token::with(
            &state,
            NAME,
            || self.authenticate(),
            |text: &String| Tried::by_status(attempt(&Session::from_text(text))),
        )
    }

    /// A session as it is kept, and when it ends by the host's clock.
    fn authenticate(&self) -> Result<(String, u64), Failure> {
        let request = self
            .http
            .post("/auth/tokens")
            .body("application/json", self.body.as_str());
        let response = crate::api::success(request.send_any()?).map_err(|mut failure| {
            // An application credential or a trust that was deleted: the identity is not found, and no requested resource.
            if failure.is_not_found() {
                failure.kind = FailureKind::Denied;
            }
            failure.context("authenticating")
        })?;
        let unreadable = |what: &str| Failure::unavailable(format!("Keystone's answer cannot be read: {what}"));
        let token = response
            .header("x-subject-token")
            .ok_or_else(|| unreadable("it has no X-Subject-Token"))?;
        let text = response.text();
        let json = crate::api::wire::parse(&text).map_err(|wrong| unreadable(&wrong))?;
        let body = json.need_field("token").map_err(|wrong| unreadable(&wrong))?;
        let session = Session {
            token: token.into(),
            catalog: Catalog::read(body, &self.interface, self.region.as_deref()),
        };
        Ok((session.to_text(), self.context.now() + lifetime(body)))
    }
}

/// How many seconds a token lives. By Keystone's clock alone: the host's may be wrong.
fn lifetime(token: &Value) -> u64 {
    let time = |key| token.text(key).and_then(parse_rfc3339);
    match (time("issued_at"), time("expires_at")) {
        (Some(issued), Some(expires)) => expires.saturating_sub(issued),
        _ => ASSUMED_LIFETIME,
    }
}

#[cfg(test)]
mod tests;
