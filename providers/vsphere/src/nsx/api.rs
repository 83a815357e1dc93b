//! One call of NSX's Policy API: JSON, pages, failures.

use cloudwit_guest_sdk::http::{Request, each_page};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::url::percent_encode;
use serde::Deserialize;
use serde_json::Value;

use super::errors;
use super::settings::NsxSettings;

/// Most items that NSX puts into a page.
const PAGE: u16 = 1000;

/// User agent, for the manager's own logs.
const AGENT: &str = concat!("cloudwit-vsphere/", env!("CARGO_PKG_VERSION"));

/// The way to the manager.
pub struct Nsx<'a> {
    http: Http,
    settings: &'a NsxSettings,
    /// State, Events, time.
    pub context: Context,
}

/// A page of a list.
#[derive(Deserialize)]
struct Page {
    results: Vec<Value>,
    #[serde(default)]
    cursor: Option<String>,
}

impl<'a> Nsx<'a> {
    /// For this configuration. Requests nothing yet.
    pub fn new(settings: &'a NsxSettings, context: Context) -> Self {
        Self {
            http: context.http().base(&settings.url).header("user-agent", AGENT),
            settings,
            context,
        }
    }

    /// What is at this path of the policy tree, such as `/infra/lb-pools/p1`.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn get(&self, path: &str) -> Result<Value, Failure> {
        self.send("GET", path, &[], None)?.json()
    }

    /// The same; none when NSX itself reports it as not found.
    ///
    /// # Errors
    /// Any other error of NSX.
    pub fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        match self.get(path) {
            Err(failure) if failure.is_not_found() => Ok(None),
            found => found.map(Some),
        }
    }

    /// All objects of a collection that `wanted` accepts, page by page. What is no object is left out.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn list(&self, path: &str, mut wanted: impl FnMut(&Value) -> bool) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let size = PAGE.to_string();
        each_page::<Failure>(|cursor| {
            let mut query = vec![("page_size", size.as_str())];
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            let page: Page = self.send("GET", path, &query, None)?.json()?;
            let objects = page.results.into_iter().filter(Value::is_object);
            all.extend(objects.filter(|object| wanted(object)));
            Ok(page.cursor)
        })?;
        Ok(all)
    }

    /// What was realized of the intent with this path.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn realized(&self, path: &str) -> Result<Value, Failure> {
        let query = [("intent_path", path)];
        self.send("GET", "/infra/realized-state/realized-entities", &query, None)?
            .json()
    }

    /// Creates an object or, with its `_revision` in the body, replaces it; what it is then.
    ///
    /// # Errors
    /// `conflict` where it is another revision; any other error of NSX.
    pub fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.send("PUT", path, &[], Some(body))?.json()
    }

    /// Creates an object or changes what the body has.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn patch(&self, path: &str, body: &Value) -> Result<(), Failure> {
        self.send("PATCH", path, &[], Some(body)).map(drop)
    }

    /// Deletes an object; success when there is none.
    ///
    /// # Errors
    /// The error of NSX.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        match self.send("DELETE", path, &[], None) {
            Err(failure) if failure.is_not_found() => Ok(()),
            done => done.map(drop),
        }
    }

    fn send(
        &self,
        method: &'static str,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, Failure> {
        let target = target(path);
        let request = || {
            let request = self.http.request(method, &target);
            let request = query
                .iter()
                .fold(request, |request: Request, (name, value)| request.query(name, value));
            match body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        let once = || self.settings.auth.send(&self.http, self.context, &request);
        let mut answer = once()?;
        // A load balancer is some ten questions: of a manager that fails now and then, one would always be among them.
        if method == "GET" && answer.status >= 500 && answer.header("retry-after").is_none() {
            answer = once()?;
        }
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        let failure = errors::failure(&answer);
        let failure = match (self.settings.auth.grant(), answer.status) {
            (Some(grant), 401 | 403) => failure.context(&format!(
                "as the principal identity of the grant's client certificate ({grant})"
            )),
            _ => failure,
        };
        Err(match failure.kind {
            // Reasons are what it refers to, what is still there, or a limit: they pass without a change of the object in Kubernetes.
            FailureKind::Invalid if method != "GET" => Failure {
                kind: FailureKind::FailedPrecondition,
                ..failure
            },
            _ => failure,
        })
    }
}

/// The path of a request: ids of routes have characters that a URL has not.
fn target(path: &str) -> String {
    let mut target = String::from("/policy/api/v1");
    for part in path.split('/').skip(1) {
        target.push('/');
        target.push_str(&percent_encode(part));
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_escaped_in_paths() {
        assert_eq!(target("/infra/lb-pools"), "/policy/api/v1/infra/lb-pools");
        let path = "/infra/tier-1s/t 1/static-routes/u_fd00::_64";
        assert_eq!(
            target(path),
            "/policy/api/v1/infra/tier-1s/t%201/static-routes/u_fd00%3A%3A_64"
        );
    }
}
