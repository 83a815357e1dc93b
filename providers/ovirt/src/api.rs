//! One call of the engine's API: a token of its single sign-on or Basic, JSON, pages.

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::keys::Encoding;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::token::{Token, Tried};
use data_encoding::BASE64;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::{Auth, Connection};

/// Machines in a page: what an engine gives by default (`SearchResultsLimit`).
pub const PAGE: usize = 100;

/// Longest use of a token, in seconds. The engine ends sessions that are idle for half an hour, and reports most tokens as never ending.
const TOKEN_LIFE: u64 = 24 * 3600;

/// Codes of the single sign-on that are not about the user (RFC 6749, section 4.1.2.1). The engine gives them with 400, as it does refusals.
const TRANSIENT: [&str; 2] = ["server_error", "temporarily_unavailable"];

/// User agent, for the engine's own logs.
const AGENT: &str = concat!("cloudwit-ovirt/", env!("CARGO_PKG_VERSION"));

/// The way to the engine.
pub struct Api {
    http: Http,
    context: Context,
    credentials: Credentials,
}

/// The credentials.
enum Credentials {
    /// Where tokens come from, and what is sent there.
    Sso { url: String, form: Form },
    /// The header.
    Basic(String),
}

/// The answer of the single sign-on: a token, or what was wrong, with whatever status.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Granted {
    access_token: String,
    /// Milliseconds since 1970, as a text or a number.
    exp: Value,
    /// What went wrong, in one word.
    error_code: Option<String>,
    /// The same in words; the code where there is no `error_code`.
    error: Option<String>,
    error_description: Option<String>,
}

impl Api {
    /// For this configuration. Sends nothing yet.
    ///
    /// # Errors
    /// When a secret is not granted.
    pub fn new(connection: &Connection, context: Context) -> Result<Self, Failure> {
        let http = context.http().base(connection.url());
        Ok(Self {
            http: http
                .header("version", "4")
                .header("accept", "application/json")
                .header("user-agent", AGENT),
            context,
            credentials: Credentials::of(connection, context)?,
        })
    }

    /// A GET below the API; none where the engine itself answers 404.
    ///
    /// # Errors
    /// The engine's error; `unavailable` for a 404 of another server.
    pub fn optional<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<Option<T>, Failure> {
        let response = self.send(path, query)?;
        match response.status {
            404 if is_the_engines(&response) => Ok(None),
            404 => Err(Failure::unavailable(format!(
                "{path}: this 404 is not the engine's; is connection.uri right, and is the engine behind its proxy up?"
            ))),
            _ => response.success()?.json().map(Some),
        }
    }

