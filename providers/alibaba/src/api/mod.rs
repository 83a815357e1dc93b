//! One call of Alibaba Cloud's APIs: credentials, signature, JSON, pages, failures.

mod call;
mod credentials;
pub mod errors;
mod signature;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use cloudwit_guest_sdk::http::items;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::rfc3339;
use cloudwit_guest_sdk::token::{Tried, second_chance};
use cloudwit_guest_sdk::url::host_and_path;
use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::Value;

use crate::config::{Global, SignatureKind};

pub use call::{Call, ECS, NLB, Product, SLB, VPC};
use credentials::Credentials;

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-alibaba/", env!("CARGO_PKG_VERSION"));

/// The content type of parameters in a body.
const FORM: &str = "application/x-www-form-urlencoded";

/// Items in a page: the most that all lists give.
pub const PAGE: usize = 100;

/// The same of lists whose pages have numbers.
const NUMBERED_PAGE: usize = 50;

/// How an API gives its lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// `NextToken`, and this name for the size of a page.
    Token(&'static str),
    /// `PageNumber`.
    Number,
    /// All at once.
    Whole,
}

/// The way to the APIs.
pub struct Api {
    http: Http,
    global: Global,
    context: Context,
    requests: Cell<u32>,
}

impl Api {
    /// For this configuration. Requests nothing yet.
    pub fn new(global: &Global, context: Context) -> Self {
        let http = context
            .http()
            .header("user-agent", AGENT)
            .timeout(Duration::from_secs(30));
        Self {
            http,
            global: global.clone(),
            context,
            requests: Cell::new(0),
        }
    }

