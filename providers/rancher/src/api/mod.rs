//! One call of Cattle's API: Basic by the host, JSON resources with states and actions, pages, failures.
//!
//! Links in answers are not followed: behind a proxy they name whatever Rancher takes for its own address, often without TLS. Collections and actions are
//! where the schema documents have them, and of the link to a next page the query alone is taken.

mod call;
mod errors;
mod stage;

use cloudwit_guest_sdk::http::Request;
use cloudwit_guest_sdk::http::items::{self, Page};
use cloudwit_guest_sdk::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::{ACCESS_KEY, Global, SECRET_KEY};

pub use call::Call;
pub use errors::{BUSY, checked};
pub use stage::Stage;

/// Rows in a page. Rancher gives 3,000 at most; a host with what it reports of itself has some 10 KB.
const PAGE: usize = 500;

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-rancher/", env!("CARGO_PKG_VERSION"));

/// A type of resources: the path of its collection, and its name in the schema documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    path: &'static str,
    name: &'static str,
}

/// Machines.
pub const HOSTS: Kind = Kind::new("/hosts", "host");
/// Groups of services.
pub const STACKS: Kind = Kind::new("/stacks", "stack");
/// Load balancers.
pub const BALANCERS: Kind = Kind::new("/loadbalancerservices", "loadBalancerService");
/// What is behind them: addresses outside of Rancher's own network.
pub const EXTERNALS: Kind = Kind::new("/externalservices", "externalService");
/// Settings of the installation.
pub const SETTINGS: Kind = Kind::new("/settings", "setting");

impl Kind {
    const fn new(path: &'static str, name: &'static str) -> Self {
        Self { path, name }
    }
}

/// The way to the API.
pub struct Api {
    http: Http,
}

/// An answer to a list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Collection {
    r#type: String,
    resource_type: String,
    data: Vec<Value>,
    #[serde(default)]
    pagination: Option<Pagination>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pagination {
    next: Option<String>,
    partial: Option<bool>,
}

impl Api {
    /// For this configuration. Sends nothing yet.
    ///
    /// # Errors
    /// When a secret is not granted.
    pub fn new(global: &Global, context: Context) -> Result<Self, Failure> {
        let both = context.keys().basic(ACCESS_KEY, SECRET_KEY)?;
        let http = context.http().base(&global.url()).header("authorization", both);
        Ok(Self {
            http: http.header("accept", "application/json").header("user-agent", AGENT),
        })
    }

    /// The first resource of a kind that was not removed; none where there is none.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn first(&self, kind: Kind) -> Result<Option<Value>, Failure> {
        let request = self.http.get(kind.path).query("removed_null", 1).query("limit", 1);
        Ok(page(kind, request)?.data.into_iter().next())
    }

    /// All resources of a kind with these values in their fields that were not removed. One that cannot be read is a failure: it could be the one that is looked up.
    ///
    /// # Errors
    /// The cloud's error; `unavailable` where it has no such list at all.
    pub fn list<T: DeserializeOwned>(&self, kind: Kind, query: &[(&str, &str)]) -> Result<Vec<T>, Failure> {
        items::all(kind.name, |next| self.page(kind, query, next))
    }

    /// The same, one after the other; one that cannot be read is left out.
    ///
    /// # Errors
    /// As [`list`](Self::list), but for resources that cannot be read.
    pub fn each<T: DeserializeOwned>(
        &self,
        kind: Kind,
        query: &[(&str, &str)],
        each: impl FnMut(T),
    ) -> Result<(), Failure> {
        items::each(kind.name, |next| self.page(kind, query, next), each)
    }

    fn page(&self, kind: Kind, query: &[(&str, &str)], next: Option<&str>) -> Result<Page, Failure> {
        let request = match next {
            Some(next) => self.http.get(&format!("{}?{next}", kind.path)),
            None => {
                let request = self.http.get(kind.path).query("limit", PAGE);
                // Settings are not removed, and have no such filter.
                let request = request.query_opt("removed_null", (kind != SETTINGS).then_some(1));
                query
                    .iter()
                    .fold(request, |request, (name, value)| request.query(name, value))
            }
        };
        let Collection { data, pagination, .. } = page(kind, request)?;
        Ok((data, following(pagination.unwrap_or_default())?))
    }

    /// Makes a change.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn send(&self, call: &Call) -> Result<(), Failure> {
        let request = self.http.request(call.method, &call.target);
        let request = match &call.body {
            Some(body) => request.json(body),
            None => request,
        };
        checked(request.send_any()?).map(drop)
    }
}

/// A page of this kind, and of no other: what a proxy answers is no empty list.
fn page(kind: Kind, request: Request) -> Result<Collection, Failure> {
    let answer = checked(request.send_any()?).and_then(|answer| answer.json::<Collection>());
    let answer = answer.map_err(|failure| match failure.is_not_found() {
        true => Failure::unavailable(format!(
            "{}; is cattle-url that of an environment that is there?",
            failure.message
        )),
        false => failure,
    })?;
    if answer.r#type != "collection" || !answer.resource_type.eq_ignore_ascii_case(kind.name) {
        return Err(Failure::other(format!(
            "the answer is a {} of {:?} and no list of {}s",
            answer.r#type, answer.resource_type, kind.name
        )));
    }
    Ok(answer)
}

/// The query of the next page. A list that is cut is none.
fn following(pagination: Pagination) -> Result<Option<String>, Failure> {
    match pagination.next.filter(|next| !next.is_empty()) {
        Some(next) => match next.split_once('?') {
            Some((_, query)) => Ok(Some(query.to_owned())),
            None => Err(Failure::other(format!(
                "the list goes on at {next:?}, which has no query"
            ))),
        },
        None if pagination.partial == Some(true) => Err(Failure::other("the list is cut and has no next page")),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
