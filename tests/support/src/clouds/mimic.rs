//! Rackspace's cloud by Rackspace itself: mimic, with the calls and faults of all stand-ins in front of it.
//!
//! Mimic takes any credentials; an account is what a user's name leads to, so each test has its own user.

use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use crate::clouds::stand_in::{StandIn, ask, ask_by, client};
use crate::scenes::deployment::{CloudFiles, Deployment};

/// The region of all accounts, the only one in which mimic has load balancers.
pub const REGION: &str = "ORD";

/// The API key of all users.
pub const API_KEY: &str = "0123456789abcdef-key";

/// A running mimic. Dropping it ends it.
#[derive(Debug)]
pub struct Mimic {
    /// Calls and faults.
    pub cloud: StandIn,
}

/// A user's account.
#[derive(Debug)]
pub struct RackspaceAccount<'a> {
    mimic: &'a Mimic,
    /// The user's name.
    pub user: String,
    /// Path of Cloud Servers, with the account's number.
    servers: String,
    /// Path of the control API, which makes servers stop.
    control: String,
    /// Path of Cloud Load Balancers.
    balancers: String,
    /// Path of their control API.
    balancer_control: String,
}

impl Mimic {
    /// Starts one, in a second.
    ///
    /// # Errors
    ///
    /// As [`StandIn::start`].
    pub async fn start() -> Result<Self> {
        let cloud = StandIn::start("rackspace", &[]).await?;
        Ok(Self { cloud })
    }

    /// The account of a user, made with the first request.
    ///
    /// # Errors
    ///
    /// When mimic refuses.
    pub async fn account(&self, user: &str) -> Result<RackspaceAccount<'_>> {
        let credentials = json!({ "auth": { "RAX-KSKEY:apiKeyCredentials": { "username": user, "apiKey": API_KEY } } });
        let access = self.ask(Method::POST, "/identity/v2.0/tokens", credentials).await?;
        let catalog = access["access"]["serviceCatalog"].as_array().context("no catalog")?;
        let path = |name: &str| {
            let services = catalog.iter().filter(|service| service["name"] == name);
            let places = services.flat_map(|service| service["endpoints"].as_array().into_iter().flatten());
            let url = places
                .filter(|place| place["region"] == REGION)
                .find_map(|place| place["publicURL"].as_str());
            let path = url.and_then(|url| url.strip_prefix(self.cloud.url()));
            path.map(str::to_owned)
                .with_context(|| format!("no {name} in the catalog"))
        };
        Ok(RackspaceAccount {
            mimic: self,
            user: user.to_owned(),
            servers: path("cloudServersOpenStack")?,
            control: path("cloudServersBehavior")?,
            balancers: path("cloudLoadBalancers")?,
            balancer_control: path("cloudLoadBalancerControl")?,
        })
    }

    async fn ask(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        ask(self.cloud.url(), method, path, body).await
    }
}

