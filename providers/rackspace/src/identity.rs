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

/// A token and where the region's services are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    token: String,
    /// Without a slash at the end, or why there is none.
    servers: Result<String, String>,
    /// Likewise.
    balancers: Result<String, String>,
}

/// What the token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Cloud Servers.
    Servers,
    /// Cloud Load Balancers.
    LoadBalancers,
}

impl Product {
    /// Its name in the catalog, by which it is known: the type of Cloud Servers is `compute`, which the first generation had too.
    const fn name(self) -> &'static str {
        match self {
            Self::Servers => "cloudServersOpenStack",
            Self::LoadBalancers => "cloudLoadBalancers",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Servers => "Cloud Servers",
            Self::LoadBalancers => "Cloud Load Balancers",
        }
    }
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

    /// A GET of Cloud Servers.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn get(&self, path: &str) -> Result<Response, Failure> {
        self.send(Product::Servers, "GET", path, None)
    }

    /// A request with the token, and once again with a new one when it is refused. The answer may have any other status.
    ///
    /// # Errors
    /// What identity says; a region that the catalog does not have.
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
            let endpoint = match product {
                Product::Servers => &session.servers,
                Product::LoadBalancers => &session.balancers,
            };
            let endpoint = endpoint.as_ref().map_err(|why| Failure::invalid(why.clone()))?;
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
        let access = response.json::<Answer>()?.access;
        let unreadable = || Failure::unavailable("identity's answer cannot be read: expires is no time");
        let expires = parse_rfc3339(&access.token.expires).ok_or_else(unreadable)?;
        let session = Session {
            token: access.token.id,
            servers: endpoint(&access.service_catalog, &self.region, Product::Servers),
            balancers: endpoint(&access.service_catalog, &self.region, Product::LoadBalancers),
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
fn endpoint(catalog: &[CatalogEntry], region: &str, product: Product) -> Result<String, String> {
    let places = || {
        catalog
            .iter()
            .filter(|entry| entry.name == product.name())
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
            format!(
                "the account has no {} in the region {region}; regions: {regions}",
                product.title()
            )
        })
}

/// The answer itself, or the failure that its status and its body are.
///
/// # Errors
/// For every status but 2xx.
pub fn success(mut response: Response) -> Result<Response, Failure> {
    if response.status < 300 {
        return Ok(response);
    }
    let complaint = response.json::<Map<String, Value>>().ok().and_then(complaint);
    // Limits of rate were 413 before they were 429; of Cloud Load Balancers 413 is a limit of numbers as well.
    if response.status == 413 {
        let number = complaint.as_ref().is_some_and(|complaint| complaint.flat);
        if number && response.header("retry-after").is_none() {
            let text = complaint.map(|complaint| complaint.message).unwrap_or_default();
            return Err(Failure::exhausted(text).with_code("413"));
        }
        response.status = 429;
    }
    let Some(complaint) = complaint else {
        return response.success();
    };
    let code = match complaint.flat {
        true => response.status.to_string(),
        false => complaint.code,
    };
    if !complaint.message.is_empty() {
        response.body = complaint.message.into();
    }
    response.success().map_err(|failure| failure.with_code(&code))
}

/// What a body says that is no success.
struct Complaint {
    /// Whether it is written as Cloud Load Balancers does, `{"message": ..., "code": 404}`, not `{"itemNotFound": {"message": ..., "code": 404}}`.
    flat: bool,
    code: String,
    message: String,
}

fn complaint(body: Map<String, Value>) -> Option<Complaint> {
    let texts = |value: &Value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(texts) => texts
            .iter()
            .filter_map(|text| text.as_str().map(String::from))
            .collect(),
        _ => Vec::new(),
    };
    if let Some(message) = body.get("message") {
        let mut all = texts(message);
        all.extend(
            body.get("validationErrors")
                .into_iter()
                .flat_map(|all| texts(&all["messages"])),
        );
        return Some(Complaint {
            flat: true,
            code: String::new(),
            message: all.join(": "),
        });
    }
    let (code, inner) = body.into_iter().next()?;
    Some(Complaint {
        flat: false,
        message: texts(&inner["message"]).concat(),
        code,
    })
}

#[cfg(test)]
mod tests;
