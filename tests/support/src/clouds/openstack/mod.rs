//! OpenStack by a third party: the real Keystone, Neutron, Nova, Octavia and Cinder, for the time of a test (`tests/openstack-cloud` starts them).
//!
//! The tests of a file share one cloud. Each makes a [`project`](OpenStackCloud::project) of its own, which costs a moment, and sets up in it
//! what an administrator has before Cloudwit comes: networks, routers and servers. It looks at the outcome with [`OpenStackCloud::get`] or
//! with the calls that were made in its name. Changes of load balancers take 0.3 s, as in a cloud, and those of volumes 0.2 s, unless the project says
//! otherwise.
//!
//! Bad days: a region whose endpoints lead through gates ([`OpenStackCloud::region`]), load balancers that end in ERROR or never become
//! ACTIVE, tokens that are revoked or live for seconds, servers and load balancers that go behind Cloudwit's back.

pub mod project;
pub mod servers;
pub mod volumes;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::clouds::moto::log_file;
use crate::clouds::openstack::project::OpenStackProject;
use crate::programs::child::Child;

/// The region that the services are in.
pub const REGION: &str = "RegionOne";

/// How long it may take to start on a busy machine. It usually takes 10 s.
const START: Duration = Duration::from_secs(300);

/// A part of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Neutron.
    Network,
    /// Nova.
    Compute,
    /// Octavia.
    LoadBalancer,
    /// Cinder.
    BlockStorage,
}

impl Service {
    /// All, in the order of [`Service`].
    pub const ALL: [Self; 5] = [
        Self::Identity,
        Self::Network,
        Self::Compute,
        Self::LoadBalancer,
        Self::BlockStorage,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        ["keystone", "neutron", "nova", "octavia", "cinder"][self as usize]
    }
}

/// A call that was made in a project.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenStackCall {
    /// Such as `GET`.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Status of the answer.
    pub status: u16,
}

/// A network that all projects may take floating addresses from.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicNetwork {
    /// The network's id.
    pub id: String,
    /// `public`.
    pub name: String,
    /// The subnet's id.
    pub subnet: String,
}

/// A running cloud. Dropping it ends it.
#[derive(Debug)]
pub struct OpenStackCloud {
    /// Behind a lock, so that threads may share it.
    process: Mutex<Child>,
    urls: Vec<String>,
    folder: PathBuf,
    admin: Account,
    admin_token: OnceCell<String>,
    public: OnceCell<PublicNetwork>,
    projects: AtomicUsize,
}

/// Name and password of a user of the domain `Default`, and the project to act in.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) password: String,
    pub(crate) project: String,
}

