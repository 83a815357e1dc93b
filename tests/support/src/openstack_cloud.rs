//! OpenStack by a third party: the real Keystone, Neutron, Nova and Octavia, for the time of a test (`tests/openstack-cloud` starts them).
//!
//! The tests of a file share one cloud. Each makes a [`project`](OpenStackCloud::project) of its own, which costs a moment, and sets up in it
//! what an administrator has before Cloudwit comes: networks, routers and servers. It looks at the outcome with [`OpenStackCloud::get`] or
//! with the calls that were made in its name. Changes of load balancers take 0.3 s, as in a cloud, unless the project says otherwise.
//!
//! Bad days: a region whose endpoints lead through gates ([`OpenStackCloud::region`]), load balancers that end in ERROR or never become
//! ACTIVE, tokens that are revoked or live for seconds, servers and load balancers that go behind Cloudwit's back.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::child::Child;
use crate::moto::log_file;
use crate::openstack_project::OpenStackProject;

/// The region that the services are in.
pub const REGION: &str = "RegionOne";

/// How long it may take to start on a busy machine, with the databases prepared for the first time. It usually takes 15 s.
const START: Duration = Duration::from_secs(400);

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
}

impl Service {
    /// All, in the order of [`Service`].
    pub const ALL: [Self; 4] = [Self::Identity, Self::Network, Self::Compute, Self::LoadBalancer];

    /// What it is called.
    pub fn name(self) -> &'static str {
        ["keystone", "neutron", "nova", "octavia"][self as usize]
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

