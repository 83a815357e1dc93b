//! One call of the Azure Resource Manager: token, JSON, pages, failures, long operations.

pub mod errors;
pub mod ids;
mod operation;

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::auth;
use crate::config::Config;

pub use operation::{Begun, Operation};

/// The API version of machines and scale sets.
pub const COMPUTE: &str = "2025-04-01";

/// The API version of disks and snapshots.
pub const DISKS: &str = "2025-01-02";

/// The API version of networks.
pub const NETWORK: &str = "2025-05-01";

/// The API version of the network interfaces and addresses of scale sets, which have one of their own.
pub const SCALE_SET_NETWORK: &str = "2018-10-01";

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-azure/", env!("CARGO_PKG_VERSION"));

/// The way to the Resource Manager.
pub struct Arm {
    http: Http,
    config: Config,
    context: Context,
}

/// A page of a list.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Page {
    value: Vec<Value>,
    next_link: Option<String>,
}

/// Precondition of a change: the resource is unchanged since it was read.
#[derive(Debug, Clone, Copy)]
pub enum Only<'a> {
    /// It still has this ETag.
    IfUnchanged(&'a str),
    /// It does not exist.
    IfMissing,
}

impl Arm {
    /// For this configuration. Requests nothing yet.
    pub fn new(config: &Config, context: Context) -> Self {
        Self {
            http: context
                .http()
                .base(&config.resource_manager())
                .header("user-agent", AGENT),
            config: config.clone(),
            context,
        }
    }

    /// What is at this path.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn get(&self, path: &str, version: &str, query: &[(&str, &str)]) -> Result<Value, Failure> {
        self.send(|http| {
            let request = http.get(path).query("api-version", version);
            query
                .iter()
                .fold(request, |request, (name, value)| request.query(name, value))
        })?
        .json()
    }

    /// What is at this path; none when the cloud itself reports exactly this resource as not found.
    ///
    /// # Errors
    /// Any other error of the cloud.
    pub fn find(&self, path: &str, version: &str, query: &[(&str, &str)]) -> Result<Option<Value>, Failure> {
        match self.get(path, version, query) {
            Ok(value) => Ok(Some(value)),
            Err(failure) if errors::denies_resource(&failure) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// All items of a list, page by page.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn list(
        &self,
        path: &str,
        version: &str,
        query: &[(&str, &str)],
        mut each: impl FnMut(Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        each_page::<Failure>(|next| {
            let page = match next {
                // A link has all its parameters.
                Some(next) => self.send(|http| http.get(path_of(next)))?.json()?,
                None => self.get(path, version, query)?,
            };
            let page: Page = serde_json::from_value(page)
                .map_err(|mistake| Failure::other(format!("GET {path}: the answer is no list: {mistake}")))?;
            page.value.into_iter().try_for_each(&mut each)?;
            Ok(page.next_link)
        })
    }

    /// One page of a list: its items, and path and query of the next one. `target` is such a path with its query.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn page(&self, target: &str) -> Result<(Vec<Value>, Option<String>), Failure> {
        let page: Page = self.send(|http| http.get(target))?.json()?;
        Ok((page.value, page.next_link.map(|link| path_of(&link).to_owned())))
    }

    /// Changes a resource that has no ETag, such as a disk: what begins is an operation, which may have ended already.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn change(
        &self,
        method: &'static str,
        path: &str,
        version: &str,
        body: Option<&Value>,
    ) -> Result<Begun, Failure> {
        let answer = self.send(|http| {
            let request = http.request(method, path).query("api-version", version);
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        })?;
        Ok(Begun::of(&answer))
    }

    /// Writes a whole resource: what begins is an operation, which may have ended already.
    ///
    /// # Errors
    /// The cloud's error; `conflict` where `only` is not true any more.
    pub fn put(&self, path: &str, version: &str, body: &Value, only: Only<'_>) -> Result<Begun, Failure> {
        let answer = self.send(|http| {
            let request = http.put(path).query("api-version", version).json(body);
            match only {
                Only::IfUnchanged(etag) => request.header("if-match", etag),
                Only::IfMissing => request.header("if-none-match", "*"),
            }
        })?;
        Ok(Begun::of(&answer))
    }

    /// Deletes what is at this path; what is not there is deleted.
    ///
    /// # Errors
    /// The cloud's error; `conflict` where it has another ETag by now.
    pub fn delete(&self, path: &str, version: &str, etag: &str) -> Result<Begun, Failure> {
        let sent = self.send(|http| {
            let request = http.delete(path).query("api-version", version);
            request.header("if-match", etag)
        });
        match sent {
            Ok(answer) => Ok(Begun::of(&answer)),
            Err(failure) if errors::denies_resource(&failure) => Ok(Begun::Done),
            Err(failure) => Err(failure),
        }
    }

    fn send(&self, request: impl Fn(&Http) -> cloudwit_guest_sdk::http::Request) -> Result<Response, Failure> {
        let answer = auth::with_token(&self.config, self.context, |token| {
            request(&self.http)
                .header("authorization", format!("Bearer {token}"))
                .send_any()
        })?;
        if (200..300).contains(&answer.status) {
            Ok(answer)
        } else {
            Err(errors::failure(&answer))
        }
    }
}

/// Path and query of a link that the cloud gave. Requests go to the configured endpoint, also where that is a proxy.
fn path_of(link: &str) -> &str {
    let rest = link.split_once("://").map_or(link, |(_, rest)| rest);
    rest.find('/').map_or("/", |start| rest.get(start..).unwrap_or("/"))
}

#[cfg(test)]
mod tests;
