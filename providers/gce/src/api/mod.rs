//! One call of Compute Engine: endpoint, token, JSON, pages, failures.

pub mod errors;

use std::cell::RefCell;
use std::collections::BTreeMap;

use cloudwit_guest_sdk::http::each_page;
use cloudwit_guest_sdk::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::auth;
use crate::config::Global;
use crate::operation::Operation;

/// Most items that Compute Engine puts into a page.
const PAGE: u16 = 500;

/// User agent, for the cloud's own logs.
const AGENT: &str = concat!("cloudwit-gce/", env!("CARGO_PKG_VERSION"));

/// The way to Compute Engine.
pub struct Api {
    http: Http,
    base: String,
    global: Global,
    context: Context,
    /// Resources of whole collections that were listed for many questions of one call.
    listed: RefCell<BTreeMap<String, BTreeMap<String, Value>>>,
    /// Paths that this call has changed since.
    changed: RefCell<Vec<String>>,
}

impl Api {
    /// For this configuration. Requests nothing yet.
    pub fn new(global: &Global, context: Context) -> Self {
        let base = global.api();
        Self {
            http: context.http().base(&base).header("user-agent", AGENT),
            base,
            global: global.clone(),
            context,
            listed: RefCell::default(),
            changed: RefCell::default(),
        }
    }

    /// The whole URL of a resource, as bodies of requests name it.
    pub fn link(&self, path: &str) -> String {
        format!("{}/{}", self.base, path.trim_start_matches('/'))
    }

    /// What is at this path.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, Failure> {
        self.send("GET", path, query, None)?.json()
    }

    /// What another service of Google Cloud has at this URL.
    ///
    /// # Errors
    /// Its error.
    pub fn get_of_platform(&self, url: &str, query: &[(&str, &str)]) -> Result<Response, Failure> {
        let answer = auth::with_platform_token(&self.global, self.context, |token| {
            let mut request = self.http.get(url);
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let query = query.iter();
            query
                .fold(request, |request, (name, value)| request.query(name, value))
                .send_any()
        })?;
        match (200..300).contains(&answer.status) {
            true => Ok(answer),
            false => Err(errors::failure(&answer)),
        }
    }

    /// What is at this path; none when the cloud itself reports it as not found.
    ///
    /// # Errors
    /// Any other error of the cloud.
    pub fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let (collection, name) = path.rsplit_once('/').unwrap_or((path, ""));
        let changed = self.changed.borrow().iter().any(|changed| changed.starts_with(path));
        if let Some(listed) = self.listed.borrow().get(collection).filter(|_| !changed) {
            return Ok(listed.get(name).cloned());
        }
        match self.send("GET", &format!("/{path}"), &[], None) {
            Ok(answer) => answer.json().map(Some),
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Lists a collection, so that later look-ups in it need no request, for this call.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn remember(&self, collection: &str) -> Result<(), Failure> {
        let mut all = BTreeMap::new();
        self.pages(&format!("/{collection}"), &[], |page: Page| {
            let named = page.items.into_iter().filter_map(|item| {
                let name = item.get("name")?.as_str()?.to_owned();
                Some((name, item))
            });
            all.extend(named);
            Ok(())
        })?;
        self.listed.borrow_mut().insert(collection.into(), all);
        Ok(())
    }

    /// All pages of a list.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn pages<T: DeserializeOwned + Paged>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        mut each: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let size = PAGE.to_string();
        each_page::<Failure>(|token| {
            let mut query = query.to_vec();
            query.push(("maxResults", &size));
            query.extend(token.map(|token| ("pageToken", token)));
            let mut page: T = self.get(path, &query)?;
            let next = page.next();
            each(page)?;
            Ok(next)
        })
    }

    /// All pages of a list that is requested by POST.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn ask_pages(
        &self,
        path: &str,
        body: &Value,
        mut each: impl FnMut(Page) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        each_page::<Failure>(|token| {
            let query: Vec<_> = token.map(|token| ("pageToken", token)).into_iter().collect();
            let mut page: Page = self.send("POST", path, &query, Some(body))?.json()?;
            let next = page.next();
            each(page)?;
            Ok(next)
        })
    }

    /// Changes something: what begins is an operation, which may have ended already.
    ///
    /// # Errors
    /// The cloud's error.
    pub fn change(&self, method: &'static str, path: &str, body: Option<&Value>) -> Result<Operation, Failure> {
        // What is made has its name in the body.
        let name = body
            .and_then(|body| body.get("name")?.as_str())
            .filter(|_| method == "POST");
        let changed = name.map_or_else(|| path.to_owned(), |name| format!("{path}/{name}"));
        self.changed.borrow_mut().push(changed);
        self.send(method, &format!("/{path}"), &[], body)?.json()
    }

    fn send(
        &self,
        method: &'static str,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, Failure> {
        let mut answer = self.send_once(method, path, query, body)?;
        // A load balancer is some twenty questions: of a cloud that fails now and then, one would always be among them.
        if matches!(method, "GET" | "DELETE") && answer.status >= 500 && answer.header("retry-after").is_none() {
            answer = self.send_once(method, path, query, body)?;
        }
        if (200..300).contains(&answer.status) {
            Ok(answer)
        } else {
            Err(errors::failure(&answer))
        }
    }

    fn send_once(
        &self,
        method: &'static str,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, Failure> {
        auth::with_token(&self.global, self.context, |token| {
            let mut request = self.http.request(method, path);
            if let Some(token) = token {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let request = query
                .iter()
                .fold(request, |request, (name, value)| request.query(name, value));
            match body {
                Some(body) => request.json(body).send_any(),
                None => request.send_any(),
            }
        })
    }
}

/// A page of a list.
pub trait Paged {
    /// The token of the next one.
    fn next(&mut self) -> Option<String>;
}

/// A page of a list, item by item.
#[derive(serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[derive(Default)]
pub struct Page {
    /// What is on it.
    pub items: Vec<Value>,
    next_page_token: Option<String>,
}

impl Paged for Page {
    fn next(&mut self) -> Option<String> {
        self.next_page_token.take()
    }
}

#[cfg(test)]
mod tests;
