//! Authentication: identity v2 with an API key or a password.
//!
//! The secret is a placeholder that the host fills in, unless the operator left it in the cloud config as the in-tree provider had it. Token and
//! endpoint are kept in the host's memory until shortly before the token ends; of several calls that need one at the same time one requests it.

use std::collections::BTreeMap;

use cloudwit_guest_sdk::openstack::{Complaint, complaint};
use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::{Global, given};

/// The name of what is kept.
const NAME: &str = "identity";

/// A token and where the region's services are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    token: String,
    /// By the service's name: its URL without a slash at the end, or why there is none.
    endpoints: BTreeMap<String, Result<String, String>>,
}

/// A service that the token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Product {
    /// In the catalog, by which it is known: the type of Cloud Servers is `compute`, which the first generation had too.
    name: &'static str,
    title: &'static str,
}

/// Cloud Servers.
pub const SERVERS: Product = Product {
    name: "cloudServersOpenStack",
    title: "Cloud Servers",
};

/// Cloud Load Balancers.
pub const BALANCERS: Product = Product {
    name: "cloudLoadBalancers",
    title: "Cloud Load Balancers",
};

/// The way to a token.
#[derive(Debug)]
pub struct Identity {
    http: Http,
    context: Context,
    body: Value,
    region: String,
}

impl Identity {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// When the secret is not granted.
    pub fn new(global: &Global, context: Context) -> Result<Self, Failure> {
        Ok(Self {
            http: context.http().base(&global.identity()),
            context,
            body: body(global, &context)?,
            region: given(&global.region).unwrap_or_default().into(),
        })
    }

    /// A GET of Cloud Servers.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn get(&self, path: &str) -> Result<Response, Failure> {
        self.send(SERVERS, "GET", path, None)
    }

    /// A request with the token, and once again with a new one when it is refused. The answer may have any other status.
    ///
    /// # Errors
    /// The error of identity; a region that the catalog does not have.
    pub fn send(
        &self,
        product: Product,
        method: &'static str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, Failure> {
        let state = self.context.state();
        let obtain = || self.authenticate();
        Token::with(&state, NAME, obtain, |session: &Session| {
            let none = || Err(format!("the session has no {}", product.title));
            let endpoint = session.endpoints.get(product.name).cloned().unwrap_or_else(none);
            let endpoint = endpoint.map_err(Failure::invalid)?;
            let mut request = self.context.http().request(method, &format!("{endpoint}{path}"));
            if let Some(body) = body {
                request = request.json(body);
            }
            Tried::by_status(request.header("x-auth-token", session.token.as_str()).send_any())
        })
    }

    fn authenticate(&self) -> Result<(Session, u64), Failure> {
        let response = success(self.http.post("/tokens").json(&self.body).send_any()?)
            .map_err(|failure| failure.context("authenticating"))?;
        let access = response.json::<Value>()?["access"].take();
        let unreadable = |what| Failure::unavailable(format!("identity's answer cannot be read: {what}"));
        let text = |key: &str| access["token"][key].as_str();
        let token = text("id").ok_or_else(|| unreadable("it has no token"))?;
        let expires = text("expires").and_then(parse_rfc3339);
        let endpoint = |product: Product| {
            (
                product.name.to_owned(),
                self.endpoint(&access["serviceCatalog"], product),
            )
        };
        let session = Session {
            token: token.into(),
            endpoints: [SERVERS, BALANCERS].map(endpoint).into(),
        };
        Ok((session, expires.ok_or_else(|| unreadable("expires is no time"))?))
    }

    /// The region's endpoint, or what there is instead.
    fn endpoint(&self, catalog: &Value, product: Product) -> Result<String, String> {
        let items = |list: &Value| list.as_array().cloned().unwrap_or_default();
        let entries = items(catalog).into_iter().filter(|entry| entry["name"] == product.name);
        let places: Vec<Value> = entries.flat_map(|entry| items(&entry["endpoints"])).collect();
        let region = |place: &Value| place["region"].as_str().unwrap_or_default().to_owned();
        let own = places
            .iter()
            .find(|place| region(place).eq_ignore_ascii_case(&self.region));
        match own.and_then(|place| place["publicURL"].as_str()) {
            Some(url) => Ok(url.trim_end_matches('/').to_owned()),
            None => {
                let regions: Vec<String> = places.iter().map(region).collect();
                let regions = if regions.is_empty() {
                    "none".into()
                } else {
                    regions.join(", ")
                };
                let (title, region) = (product.title, &self.region);
                Err(format!(
                    "the account has no {title} in the region {region}; regions: {regions}"
                ))
            }
        }
    }
}

/// What is sent for a token.
fn body(global: &Global, context: &Context) -> Result<Value, Failure> {
    let placeholder = |name: &str| {
        let placeholder = context.keys().placeholder_as(name, Encoding::Json)?;
        Ok::<_, Failure>(placeholder.as_str().to_owned())
    };
    let user = given(&global.username).unwrap_or_default();
    let (kind, key, secret) = match (given(&global.api_key), given(&global.password)) {
        (Some(key), _) => ("RAX-KSKEY:apiKeyCredentials", "apiKey", key.to_owned()),
        (None, Some(password)) => ("passwordCredentials", "password", password.to_owned()),
        (None, None) if global.use_password => ("passwordCredentials", "password", placeholder("password")?),
        (None, None) => ("RAX-KSKEY:apiKeyCredentials", "apiKey", placeholder("api-key")?),
    };
    let mut auth = Map::new();
    auth.insert(kind.into(), json!({ "username": user, key: secret }));
    for (key, value) in [("tenantId", &global.tenant_id), ("tenantName", &global.tenant_name)] {
        if let Some(value) = given(value) {
            auth.insert(key.into(), value.into());
        }
    }
    Ok(json!({ "auth": auth }))
}

/// The answer itself, or the failure that its status and its body are.
///
/// # Errors
/// For every status but 2xx.
pub fn success(mut response: Response) -> Result<Response, Failure> {
    if response.status < 300 {
        return Ok(response);
    }
    let flat = flat_complaint(&response);
    // Limits of rate were 413 before they were 429; of Cloud Load Balancers 413 is a limit of numbers as well.
    if response.status == 413 {
        if let Some(text) = flat.as_ref().filter(|_| response.header("retry-after").is_none()) {
            return Err(Failure::exhausted(text).with_code("413"));
        }
        response.status = 429;
    }
    let (code, message) = match flat {
        Some(message) => (response.status.to_string(), message),
        None => {
            let Complaint { kind, message } = complaint(&response);
            (kind, message.unwrap_or_default())
        }
    };
    if !message.is_empty() {
        response.body = message.into();
    }
    response.success().map_err(|failure| failure.with_code(&code))
}

/// Errors of Cloud Load Balancers, without an envelope: `{"message": ..., "code": 404, "validationErrors": {"messages": [...]}}`.
fn flat_complaint(response: &Response) -> Option<String> {
    let body: Value = serde_json::from_slice(&response.body).ok()?;
    let message = body.get("message")?.as_str();
    let more = body["validationErrors"]["messages"].as_array().into_iter().flatten();
    let all: Vec<&str> = message.into_iter().chain(more.filter_map(Value::as_str)).collect();
    Some(all.join(": "))
}

#[cfg(test)]
mod tests;
