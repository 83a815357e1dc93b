//! One call of Alibaba Cloud's APIs: credentials, signature, JSON, pages, failures.

mod call;
mod credentials;
pub mod errors;
mod signature;

use std::cell::Cell;
use std::time::Duration;

use cloudwit_guest_sdk::http::items;
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::rfc3339;
use cloudwit_guest_sdk::token::{Tried, second_chance};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Global, SignatureKind};

pub use call::{Call, ECS, NLB, Product, SLB, VPC};
use credentials::Credentials;

/// Who asks, for the cloud's own logs.
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
    /// For this configuration. Asks for nothing yet.
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
    /// What the cloud says.
    pub fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Failure> {
        let response = second_chance(
            || Credentials::current(&self.global, self.context),
            |credentials| credentials.forget(self.context),
            |credentials| {
                let response = self.attempt(call, credentials)?;
                if response.status / 100 == 2 {
                    return Ok(Tried::Done(response));
                }
                let failure = errors::failure(call.action(), &response);
                if errors::is_ended(&failure) {
                    Ok(Tried::Refused(failure))
                } else {
                    Err(failure)
                }
            },
        )?;
        let odd = |mistake: &dyn std::fmt::Display| {
            // Not the API: a login page, say. It denies nothing.
            Failure::unavailable(format!(
                "{}: the answer is not what was expected: {mistake}",
                call.action()
            ))
        };
        let answer: Value = serde_json::from_slice(&response.body).map_err(|mistake| odd(&mistake))?;
        if answer.get("RequestId").is_none() {
            return Err(odd(&"it has no RequestId"));
        }
        serde_json::from_value(answer).map_err(|mistake| odd(&mistake))
    }

    fn attempt(&self, call: &Call, credentials: &Credentials) -> Result<Response, Failure> {
        match self.global.signature {
            SignatureKind::Acs3 => self.attempt_acs3(call, credentials),
            SignatureKind::Rpc => self.attempt_rpc(call, credentials),
        }
    }

    fn attempt_acs3(&self, call: &Call, credentials: &Credentials) -> Result<Response, Failure> {
        let (keys, product) = (self.context.keys(), call.product());
        let parameters = signature::query(&self.with_region(call));
        let (query, body) = if product.in_body {
            ("", parameters.as_str())
        } else {
            (parameters.as_str(), "")
        };
        let url = self.global.endpoint(product);
        let host = url
            .split_once("://")
            .map_or("", |(_, rest)| rest)
            .split('/')
            .next()
            .unwrap_or_default();
        let (hash, date) = (signature::hash_text(keys, body.as_bytes()), rfc3339(self.context.now()));
        let nonce = self.nonce();
        let mut headers = vec![
            ("host", host),
            ("x-acs-action", call.action()),
            ("x-acs-content-sha256", &hash),
            ("x-acs-date", &date),
        ];
        headers.extend(credentials.token().map(|token| ("x-acs-security-token", token)));
        headers.extend([
            ("x-acs-signature-nonce", nonce.as_str()),
            ("x-acs-version", product.version),
        ]);
        if product.in_body {
            headers.insert(0, ("content-type", FORM));
        }
        let secret = credentials.secret(self.context)?;
        let authorization = signature::acs3(keys, &secret, credentials.id(), query, &headers, &hash)?;
        let mut request = self
            .http
            .post(&format!("{url}/?{query}"))
            .header("authorization", authorization);
        for (name, value) in headers.into_iter().filter(|(name, _)| name.starts_with("x-acs-")) {
            request = request.header(name.to_owned(), value);
        }
        if product.in_body {
            request = request.body(FORM, body);
        }
        request.send_any()
    }

    fn attempt_rpc(&self, call: &Call, credentials: &Credentials) -> Result<Response, Failure> {
        let product = call.product();
        let mut parameters = self.with_region(call);
        let mut add = |name: &str, value: &str| parameters.push((name.into(), value.into()));
        add("AccessKeyId", credentials.id());
        add("Action", call.action());
        add("Format", "JSON");
        add("SignatureMethod", "HMAC-SHA1");
        add("SignatureNonce", &self.nonce());
        add("SignatureVersion", "1.0");
        add("Timestamp", &rfc3339(self.context.now()));
        add("Version", product.version);
        if let Some(token) = credentials.token() {
            add("SecurityToken", token);
        }
        let secret = credentials.secret(self.context)?;
        let signature = signature::rpc(self.context.keys(), &secret, "POST", &parameters)?;
        parameters.push(("Signature".into(), signature));
        let body = signature::query(&parameters);
        self.http
            .post(&format!("{}/", self.global.endpoint(product)))
            .body(FORM, body)
            .send_any()
    }

    fn with_region(&self, call: &Call) -> Vec<(String, String)> {
        let mut parameters = call.parameters().to_vec();
        if call.action() != "GetJobStatus" {
            parameters.push(("RegionId".into(), self.global.region().into()));
        }
        parameters
    }

    /// A text that no other request has: of this call, and of this request in it.
    fn nonce(&self) -> String {
        self.requests.set(self.requests.get() + 1);
        format!("{}-{}", self.context.call_id(), self.requests.get())
    }

    /// All items of a list, page by page. `list` is where they are, such as `Instances.Instance`.
    ///
    /// # Errors
    /// What the cloud says; when an item cannot be read, since it would count as one that does not exist.
    pub fn list<T: DeserializeOwned>(&self, call: &Call, paging: Paging, list: &str) -> Result<Vec<T>, Failure> {
        let mut seen = 0;
        items::all(call.action(), |page| {
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
                .ok_or_else(|| Failure::unavailable(format!("{}: the answer has no list {list}", call.action())))?;
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
    let mut at = answer;
    for part in items.split('.') {
        match at.get_mut(part) {
            Some(inner) => at = inner,
            None => return none.then(Vec::new),
        }
    }
    match at.take() {
        Value::Array(found) => Some(found),
        Value::Null if none => Some(Vec::new()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