impl OpenStackCloud {
    /// The cloud that all tests of this file (this process) share; the first one who asks starts it.
    ///
    /// # Panics
    ///
    /// When it cannot be started, with the reason and the end of its log.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<OpenStackCloud> = OnceCell::const_new();
        SHARED
            .get_or_init(|| async { Self::start().await.unwrap_or_else(|error| panic!("{error:#}")) })
            .await
    }

    /// Starts a cloud of its own, in about 10 s. The first time on a machine makes the Python environment (minutes, with progress) and
    /// prepares the databases (half a minute).
    ///
    /// # Errors
    ///
    /// When Python or a package is missing, or a service does not start (with the end of its log).
    pub async fn start() -> Result<Self> {
        tokio::task::spawn_blocking(spawn)
            .await
            .context("the thread that starts OpenStack panicked")?
    }

    /// Where it writes its log.
    pub fn log(&self) -> PathBuf {
        self.process().log().to_owned()
    }

    /// Whether it still runs.
    pub fn runs(&self) -> bool {
        self.process().runs()
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keystone's URL with `/v3`, for `auth-url`.
    pub fn auth_url(&self) -> String {
        format!("{}/v3", self.url(Service::Identity))
    }

    /// Databases and logs (`nova.log`, `neutron.log`), as long as it runs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The root URL of a service, without a slash at its end.
    pub fn url(&self, service: Service) -> &str {
        &self.urls[service as usize]
    }

    /// A project with a user of the same name, which no other test uses.
    ///
    /// # Errors
    ///
    /// When Keystone refuses.
    pub async fn project(&self) -> Result<OpenStackProject<'_>> {
        let name = format!("project-{}", self.projects.fetch_add(1, Ordering::Relaxed));
        let made = self
            .stage(Service::Identity, "project", json!({ "name": name }))
            .await?;
        Ok(OpenStackProject::new(self, &made))
    }

    /// The network for floating addresses (`router:external`), made when it is first asked for: 172.24.0.0/16.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn public_network(&self) -> Result<&PublicNetwork> {
        self.public
            .get_or_try_init(|| async {
                let network = json!({ "network": {
                    "name": "public", "router:external": true,
                    "provider:network_type": "flat", "provider:physical_network": "public",
                } });
                let made = self.post(Service::Network, "/v2.0/networks", network).await?;
                let id = text(&made, "/network/id")?;
                let subnet = json!({ "subnet": {
                    "network_id": id, "name": "public-subnet", "cidr": "172.24.0.0/16", "ip_version": 4, "enable_dhcp": false,
                } });
                let made = self.post(Service::Network, "/v2.0/subnets", subnet).await?;
                let subnet = text(&made, "/subnet/id")?;
                let name = "public".to_owned();
                Ok(PublicNetwork { id, name, subnet })
            })
            .await
    }

    /// A further region `name`. Its services are at these root URLs, where gates may stand; those not named are where they are.
    ///
    /// # Errors
    ///
    /// When there is such a region already.
    pub async fn region(&self, name: &str, urls: &[(Service, &str)]) -> Result<()> {
        let urls: serde_json::Map<String, Value> = urls
            .iter()
            .map(|(service, url)| (service.name().to_owned(), json!(url)))
            .collect();
        let region = json!({ "name": name, "urls": urls });
        self.stage(Service::Identity, "region", region).await.map(drop)
    }

    /// What a service answers an administrator: status and document.
    ///
    /// # Errors
    ///
    /// When the service does not answer, or not in JSON.
    pub async fn ask(&self, service: Service, method: Method, path: &str, body: Value) -> Result<(StatusCode, Value)> {
        let token = self.admin_token.get_or_try_init(|| self.token(&self.admin)).await?;
        self.ask_as(token, service, method, path, body).await
    }

    /// What an administrator reads there (`/v2.0/ports?device_id=...`).
    ///
    /// # Errors
    ///
    /// When there is no such thing.
    pub async fn get(&self, service: Service, path: &str) -> Result<Value> {
        self.done(service, Method::GET, path, Value::Null).await
    }

    /// What an administrator makes there.
    ///
    /// # Errors
    ///
    /// When the service refuses.
    pub async fn post(&self, service: Service, path: &str, body: Value) -> Result<Value> {
        self.done(service, Method::POST, path, body).await
    }

    /// What an administrator changes there.
    ///
    /// # Errors
    ///
    /// When the service refuses.
    pub async fn put(&self, service: Service, path: &str, body: Value) -> Result<Value> {
        self.done(service, Method::PUT, path, body).await
    }

    /// What an administrator deletes there.
    ///
    /// # Errors
    ///
    /// When the service refuses.
    pub async fn delete(&self, service: Service, path: &str) -> Result<()> {
        self.done(service, Method::DELETE, path, Value::Null).await.map(drop)
    }

    async fn done(&self, service: Service, method: Method, path: &str, body: Value) -> Result<Value> {
        let what = format!("{} {method} {path}", service.name());
        let (status, answer) = self.ask(service, method, path, body).await?;
        if !status.is_success() {
            bail!("{what}: {status} {answer}");
        }
        Ok(answer)
    }

    /// A new token of this account.
    pub(crate) async fn token(&self, account: &Account) -> Result<String> {
        let default = json!({ "name": "Default" });
        let auth = json!({ "auth": {
            "identity": { "methods": ["password"], "password": { "user": {
                "name": account.name, "domain": default, "password": account.password,
            } } },
            "scope": { "project": { "name": account.project, "domain": default } },
        } });
        let url = format!("{}/auth/tokens", self.auth_url());
        let request = Request::post(url).header("content-type", "application/json");
        let answer = send(request.body(Body::from(auth.to_string().into_bytes()))?).await?;
        let token = answer.headers().get("x-subject-token");
        let token = token.with_context(|| format!("Keystone gave {} no token: {}", account.name, answer.status()))?;
        Ok(token.to_str().context("a token is text")?.to_owned())
    }

    pub(crate) async fn ask_as(
        &self,
        token: &str,
        service: Service,
        method: Method,
        path: &str,
        body: Value,
    ) -> Result<(StatusCode, Value)> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url(service)))
            .header("x-auth-token", token)
            // The newest in which a server shows its flavor by name and its security groups.
            .header("openstack-api-version", "compute 2.79,volume 3.42")
            .header("content-type", "application/json");
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        read(send(request.body(Body::from(body))?).await?).await
    }

    /// Asks the stage around a service (`tests/openstack-cloud/*_stage.py`).
    pub(crate) async fn stage(&self, service: Service, verb: &str, document: Value) -> Result<Value> {
        let url = format!("{}/_stage/{verb}", self.url(service));
        let request = Request::post(url).body(Body::from(document.to_string().into_bytes()))?;
        let (status, answer) = read(send(request).await?).await?;
        if !status.is_success() {
            bail!(
                "{}: {verb}: {}",
                service.name(),
                answer["error"].as_str().unwrap_or_default()
            );
        }
        Ok(answer)
    }
}

