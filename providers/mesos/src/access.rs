//! Credentials: none, a principal (Basic), or a token of DC/OS, for which a service account signs in the host.

use cloudwit_guest_sdk::jwt;
use cloudwit_guest_sdk::keys::Encoding;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::{Auth, Masters};

/// Where DC/OS gives tokens, below its host.
const LOGIN: &str = "/acs/api/v1/auth/login";

/// How long a service account's assertion is good, in seconds.
const ASSERTED: u64 = 300;

/// How long a token is used, in seconds. DC/OS gives them for five days.
const TOKEN_LIFE: u64 = 24 * 3600;

/// The secrets of the grants.
pub fn secrets(masters: &Masters, to: &[HttpWish]) -> Vec<SecretWish> {
    let placeholder = |name: &str, reason: &str| SecretWish::new(name, &[SecretUse::Placeholder], reason).only_to(to);
    match masters.auth() {
        Auth::None => Vec::new(),
        Auth::Basic => vec![
            placeholder("principal", "who Cloudwit is, for the masters only"),
            placeholder("secret", "the principal's secret, for the masters only"),
        ],
        Auth::Dcos => {
            let reason = "the service account's private key, by which the host signs";
            vec![SecretWish::new("private-key", &[SecretUse::Sign], reason)]
        }
        Auth::DcosPassword => vec![placeholder("password", "the user's password, for DC/OS only")],
    }
}

/// The credentials of requests.
pub struct Access {
    context: Context,
    auth: Auth,
    uid: String,
    /// Of Basic.
    header: Option<String>,
}

#[derive(Deserialize)]
struct Login {
    token: String,
}

impl Access {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// When a secret is not granted.
    pub fn new(masters: &Masters, context: Context) -> Result<Self, Failure> {
        let auth = masters.auth();
        let header = match auth {
            Auth::Basic => Some(context.keys().basic("principal", "secret")?.into()),
            _ => None,
        };
        Ok(Self {
            context,
            auth,
            uid: masters.uid().to_owned(),
            header,
        })
    }

    /// Makes a request; with another token once again when DC/OS at `origin` refuses the first.
    ///
    /// # Errors
    /// The error of `attempt`; why there is no token.
    pub fn send(
        &self,
        http: &Http,
        origin: &str,
        attempt: impl Fn(Option<String>) -> Result<Response, Failure>,
    ) -> Result<Response, Failure> {
        if matches!(self.auth, Auth::None | Auth::Basic) {
            return attempt(self.header.clone());
        }
        let obtain = || {
            let token = self.login(http, origin);
            token.map_err(|failure| failure.context("getting a token of DC/OS"))
        };
        Token::with(&self.context.state(), "dcos", obtain, |token: &String| {
            Tried::by_status(attempt(Some(format!("token={token}"))))
        })
    }

    fn login(&self, http: &Http, origin: &str) -> Result<(String, u64), Failure> {
        let now = self.context.now();
        let body: Value = match self.auth {
            Auth::Dcos => {
                let key = self.context.keys().open("private-key")?;
                let claims = json!({ "uid": self.uid, "exp": now + ASSERTED });
                json!({ "uid": self.uid, "token": jwt::rs256(&key, &claims)? })
            }
            _ => {
                let password = self.context.keys().placeholder_as("password", Encoding::Json)?;
                json!({ "uid": self.uid, "password": password })
            }
        };
        let login: Login = http.post(&format!("{origin}{LOGIN}")).json(&body).send()?.json()?;
        Ok((login.token, now + TOKEN_LIFE))
    }
}
