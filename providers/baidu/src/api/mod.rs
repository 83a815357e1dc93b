//! One call of Baidu's API: a signed request, JSON, pages by marker, failures.

mod call;
pub mod errors;
mod signature;

use cloudwit_guest_sdk::http::items::{self, Page};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::rfc3339;
use cloudwit_guest_sdk::url::host_and_path;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{Config, Product, SECRET_KEY, given};
use signature::Signable;

pub use call::Call;

/// Items in a page: what Baidu gives at most.
pub const PAGE: usize = 1_000;

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-baidu/", env!("CARGO_PKG_VERSION"));

/// The way to the API.
pub struct Api {
    endpoints: [(Product, String); 3],
    access_key: String,
    context: Context,
}

/// Whether it can be an id: nothing in it needs encoding in a path.
pub fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !text.is_empty() && text.len() <= 128 && text.bytes().all(plain)
}

impl Api {
    /// For this configuration. Requests nothing yet.
    pub fn new(config: &Config, context: Context) -> Self {
        Self {
            endpoints: Product::ALL.map(|product| (product, config.endpoint(product))),
            access_key: given(&config.access_key_id).unwrap_or_default().to_owned(),
            context,
        }
    }

    /// Makes a call: its answer.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn send<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Failure> {
        self.answer(call)?.json()
    }

    /// The same for an answer without content.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn change(&self, call: &Call) -> Result<(), Failure> {
        self.answer(call).map(drop)
    }

    fn answer(&self, call: &Call) -> Result<Response, Failure> {
        if call.method != "GET" && self.context.is_dry_run() {
            return Err(Failure::other(format!("dry run: would send {}", call.text())));
        }
        let named = |(product, _): &&(Product, String)| *product == call.product;
        let base = self.endpoints.iter().find(named).map_or("", |(_, url)| url.as_str());
        let (host, prefix) = host_and_path(base);
        let time = rfc3339(self.context.now());
        let key = self.context.keys().open(SECRET_KEY)?;
        let signable = Signable {
            method: call.method,
            path: &format!("{prefix}{}", call.path),
            query: &call.query,
            headers: &[("host", host), ("x-bce-date", &time)],
        };
        let authorization = signable.authorization(&self.access_key, &key, &time)?;
        let http = self.context.http().base(base).header("user-agent", AGENT);
        let mut request = http
            .request(call.method, &call.path)
            .header("x-bce-date", time)
            .header("authorization", authorization);
        for (name, value) in &call.query {
            request = request.query(name, value);
        }
        if let Some(body) = &call.body {
            request = request.json(body);
        }
        let response = request.send_any()?;
        match response.status {
            200..=299 => Ok(response),
            _ => Err(errors::failure(&format!("{} {}", call.method, call.path), &response)),
        }
    }

    /// All items of a list, page by page.
    ///
    /// # Errors
    /// The cloud's error; when an item cannot be read, since it would count as one that does not exist.
    pub fn list<T: DeserializeOwned>(&self, call: &Call, items: &str) -> Result<Vec<T>, Failure> {
        items::all(items, |marker| self.page(call, items, marker))
    }

    /// The same, one after the other; one that cannot be read is left out.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn each<T: DeserializeOwned>(&self, call: &Call, items: &str, each: impl FnMut(T)) -> Result<(), Failure> {
        items::each(items, |marker| self.page(call, items, marker), each)
    }

    fn page(&self, call: &Call, items: &str, marker: Option<&str>) -> Result<Page, Failure> {
        let asked = call.clone().query("maxKeys", PAGE);
        let asked = match marker {
            Some(marker) => asked.query("marker", marker),
            None => asked,
        };
        let mut answer: Value = self.send(&asked)?;
        let Some(Value::Array(found)) = answer.get_mut(items).map(Value::take) else {
            return Err(Failure::other(format!(
                "the answer to {} has no list {items}",
                call.path
            )));
        };
        let next = answer["nextMarker"].as_str().filter(|next| !next.is_empty());
        match (answer["isTruncated"].as_bool().unwrap_or_default(), next) {
            (false, _) => Ok((found, None)),
            (true, Some(next)) => Ok((found, Some(next.to_owned()))),
            (true, None) => Err(Failure::other(format!("a page of {items} names no next one"))),
        }
    }
}

#[cfg(test)]
mod tests;
