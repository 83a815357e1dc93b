//! One call of CloudStack's API: a signed form, JSON, pages, failures, asynchronous jobs.

mod call;
pub mod errors;
mod job;
mod signature;
pub mod wire;

use std::time::Duration;

use cloudwit_guest_sdk::form::Form;
use cloudwit_guest_sdk::http::items::{self, Page};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::state::Keep;
use cloudwit_guest_sdk::time::rfc3339;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Global, SECRET_KEY, given};

pub use call::Call;

/// Items in a page: what CloudStack gives at most (`default.page.size`).
pub const PAGE: usize = 500;

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-cloudstack/", env!("CARGO_PKG_VERSION"));

/// How long a signature is good for, in seconds.
const SIGNED_FOR: u64 = 600;

/// How long the cloud's version is cached. It changes when the cloud is upgraded.
const VERSION_KEPT: Duration = Duration::from_secs(3600);

/// The way to the API.
pub struct Api {
    http: Http,
    api_key: String,
    project: Option<String>,
    context: Context,
}

#[derive(Deserialize)]
struct Capabilities {
    capability: Capability,
}

#[derive(Deserialize)]
struct Capability {
    cloudstackversion: String,
}

impl Api {
    /// For this configuration. Requests nothing yet.
    pub fn new(global: &Global, context: Context) -> Self {
        Self {
            http: context.http().base(&global.url()).header("user-agent", AGENT),
            api_key: given(&global.api_key).unwrap_or_default().to_owned(),
            project: given(&global.project_id).map(str::to_owned),
            context,
        }
    }

    /// Makes a call: the content of its answer.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Failure> {
        let response = self.http.post("").form(&self.signed(call)?).send_any()?;
        let said = response.status / 100 == 2;
        let body: Option<Value> = response.json().ok().filter(|_| said);
        let answer = body.and_then(|body| match body {
            Value::Object(body) => body.into_iter().find(|(key, _)| key.ends_with("response")),
            _ => None,
        });
        match answer {
            Some((_, answer)) if answer.get("errortext").is_none() => {
                serde_json::from_value(answer).map_err(|mistake| {
                    Failure::other(format!(
                        "{}: the answer is not what was expected: {mistake}",
                        call.command()
                    ))
                })
            }
            _ => Err(errors::failure(call.command(), &response)),
        }
    }

    /// A list of all that is in the project, or the account where there is none.
    pub fn all(&self, command: &'static str) -> Call {
        Call::new(command)
            .field("listall", "true")
            .opt("projectid", self.project.as_deref())
    }

    /// All items of a list, page by page.
    ///
    /// # Errors
    /// The cloud's error; when an item cannot be read, since it would count as one that does not exist.
    pub fn list<T: DeserializeOwned>(&self, call: Call, items: &str) -> Result<Vec<T>, Failure> {
        let mut seen = 0;
        items::all(items, |page| self.page(&call, items, page, &mut seen))
    }

    /// The same, one after the other; one that cannot be read is left out.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn each<T: DeserializeOwned>(&self, call: Call, items: &str, each: impl FnMut(T)) -> Result<(), Failure> {
        let mut seen = 0;
        items::each(items, |page| self.page(&call, items, page, &mut seen), each)
    }

    fn page(&self, call: &Call, items: &str, page: Option<&str>, seen: &mut usize) -> Result<Page, Failure> {
        let page = page.unwrap_or("1");
        let asked = call.clone().field("page", page).field("pagesize", PAGE);
        let mut answer: Value = self.send(&asked)?;
        let count = answer["count"].as_u64().and_then(|count| usize::try_from(count).ok());
        let found = match answer.get_mut(items).map(Value::take) {
            Some(Value::Array(found)) => found,
            // An empty list is left out.
            None if answer.is_object() => return Ok((Vec::new(), None)),
            _ => return Err(Failure::other(format!("the answer has no list {items}"))),
        };
        *seen += found.len();
        let is_last = found.len() < PAGE || count.is_some_and(|count| count <= *seen);
        let next = page.parse::<usize>().unwrap_or_default() + 1;
        Ok((found, (!is_last).then(|| next.to_string())))
    }

    /// The first numbers of the cloud's version, such as 4 and 22.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn version(&self) -> Result<(u32, u32), Failure> {
        let keep = Keep::at_most(VERSION_KEPT);
        let version = self
            .context
            .state()
            .get_or_make("version", keep, Duration::from_secs(5), || {
                let told: Capabilities = self.send(&Call::new("listCapabilities"))?;
                Ok::<String, Failure>(told.capability.cloudstackversion)
            })?;
        let mut numbers = version.split('.').map(|part| part.parse().unwrap_or_default());
        Ok((numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()))
    }

    /// The project that everything is in; none for the account.
    pub fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    fn signed(&self, call: &Call) -> Result<Form, Failure> {
        let key = self.context.keys().open(SECRET_KEY)?;
        let expires = rfc3339(self.context.now() + SIGNED_FOR).replace('Z', "+0000");
        let call = call
            .clone()
            .field("apiKey", &self.api_key)
            .field("response", "json")
            .field("signatureVersion", 3)
            .field("expires", expires);
        let signature = signature::signature(&key, call.parameters())?;
        let form = call.parameters().iter();
        let form = form.fold(Form::new(), |form, (name, value)| form.field(name, value));
        Ok(form.field("signature", signature))
    }
}

#[cfg(test)]
mod tests;