    /// A GET below the API.
    ///
    /// # Errors
    /// The engine's error. Something that does not exist is `unavailable`: it is no machine that was requested.
    pub fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        self.optional(path, query)?.ok_or_else(|| {
            Failure::unavailable(format!(
                "the engine's API has no {path}; is this the right connection.uri?"
            ))
        })
    }

    /// All items of a list that a search finds, page by page. An empty list has no items at all.
    ///
    /// # Errors
    /// The engine's error.
    pub fn each(
        &self,
        (path, items): (&str, &str),
        search: &str,
        follow: &str,
        mut each: impl FnMut(Value),
    ) -> Result<(), Failure> {
        let max = PAGE.to_string();
        each_page::<Failure>(|page| {
            let page = page.unwrap_or("1");
            let search = format!("{search} sortby name page {page}");
            let query = [
                ("search", search.trim_ascii_start()),
                ("case_sensitive", "false"),
                ("max", &max),
                ("follow", follow),
            ];
            let mut answer: Map<String, Value> = self.get(path, &query)?;
            let found = match answer.remove(items) {
                Some(Value::Array(found)) => found,
                None => Vec::new(),
                Some(_) => {
                    return Err(Failure::other(format!(
                        "the engine's answer to {path} has no list of {items}"
                    )));
                }
            };
            let is_last = found.len() < PAGE;
            found.into_iter().for_each(&mut each);
            let next = page.parse::<usize>().unwrap_or_default() + 1;
            Ok((!is_last).then(|| next.to_string()))
        })
    }

    /// Whether there is any machine.
    ///
    /// # Errors
    /// The engine's error.
    pub fn any_machine(&self) -> Result<bool, Failure> {
        let answer: Value = self.get("/vms", &[("max", "1")])?;
        Ok(answer["vm"].as_array().is_some_and(|found| !found.is_empty()))
    }

    fn send(&self, path: &str, query: &[(&str, &str)]) -> Result<Response, Failure> {
        let request = |header: String| {
            let request = self.http.get(path).header("authorization", header);
            let given = query.iter().filter(|(_, value)| !value.is_empty());
            given
                .fold(request, |request, (name, value)| request.query(name, value))
                .send_any()
        };
        match &self.credentials {
            Credentials::Basic(header) => request(header.clone()),
            Credentials::Sso { url, form } => Token::with(
                &self.context.state(),
                "sso",
                || self.token(url, form),
                |token: &String| Tried::by_status(request(format!("Bearer {token}"))),
            ),
        }
    }

    fn token(&self, url: &str, form: &Form) -> Result<(String, u64), Failure> {
        let response = self.http.post(url).form(form).send_any()?;
        // A proxy's answer while the engine is unavailable is not about the user.
        let response = match response.status {
            429 | 500.. => response.success()?,
            _ => response,
        };
        // A refusal is one of the user, whatever else its status is.
        let granted: Granted = match response.json() {
            Ok(granted) => granted,
            Err(odd) => return Err(response.success().err().unwrap_or(odd)),
        };
        if let Some(failure) = granted.refusal() {
            return Err(failure);
        }
        response.success()?;
        if granted.access_token.is_empty() {
            return Err(Failure::other("the engine's answer has neither a token nor an error"));
        }
        let ends = match &granted.exp {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        let most = self.context.now() + TOKEN_LIFE;
        Ok((granted.access_token, ends.map_or(most, |ends| most.min(ends / 1000))))
    }
}

impl Granted {
    /// Why there is no token: one of the user, or of the single sign-on itself.
    fn refusal(&self) -> Option<Failure> {
        let words = [&self.error_code, &self.error, &self.error_description];
        let words: Vec<&str> = words.into_iter().filter_map(|word| word.as_deref()).collect();
        let code = words.first()?;
        let text = format!("the engine gives no token: {}", words.join(" "));
        Some(match TRANSIENT.contains(code) {
            true => Failure::unavailable(text),
            false => Failure::denied(text),
        })
    }
}

/// Whether a 404 is one of the engine: without a body, or with a fault. Those of proxies have a page or a text.
fn is_the_engines(response: &Response) -> bool {
    let is_fault = |body: Value| body["reason"].is_string();
    response.body.trim_ascii().is_empty() || response.json::<Value>().is_ok_and(is_fault)
}

impl Credentials {
    fn of(connection: &Connection, context: Context) -> Result<Self, Failure> {
        let keys = context.keys();
        if connection.auth() == Auth::Basic {
            return Ok(Self::Basic(match connection.password() {
                Some(password) => {
                    let both = format!("{}:{password}", connection.username());
                    format!("Basic {}", BASE64.encode(both.as_bytes()))
                }
                None => keys.basic("username", "password")?.into(),
            }));
        }
        let password = match connection.password() {
            Some(password) => password.to_owned(),
            None => keys.placeholder_as("password", Encoding::Form)?.into(),
        };
        Ok(Self::Sso {
            url: connection.token_url(),
            form: Form::new()
                .field("grant_type", "password")
                .field("scope", "ovirt-app-api")
                .field("username", connection.username())
                .field("password", password),
        })
    }
}

#[cfg(test)]
mod tests;