impl RackspaceAccount<'_> {
    /// Makes a server, which runs at once. Gives its id.
    ///
    /// # Errors
    ///
    /// When mimic refuses.
    pub async fn server(&self, name: &str) -> Result<String> {
        let path = format!("{}/servers", self.servers);
        let made = self.mimic.ask(Method::POST, &path, new_server(name)).await?;
        id_of(&made)
    }

    /// Makes many servers. Gives their ids in the order of the names.
    ///
    /// # Errors
    ///
    /// When mimic refuses one.
    pub async fn servers(&self, names: impl Iterator<Item = String>) -> Result<Vec<String>> {
        let (client, path) = (client(self.mimic.cloud.url())?, format!("{}/servers", self.servers));
        let mut ids = Vec::new();
        for name in names {
            let made = ask_by(&client, Method::POST, &path, new_server(&name).to_string()).await?;
            ids.push(id_of(&made)?);
        }
        Ok(ids)
    }

    /// The server as Cloud Servers tells it.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn look(&self, id: &str) -> Result<Value> {
        let path = format!("{}/servers/{id}", self.servers);
        Ok(self.mimic.ask(Method::GET, &path, Value::Null).await?["server"].take())
    }

    /// Gives a server another status, such as `SHUTOFF`.
    ///
    /// # Errors
    ///
    /// When mimic refuses.
    pub async fn set_status(&self, id: &str, status: &str) -> Result<()> {
        let path = format!("{}/attributes/", self.control);
        let change = json!({ "status": { id: status } });
        self.mimic.ask(Method::POST, &path, change).await.map(drop)
    }

    /// Ends a server.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn end(&self, id: &str) -> Result<()> {
        let path = format!("{}/servers/{id}", self.servers);
        self.mimic.ask(Method::DELETE, &path, Value::Null).await.map(drop)
    }

    /// All load balancers with everything below them, by their ports.
    ///
    /// # Errors
    ///
    /// When mimic refuses.
    pub async fn balancers(&self) -> Result<Vec<Value>> {
        let path = format!("{}/loadbalancers", self.balancers);
        let listed = self.mimic.ask(Method::GET, &path, Value::Null).await?;
        let mut all = Vec::new();
        for one in listed["loadBalancers"].as_array().into_iter().flatten() {
            let path = format!("{path}/{}", one["id"]);
            // It may have gone since it was listed.
            if let Ok(mut answer) = self.mimic.ask(Method::GET, &path, Value::Null).await {
                all.push(answer["loadBalancer"].take());
            }
        }
        all.sort_by_key(|one| (one["port"].as_u64(), one["protocol"].to_string()));
        Ok(all)
    }

    /// Makes a request of Cloud Load Balancers as somebody else who has the account; `path` is what follows `/loadbalancers`.
    ///
    /// # Errors
    ///
    /// When mimic refuses.
    pub async fn by_hand(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let path = format!("{}/loadbalancers{path}", self.balancers);
        self.mimic.ask(method, &path, body).await
    }

    /// Gives a load balancer another status: `ACTIVE`, `ERROR`, `PENDING_UPDATE` or `PENDING_DELETE`.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn set_balancer_status(&self, id: u64, status: &str) -> Result<()> {
        let path = format!("{}/loadbalancer/{id}/attributes", self.balancer_control);
        let change = json!({ "status": status });
        self.mimic.ask(Method::PATCH, &path, change).await.map(drop)
    }

    /// What Cloudwit is told about it; the key is written beside the deployment's other files.
    ///
    /// # Errors
    ///
    /// When the key cannot be written.
    pub fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        self.files_by(self.mimic.cloud.url(), "", deployment)
    }

    /// The same by way of this URL, with these lines more in the cloud config.
    ///
    /// # Errors
    ///
    /// When the key cannot be written.
    pub fn files_by(&self, url: &str, more: &str, deployment: &Deployment) -> Result<CloudFiles> {
        let port = url.rsplit_once(':').context("a URL without port")?.1;
        let key = deployment.write("api-key", API_KEY)?;
        Ok(CloudFiles {
            config: format!(
                "[Global]\nauth-url = {url}/identity/v2.0/\nusername = {}\nregion = {REGION}\n{more}",
                self.user
            ),
            settings: format!(
                "grants:\n  http:\n    - {{scheme: http, host: 127.0.0.1, port: {port}, allowLoopback: true}}\n  secrets:\n    \
                 - {{name: api-key, file: {}, hosts: [\"127.0.0.1:{port}\"], uses: [placeholder]}}\n",
                key.display()
            ),
        })
    }
}

fn new_server(name: &str) -> Value {
    json!({ "server": { "name": name, "imageRef": "image", "flavorRef": "general1-1", "metadata": {} } })
}

fn id_of(made: &Value) -> Result<String> {
    let id = made["server"]["id"].as_str();
    id.map(str::to_owned).context("a server without id")
}
