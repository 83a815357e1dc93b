//! Authentication at the NSX manager: a client certificate, a session of a user, a user of VMware Identity Manager, a token of VMware Cloud.
//!
//! A session and a token are kept in the host's state for all calls, and renewed once when NSX does not take them any more. The certificate is the host's:
//! it is in the grant, and TLS presents it.

use std::fmt;
use std::time::Duration;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::http::Request;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::token::{Token, Tried};
use cloudwit_guest_sdk::url::is_url;
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

use super::errors;
use crate::config::NsxManager;
use crate::config::credentials::Credentials;

/// A session ends after half an hour without use (NSX's `connection_timeout` of its API). It is dropped before that.
const LIFE: u64 = 25 * 60;

/// NSX locks an account for a quarter of an hour after five failed logins in as long a time (its defaults), so a refused login is not repeated for so long.
const AFTER_REFUSAL: Duration = Duration::from_secs(300);

/// A session as young as this is not what a denial is about, in seconds.
const YOUNG: u64 = 60;

/// Names of the secrets.
const USER: &str = "nsxt.username";
const PASSWORD: &str = "nsxt.password";
const REMOTE: &str = "nsxt.remote-authorization";
const VMC_TOKEN: &str = "nsxt.vmc-access-token";

/// The identity.
#[derive(Clone)]
pub enum Auth {
    /// A principal identity, by the client certificate of the grant. The files are those that upstream reads itself.
    Certificate {
        /// Where the cloud config has the certificate.
        certificate: String,
        /// Where it has the key.
        key: String,
    },
    /// A user of NSX, by a session.
    Session(Credentials),
    /// A user of VMware Identity Manager: what follows `Remote` in the header, or none where that is a secret.
    Remote(Option<String>),
    /// An account of VMware Cloud: where tokens come from, and the refresh token, or none where that is a secret.
    Cloud {
        /// URL.
        url: String,
        /// From the cloud config.
        refresh: Option<String>,
    },
}

/// All of it is confidential.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificate { .. } => "Certificate",
            Self::Session(_) => "Session",
            Self::Remote(_) => "Remote",
            Self::Cloud { .. } => "Cloud",
        })
    }
}

impl Auth {
    /// As upstream decides: a certificate, else a token, else a user.
    pub(super) fn of(manager: &NsxManager, problems: &mut Problems) -> Self {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        match (
            given(&manager.client_auth_cert_file),
            given(&manager.client_auth_key_file),
        ) {
            (Some(certificate), Some(key)) => {
                let others = [
                    ("nsxt.user", given(&manager.user).is_some()),
                    ("nsxt.remoteAuth", manager.remote_auth),
                    ("nsxt.vmcAuthHost", given(&manager.vmc_auth_host).is_some()),
                    ("nsxt.vmcAccessToken", given(&manager.vmc_access_token).is_some()),
                ];
                for (at, _) in others.into_iter().filter(|(_, there)| *there) {
                    problems.warn(at, "this has no effect beside clientAuthCertFile; take one of them out");
                }
                return Self::Certificate { certificate, key };
            }
            (Some(_), None) => problems.add(
                "nsxt.clientAuthKeyFile",
                "this is missing; write the file of the private key beside clientAuthCertFile, or take that out",
            ),
            (None, Some(_)) => problems.add(
                "nsxt.clientAuthCertFile",
                "this is missing; write the file of the certificate beside clientAuthKeyFile, or take that out",
            ),
            (None, None) => {}
        }
        if let Some(host) = given(&manager.vmc_auth_host) {
            let url = format!("https://{}", host.trim());
            if host.contains("://") || !is_url(&url) {
                let text = format!(
                    "\"{host}\" is no host; write it like console.cloud.vmware.com/csp/gateway/am/api/auth/api-tokens/authorize"
                );
                problems.add("nsxt.vmcAuthHost", text);
            }
            let refresh = given(&manager.vmc_access_token);
            return Self::Cloud { url, refresh };
        }
        if given(&manager.vmc_access_token).is_some() {
            problems.add(
                "nsxt.vmcAuthHost",
                "this is missing; write where access tokens come from",
            );
        }
        let credentials = match (given(&manager.user), given(&manager.password)) {
            (Some(user), Some(password)) => Credentials::text(user, password),
            (None, None) => Credentials::Secrets {
                user: USER.into(),
                password: PASSWORD.into(),
            },
            (user, _) => {
                let (missing, there) = if user.is_some() {
                    ("password", "user")
                } else {
                    ("user", "password")
                };
                let text =
                    format!("this is missing; write it beside {there}, or take {there} out and grant both as secrets");
                problems.add(format!("nsxt.{missing}"), text);
                Credentials::text(String::new(), String::new())
            }
        };
        match (manager.remote_auth, credentials) {
            (false, credentials) => Self::Session(credentials),
            (true, Credentials::Secrets { .. }) => Self::Remote(None),
            (true, Credentials::Text { user, password }) => {
                Self::Remote(Some(BASE64.encode(format!("{user}:{password}").as_bytes())))
            }
        }
    }