    /// Starts a cloud of its own, in about 15 s. The first time on a machine makes the Python environment (minutes, with progress) and
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
            .header("openstack-api-version", "compute 2.79")
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
    let python = xtask::servers::openstack()?.python();
    let script = xtask::workspace::root().join("tests/openstack-cloud/cloud.py");
    let cache = xtask::workspace::target().join("tools/openstack-cloud");
    let arguments = [script, "--cache".into(), cache].map(|argument| argument.display().to_string());
    let process = Child::start(&python, &arguments, &log_file("openstack")?)?;
    let said = |name: String| process.said(&format!("{name}="), START);
    let urls = Service::ALL.map(|service| said(service.name().to_uppercase()));
    let admin = Account {
        name: said("ADMIN".to_owned())?,
        password: said("ADMIN_PASSWORD".to_owned())?,
        project: "admin".to_owned(),
    };
    process.said("READY", START)?;
    Ok(OpenStackCloud {
        urls: urls.into_iter().collect::<Result<_>>()?,
        admin,
        admin_token: OnceCell::new(),
        public: OnceCell::new(),
        projects: AtomicUsize::new(1),
        process: Mutex::new(process),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openstack_project::OpenStackServer;
    use crate::wait::eventually;

    const SOON: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn servers_are_seen_in_their_project_only_with_the_addresses_of_their_ports() {
        let cloud = OpenStackCloud::shared().await;
        let (project, other) = (cloud.project().await.unwrap(), cloud.project().await.unwrap());
        let network = project.network("nodes", "10.1.0.0/16").await.unwrap();
        project.router(&[&network]).await.unwrap();
        let server = project.server(&network, "node-1").await.unwrap();
        let floating = project.floating_address(&server).await.unwrap();
        project
            .change_server(&server, json!({ "status": "SHUTOFF" }))
            .await
            .unwrap();

        let path = format!("/v2.1/servers/{}", server.id);
        let (_, seen) = project
            .ask(Service::Compute, Method::GET, &path, Value::Null)
            .await
            .unwrap();
        assert_eq!(text(&seen, "/server/status").unwrap(), "SHUTOFF");
        let addresses: Vec<_> = seen["server"]["addresses"]["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at["addr"].clone())
            .collect();
        assert_eq!(addresses, [json!(server.address), json!(floating)]);
        let port = cloud
            .get(Service::Network, &format!("/v2.0/ports/{}", server.port))
            .await
            .unwrap();
        assert_eq!(
            (&port["port"]["status"], &port["port"]["device_id"]),
            (&json!("ACTIVE"), &json!(server.id))
        );
        let (status, _) = other
            .ask(Service::Compute, Method::GET, &path, Value::Null)
            .await
            .unwrap();
        assert_eq!(status, 404, "another project does not see it");

        project.delete_server(&server).await.unwrap();
        let (status, _) = project
            .ask(Service::Compute, Method::GET, &path, Value::Null)
            .await
            .unwrap();
        assert_eq!(status, 404);
        let calls = project.calls(Service::Compute).await.unwrap();
        assert_eq!(calls.iter().map(|call| call.status).collect::<Vec<_>>(), [200, 404]);
    }

    #[tokio::test]
    async fn two_thousand_servers_come_in_pages_of_a_thousand() {
        let cloud = OpenStackCloud::shared().await;
        let project = cloud.project().await.unwrap();
        let network = project.network("nodes", "10.2.0.0/16").await.unwrap();
        let servers = project.servers(&network, "node", 2000).await.unwrap();
        let mut path = "/v2.1/servers/detail".to_owned();
        let mut pages = Vec::new();
        loop {
            let (_, page) = project
                .ask(Service::Compute, Method::GET, &path, Value::Null)
                .await
                .unwrap();
            pages.push(page["servers"].as_array().unwrap().clone());
            let Some(next) = page["servers_links"][0]["href"].as_str() else {
                break;
            };
            path = next.strip_prefix(cloud.url(Service::Compute)).unwrap().to_owned();
        }
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000]);
        let last: &OpenStackServer = servers.last().unwrap();
        let seen = pages
            .iter()
            .flatten()
            .find(|server| server["id"] == json!(last.id))
            .unwrap();
        assert_eq!(
            (&seen["name"], &seen["addresses"]["nodes"][0]["addr"]),
            (&json!("node-1999"), &json!(last.address))
        );
        let ports = project.list(Service::Network, "/v2.0/ports", "ports").await.unwrap();
        let port = ports.iter().find(|port| port["device_id"] == json!(last.id)).unwrap();
        assert_eq!(port["fixed_ips"][0]["ip_address"], json!(last.address));
    }

    #[tokio::test]
    async fn load_balancers_become_active_fail_on_demand_and_give_their_port_back() {
        let cloud = OpenStackCloud::shared().await;
        let project = cloud.project().await.unwrap();
        let network = project.network("nodes", "10.3.0.0/16").await.unwrap();
        project.router(&[&network]).await.unwrap();
        let make = |name: &'static str| {
            let body = json!({ "loadbalancer": { "name": name, "vip_subnet_id": network.subnet } });
            project.ask(Service::LoadBalancer, Method::POST, "/v2.0/lbaas/loadbalancers", body)
        };
        let (status, made) = make("first").await.unwrap();
        assert_eq!(
            (status.as_u16(), &made["loadbalancer"]["provisioning_status"]),
            (201, &json!("PENDING_CREATE"))
        );
        let id = text(&made, "/loadbalancer/id").unwrap();
        let vip = text(&made, "/loadbalancer/vip_port_id").unwrap();
        let path = format!("/v2.0/lbaas/loadbalancers/{id}");
        let (status, _) = project
            .ask(Service::LoadBalancer, Method::DELETE, &path, Value::Null)
            .await
            .unwrap();
        assert_eq!(status, 409, "it is being made");
        let is = |status: &'static str| {
            let path = path.clone();
            eventually(SOON, "the load balancer gets there", move || {
                let path = path.clone();
                async move {
                    cloud.get(Service::LoadBalancer, &path).await.unwrap()["loadbalancer"]["provisioning_status"]
                        == status
                }
            })
        };
        is("ACTIVE").await;
        let public = &cloud.public_network().await.unwrap().id;
        let floating = json!({ "floatingip": { "floating_network_id": public, "port_id": vip } });
        let (status, floating) = project
            .ask(Service::Network, Method::POST, "/v2.0/floatingips", floating)
            .await
            .unwrap();
        assert_eq!(
            (status.as_u16(), &floating["floatingip"]["fixed_ip_address"]),
            (201, &made["loadbalancer"]["vip_address"])
        );