/// A client belongs to the tokio runtime in which it is made, so each request makes its own.
async fn send(request: Request<Body>) -> Result<http::Response<Body>> {
    let what = format!("{} {}", request.method(), request.uri());
    let root = format!("http://{}", request.uri().authority().context("a URL has a host")?);
    let client = Client::try_from(Config::new(root.parse()?)).context("making an HTTP client")?;
    client.send(request).await.context(what)
}

async fn read(answer: http::Response<Body>) -> Result<(StatusCode, Value)> {
    let status = answer.status();
    let body = answer.into_body().collect_bytes().await.context("reading an answer")?;
    if body.is_empty() {
        return Ok((status, Value::Null));
    }
    let answer = serde_json::from_slice(&body);
    let answer = answer.with_context(|| format!("{status} with {}", String::from_utf8_lossy(&body)))?;
    Ok((status, answer))
}

/// The text at a JSON pointer.
pub(crate) fn text(value: &Value, pointer: &str) -> Result<String> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .with_context(|| format!("there is no {pointer} in {value}"))
}

fn spawn() -> Result<OpenStackCloud> {
    let (python, arguments) = xtask::servers::openstack_cloud()?;
    let process = Child::start(&python, &arguments, &log_file("openstack")?)?;
    let said = |name: String| process.said(&format!("{name}="), START);
    let folder = said("FOLDER".to_owned())?.into();
    let urls = Service::ALL.map(|service| said(service.name().to_uppercase()));
    let admin = Account {
        name: said("ADMIN".to_owned())?,
        password: said("ADMIN_PASSWORD".to_owned())?,
        project: "admin".to_owned(),
    };
    process.said("READY", START)?;
    Ok(OpenStackCloud {
        urls: urls.into_iter().collect::<Result<_>>()?,
        folder,
        admin,
        admin_token: OnceCell::new(),
        public: OnceCell::new(),
        projects: AtomicUsize::new(1),
        process: Mutex::new(process),
    })
}

#[cfg(test)]
mod tests;
