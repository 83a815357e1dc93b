//! Who we are: identity v2 with an API key or a password.
//!
//! The secret is a placeholder that the host fills in, unless the operator left it in the cloud config as the in-tree provider had it. Token and
//! endpoint are kept in the host's memory until shortly before the token ends; of several calls that need one at the same time one asks.

use cloudwit_guest_sdk::prelude::*;
use cloudwit_guest_sdk::time::parse_rfc3339;
use cloudwit_guest_sdk::token::{Token, Tried};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::{Global, given};

/// The name of what is kept.
const NAME: &str = "identity";

/// Cloud Servers in the catalog; its type is `compute`, which the first generation had too.
const SERVERS: &str = "cloudServersOpenStack";

/// A token and where the region's Cloud Servers are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    token: String,
    /// Without a slash at the end, or why there is none.
    servers: Result<String, String>,
}

/// The way to a token.
#[derive(Debug)]
pub struct Identity {
    http: Http,
    context: Context,
    body: Value,
    region: String,
}

#[derive(Deserialize)]
struct Answer {
    access: Access,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Access {
    token: Issued,
    #[serde(default)]
    service_catalog: Vec<CatalogEntry>,
}

#[derive(Deserialize)]
struct Issued {
    id: String,
    expires: String,
}

#[derive(Deserialize)]
struct CatalogEntry {
    name: String,
    #[serde(default)]
    endpoints: Vec<Place>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    #[serde(default)]
    region: String,
    #[serde(rename = "publicURL")]
    public_url: String,
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

    /// A GET of Cloud Servers with the token, and once again with a new one when it is refused.
    ///
    /// # Errors
    /// What identity says; a region that the catalog does not have.
    pub fn get(&self, path: &str) -> Result<Response, Failure> {
        let state = self.context.state();
        let obtain = || self.authenticate();
        Token::with(&state, NAME, obtain, |session: &Session| {
            let servers = session.servers.as_ref().map_err(|why| Failure::invalid(why.clone()))?;
            let request = self.context.http().get(&format!("{servers}{path}"));
            Tried::by_status(request.header("x-auth-token", session.token.as_str()).send_any())
        })
    }

    fn authenticate(&self) -> Result<(Session, u64), Failure> {
        let response = success(self.http.post("/tokens").json(&self.body).send_any()?)
            .map_err(|failure| failure.context("authenticating"))?;
        let access = response.json::<Answer>()?.access;
        let unreadable = || Failure::unavailable("identity's answer cannot be read: expires is no time");
        let expires = parse_rfc3339(&access.token.expires).ok_or_else(unreadable)?;
        let session = Session {
            token: access.token.id,
            servers: endpoint(&access.service_catalog, &self.region),
        };
        Ok((session, expires))
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

/// The region's endpoint, or what there is instead.
fn endpoint(catalog: &[CatalogEntry], region: &str) -> Result<String, String> {
    let places = || {
        catalog
            .iter()
            .filter(|entry| entry.name == SERVERS)
            .flat_map(|entry| &entry.endpoints)
    };
    let place = places().find(|place| place.region.eq_ignore_ascii_case(region));
    place
        .map(|place| place.public_url.trim_end_matches('/').to_owned())
        .ok_or_else(|| {
            let regions: Vec<&str> = places().map(|place| place.region.as_str()).collect();
            let regions = if regions.is_empty() {
                "none".into()
            } else {
                regions.join(", ")
            };
            format!("the account has no Cloud Servers in the region {region}; regions: {regions}")
        })
}

/// The answer itself, or the failure that its status and its body, `{"itemNotFound": {"code": 404, "message": ...}}`, are.
///
/// # Errors
/// For every status but 2xx.
pub fn success(mut response: Response) -> Result<Response, Failure> {
    let complaint = response
        .json::<Map<String, Value>>()
        .ok()
        .and_then(|all| all.into_iter().next());
    if response.status < 300 {
        return Ok(response);
    }
    // Limits of rate were 413 before they were 429.
    if response.status == 413 {
        response.status = 429;
    }
    let Some((code, inner)) = complaint else {
        return response.success();
    };
    if let Some(message) = inner["message"].as_str() {
        response.body = message.into();
    }
    response.success().map_err(|failure| failure.with_code(&code))
}

#[cfg(test)]
mod tests;