    /// Requested secrets, and what each is.
    pub fn secrets(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Session(Credentials::Secrets { .. }) => &[
                (USER, "name of the user at the NSX manager"),
                (PASSWORD, "password of the user at the NSX manager"),
            ],
            Self::Remote(None) => &[(
                REMOTE,
                "USER:PASSWORD of the user of VMware Identity Manager, in Base64",
            )],
            Self::Cloud { refresh: None, .. } => &[(VMC_TOKEN, "API token (refresh token) of VMware Cloud")],
            _ => &[],
        }
    }

    /// What the grant of the manager's host needs, where TLS presents the identity.
    pub fn grant(&self) -> Option<String> {
        match self {
            Self::Certificate { certificate, key } => {
                Some(format!("clientCertificate: {certificate}, clientKey: {key}"))
            }
            _ => None,
        }
    }

    /// Where tokens come from, if from elsewhere.
    pub fn token_url(&self) -> Option<&str> {
        match self {
            Self::Cloud { url, .. } => Some(url),
            _ => None,
        }
    }

    /// Makes a request as this one, and once again after a new login where the old one is not taken any more.
    ///
    /// # Errors
    /// Why there is no answer; why the login failed.
    pub(super) fn send(
        &self,
        http: &Http,
        context: Context,
        request: &dyn Fn() -> Request,
    ) -> Result<Response, Failure> {
        let state = context.state();
        match self {
            Self::Certificate { .. } => request().send_any(),
            Self::Remote(given) => {
                let who = match given {
                    Some(text) => text.clone(),
                    None => context.keys().placeholder(REMOTE)?.into(),
                };
                request().header("authorization", format!("Remote {who}")).send_any()
            }
            Self::Session(credentials) => {
                let login = || Ok((login(http, context, credentials)?, context.now() + LIFE));
                Token::with(&state, "nsx/session", login, |session: &Session| {
                    let answer = request()
                        .header("cookie", format!("JSESSIONID={}", session.cookie))
                        .header("x-xsrf-token", session.xsrf.clone())
                        .send_any()?;
                    // A denial may be about the session or about the user's role: a new session decides.
                    let over = match answer.status {
                        401 => true,
                        403 => session.made + YOUNG < context.now(),
                        _ => false,
                    };
                    Ok(if over {
                        Tried::Refused(errors::failure(&answer))
                    } else {
                        Tried::Done(answer)
                    })
                })
            }
            Self::Cloud { url, refresh } => {
                let obtain = || access_token(context, url, refresh.as_deref());
                Token::with(&state, "nsx/token", obtain, |token: &String| {
                    let request = request().header("authorization", format!("Bearer {token}"));
                    Tried::by_status(request.send_any())
                })
            }
        }
    }
}

/// A session: both are sent with each request.
#[derive(Serialize, Deserialize)]
struct Session {
    cookie: String,
    xsrf: String,
    /// In seconds since 1970.
    made: u64,
}

fn login(http: &Http, context: Context, credentials: &Credentials) -> Result<Session, Failure> {
    const REFUSED: &str = "nsx/refused";
    if let Some(stored) = context.state().get::<String>(REFUSED) {
        return Err(Failure::denied(stored.value));
    }
    let (user, password) = credentials.form(context.keys())?;
    let form = Form::new().field("j_username", user).field("j_password", password);
    let answer = http.post("/api/session/create").form(&form).send_any()?;
    if answer.status / 100 != 2 {
        let failure = errors::failure(&answer).context("logging in at the NSX manager");
        if matches!(answer.status, 401 | 403) {
            let text = failure.message().to_owned();
            context.state().put(REFUSED, &text, Keep::at_most(AFTER_REFUSAL));
        }
        return Err(failure);
    }
    let session = answer.cookie("JSESSIONID").zip(answer.header("x-xsrf-token"));
    let (cookie, xsrf) = session.ok_or_else(|| {
        Failure::unavailable("the NSX manager takes the login and gives no session: is something else answering?")
    })?;
    info!("logged in at the NSX manager");
    Ok(Session {
        cookie: cookie.into(),
        xsrf: xsrf.into(),
        made: context.now(),
    })
}

/// The answer of VMware Cloud.
#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: u64,
}

fn access_token(context: Context, url: &str, refresh: Option<&str>) -> Result<(String, u64), Failure> {
    let refresh = match refresh {
        Some(text) => text.to_owned(),
        None => context.keys().placeholder_as(VMC_TOKEN, Encoding::Form)?.into(),
    };
    let form = Form::new().field("refresh_token", refresh);
    let answer = context.http().post(url).form(&form).send_any()?;
    let doing = "getting an access token of VMware Cloud";
    // It answers `invalid_grant` with 400: the credentials are wrong, and not the request.
    if matches!(answer.status, 400 | 401 | 403) {
        return Err(Failure::denied(answer.text()).context(doing));
    }
    let granted: Granted = answer.success().map_err(|failure| failure.context(doing))?.json()?;
    Ok((granted.access_token, context.now() + granted.expires_in))
}
