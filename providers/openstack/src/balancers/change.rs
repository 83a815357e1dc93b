//! Changes of the cloud as data: plans make them, tests compare them, [`Change::make`] is the only place that writes.

use std::fmt;

use cloudwit_guest_sdk::prelude::*;

use crate::api::wire::Object;
use crate::api::{Api, Endpoint};
use crate::balancers::octavia::LBAAS;

/// One call that changes something.
#[derive(Clone)]
#[must_use = "a change has to be made"]
pub struct Change {
    method: &'static str,
    endpoint: Endpoint,
    path: String,
    body: Option<Object>,
    revision: Option<i64>,
    doing: &'static str,
}

impl Change {
    /// Makes something in Octavia: `("listeners", "listener", ...)`.
    pub fn create(path: &str, key: &str, body: Object, doing: &'static str) -> Self {
        Self::new(
            "POST",
            Endpoint::LoadBalancer,
            format!("{LBAAS}{path}"),
            Some(Object::new().object(key, body)),
            doing,
        )
    }

    /// Changes something in Octavia.
    pub fn update(path: &str, id: &str, key: &str, body: Object, doing: &'static str) -> Self {
        let path = format!("{LBAAS}{path}/{id}");
        Self::new(
            "PUT",
            Endpoint::LoadBalancer,
            path,
            Some(Object::new().object(key, body)),
            doing,
        )
    }

    /// Deletes something in Octavia.
    pub fn delete(path: &str, id: &str, doing: &'static str) -> Self {
        Self::new(
            "DELETE",
            Endpoint::LoadBalancer,
            format!("{LBAAS}{path}/{id}"),
            None,
            doing,
        )
    }

    /// Replaces a whole list in Octavia.
    pub fn replace(path: &str, body: Object, doing: &'static str) -> Self {
        Self::new(
            "PUT",
            Endpoint::LoadBalancer,
            format!("{LBAAS}{path}"),
            Some(body),
            doing,
        )
    }

    /// Something in Neutron; `path` begins behind `/v2.0/`.
    pub fn network(method: &'static str, path: &str, body: Option<Object>, doing: &'static str) -> Self {
        Self::new(method, Endpoint::Network, format!("/v2.0/{path}"), body, doing)
    }

    /// Only while the resource has this revision, so that no concurrent change is lost.
    pub fn at_revision(mut self, revision: i64) -> Self {
        self.revision = Some(revision);
        self
    }

    fn new(method: &'static str, endpoint: Endpoint, path: String, body: Option<Object>, doing: &'static str) -> Self {
        Self {
            method,
            endpoint,
            path,
            body,
            revision: None,
            doing,
        }
    }

    /// Makes it. Deleting what is gone is success.
    ///
    /// # Errors
    /// The cloud's error, with what was being done in front.
    pub fn make(self, api: &Api) -> Result<Option<Response>, Failure> {
        let mut call = match self.method {
            "POST" => api.post(self.endpoint, &self.path),
            "PUT" => api.put(self.endpoint, &self.path),
            _ => api.delete(self.endpoint, &self.path),
        };
        if let Some(body) = self.body {
            call = call.body(body);
        }
        if let Some(revision) = self.revision {
            call = call.header("if-match", format!("revision_number={revision}"));
        }
        let answer = if self.method == "DELETE" {
            call.send_optional()
        } else {
            call.send().map(Some)
        };
        answer.map_err(|failure| failure.context(self.doing))
    }
}

/// `PUT /v2.0/lbaas/pools/1 {"pool":{}}`
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.method)?;
        f.write_str(" ")?;
        f.write_str(&self.path)?;
        if let Some(body) = &self.body {
            f.write_str(" ")?;
            f.write_str(&body.clone().into_text())?;
        }
        Ok(())
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