    /// Makes a call: its answer.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Failure> {
        let response = second_chance(
            || Credentials::current(&self.global, self.context),
            |credentials| credentials.forget(self.context),
            |credentials| {
                let response = self.attempt(call, credentials)?;
                if response.status / 100 == 2 {
                    return Ok(Tried::Done(response));
                }
                match errors::failure(call.action, &response) {
                    failure if errors::is_ended(&failure) => Ok(Tried::Refused(failure)),
                    failure => Err(failure),
                }
            },
        )?;
        let answer = serde_json::from_slice(&response.body).map_err(|mistake| mistake.to_string());
        let answer = answer.and_then(|answer: Value| match answer.get("RequestId") {
            Some(_) => serde_json::from_value(answer).map_err(|mistake| mistake.to_string()),
            None => Err("it has no RequestId".into()),
        });
        // Not the API but, for example, a login page. It denies nothing.
        answer.map_err(|mistake| {
            let action = call.action;
            Failure::unavailable(format!("{action}: the answer is not what was expected: {mistake}"))
        })
    }

    fn attempt(&self, call: &Call, credentials: &Credentials) -> Result<Response, Failure> {
        let mut parameters = call.parameters.clone();
        if call.action != "GetJobStatus" {
            parameters.push(("RegionId".into(), self.global.region().into()));
        }
        match self.global.signature {
            SignatureKind::Acs3 => self.attempt_acs3(call, &parameters, credentials),
            SignatureKind::Rpc => self.attempt_rpc(call, parameters, credentials),
        }
    }

    fn attempt_acs3(
        &self,
        call: &Call,
        parameters: &[(String, String)],
        credentials: &Credentials,
    ) -> Result<Response, Failure> {
        let (keys, product) = (self.context.keys(), call.product);
        let mut query = signature::query(parameters);
        let body = if product.in_body {
            std::mem::take(&mut query)
        } else {
            String::new()
        };
        let url = self.global.endpoint(product);
        let mut headers = vec![
            ("x-acs-action", call.action.to_owned()),
            ("x-acs-content-sha256", signature::hash_text(keys, body.as_bytes())),
            ("x-acs-date", rfc3339(self.context.now())),
            ("x-acs-signature-nonce", self.nonce()),
            ("x-acs-version", product.version.to_owned()),
        ];
        headers.extend(credentials.token().map(|token| ("x-acs-security-token", token.into())));
        let sent = headers.clone();
        headers.push(("host", host_and_path(&url).0.into()));
        headers.extend(product.in_body.then(|| ("content-type", FORM.into())));
        let secret = credentials.secret(self.context)?;
        let authorization = signature::acs3(keys, &secret, credentials.id(), &query, headers)?;
        let http = sent
            .into_iter()
            .fold(self.http.clone(), |http, (name, value)| http.header(name, value));
        let request = http
            .header("authorization", authorization)
            .post(&format!("{url}/?{query}"));
        let request = match product.in_body {
            true => request.body(FORM, body),
            false => request,
        };
        request.send_any()
    }

    fn attempt_rpc(
        &self,
        call: &Call,
        mut parameters: Vec<(String, String)>,
        credentials: &Credentials,
    ) -> Result<Response, Failure> {
        let (nonce, now) = (self.nonce(), rfc3339(self.context.now()));
        let own = [
            ("AccessKeyId", credentials.id()),
            ("Action", call.action),
            ("Format", "JSON"),
            ("SignatureMethod", "HMAC-SHA1"),
            ("SignatureNonce", &nonce),
            ("SignatureVersion", "1.0"),
            ("Timestamp", &now),
            ("Version", call.product.version),
        ];
        let token = credentials.token().map(|token| ("SecurityToken", token));
        let own = own.into_iter().chain(token);
        parameters.extend(own.map(|(name, value)| (name.into(), value.into())));
        let secret = credentials.secret(self.context)?;
        let signature = signature::rpc(self.context.keys(), &secret, "POST", &parameters)?;
        parameters.push(("Signature".into(), signature));
        let url = format!("{}/", self.global.endpoint(call.product));
        self.http
            .post(&url)
            .body(FORM, signature::query(&parameters))
            .send_any()
    }

    /// A text that no other request has: of this call, and of this request in it.
    fn nonce(&self) -> String {
        self.requests.set(self.requests.get() + 1);
        format!("{}-{}", self.context.call_id(), self.requests.get())
    }

    /// All items of a list, page by page. `list` is where they are, such as `Instances.Instance`.
    ///
    /// # Errors
    /// The cloud's error; when an item cannot be read, since it would count as one that does not exist.
    pub fn list<T: DeserializeOwned>(&self, call: &Call, paging: Paging, list: &str) -> Result<Vec<T>, Failure> {
        let mut seen = 0;
        items::all(call.action, |page| {
            let asked = match paging {
                Paging::Token(size) => call.clone().field(size, PAGE).opt("NextToken", page),
                Paging::Number => call
                    .clone()
                    .field("PageSize", NUMBERED_PAGE)
                    .field("PageNumber", page.unwrap_or("1")),
                Paging::Whole => call.clone(),
            };
            let mut answer: Value = self.send(&asked)?;
            let found = taken(&mut answer, list)
                .ok_or_else(|| Failure::unavailable(format!("{}: the answer has no list {list}", call.action)))?;
            seen += found.len();
            let total = answer["TotalCount"]
                .as_u64()
                .and_then(|total| usize::try_from(total).ok());
            let next = match paging {
                Paging::Token(_) => answer["NextToken"].as_str().map(str::to_owned),
                Paging::Number if !found.is_empty() && total.is_some_and(|total| total > seen) => {
                    let number = page.unwrap_or("1").parse::<usize>().unwrap_or(1);
                    Some((number + 1).to_string())
                }
                _ => None,
            };
            Ok((found, next))
        })
    }
}

/// The list at this place. An answer that counts none may leave it out.
fn taken(answer: &mut Value, items: &str) -> Option<Vec<Value>> {
    let none = answer["TotalCount"] == 0;
    match answer
        .pointer_mut(&format!("/{}", items.replace('.', "/")))
        .map(Value::take)
    {
        Some(Value::Array(found)) => Some(found),
        None | Some(Value::Null) if none => Some(Vec::new()),
        _ => None,
    }
}

/// A list as older APIs write it: in an object that has nothing else.
///
/// # Errors
/// When it is something else.
pub fn inner<'de, D: Deserializer<'de>, T: Deserialize<'de>>(object: D) -> Result<Vec<T>, D::Error> {
    let lists = BTreeMap::<String, Vec<T>>::deserialize(object)?;
    Ok(lists.into_values().flatten().collect())
}

#[cfg(test)]
mod tests;