        project.fail_balancers(1).await.unwrap();
        let (_, second) = make("second").await.unwrap();
        let failed = text(&second, "/loadbalancer/id").unwrap();
        eventually(SOON, "the second fails", || async {
            let balancers = project.balancers().await.unwrap();
            balancers
                .iter()
                .any(|balancer| balancer["id"] == json!(failed) && balancer["provisioning_status"] == "ERROR")
        })
        .await;

        let (status, _) = project
            .ask(
                Service::LoadBalancer,
                Method::DELETE,
                &format!("{path}?cascade=true"),
                Value::Null,
            )
            .await
            .unwrap();
        assert_eq!(status, 204);
        eventually(SOON, "the load balancer goes", || async {
            project.balancers().await.unwrap().len() == 1
        })
        .await;
        project.vanish_balancer(&failed).await.unwrap();
        assert!(project.balancers().await.unwrap().is_empty());
        let (status, _) = cloud
            .ask(
                Service::Network,
                Method::GET,
                &format!("/v2.0/ports/{vip}"),
                Value::Null,
            )
            .await
            .unwrap();
        assert_eq!(status, 404);
    }

    #[tokio::test]
    async fn revoked_tokens_are_refused_at_once_and_new_ones_are_good() {
        let cloud = OpenStackCloud::shared().await;
        let project = cloud.project().await.unwrap();
        let account = Account {
            name: project.name.clone(),
            password: project.password.clone(),
            project: project.name.clone(),
        };
        let old = cloud.token(&account).await.unwrap();
        let look = |token: String| async move {
            let (status, _) = cloud
                .ask_as(&token, Service::Network, Method::GET, "/v2.0/networks", Value::Null)
                .await
                .unwrap();
            status.as_u16()
        };
        assert_eq!(look(old.clone()).await, 200);
        project.revoke_tokens().await.unwrap();
        assert_eq!(look(old).await, 401);
        assert_eq!(look(cloud.token(&account).await.unwrap()).await, 200);
        project.token_lifetime(2).await.unwrap();
        let short = cloud.token(&account).await.unwrap();
        eventually(SOON, "the token is over", || async { look(short.clone()).await == 401 }).await;
    }

    #[tokio::test]
    async fn another_region_leads_elsewhere_and_quotas_hold() {
        let cloud = OpenStackCloud::shared().await;
        let project = cloud.project().await.unwrap();
        cloud
            .region("elsewhere", &[(Service::Compute, "http://127.0.0.1:1")])
            .await
            .unwrap();
        let endpoints = cloud
            .get(Service::Identity, "/v3/endpoints?region_id=elsewhere")
            .await
            .unwrap()
            .to_string();
        assert!(endpoints.contains("http://127.0.0.1:1/v2.1"), "{endpoints}");
        assert!(endpoints.contains(cloud.url(Service::LoadBalancer)), "{endpoints}");

        project.quota(Service::Network, "floatingip", 0).await.unwrap();
        project.quota(Service::LoadBalancer, "load_balancer", 0).await.unwrap();
        let public = &cloud.public_network().await.unwrap().id;
        let floating = json!({ "floatingip": { "floating_network_id": public } });
        let (status, said) = project
            .ask(Service::Network, Method::POST, "/v2.0/floatingips", floating)
            .await
            .unwrap();
        assert_eq!(
            (status.as_u16(), &said["NeutronError"]["type"]),
            (409, &json!("OverQuota"))
        );
        let balancer = json!({ "loadbalancer": { "name": "one", "vip_network_id": public } });
        let (status, said) = project
            .ask(
                Service::LoadBalancer,
                Method::POST,
                "/v2.0/lbaas/loadbalancers",
                balancer,
            )
            .await
            .unwrap();
        assert_eq!(status, 403, "{said}");
    }
}
