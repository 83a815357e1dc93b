//! What a test has in an [`OpenStackCloud`]: a project, an account in it, and what an administrator made there.

use std::sync::atomic::AtomicUsize;

use anyhow::{Context, Result};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::clouds::openstack::{Account, OpenStackCall, OpenStackCloud, Service, text};

/// A project with a user, who has the roles of a tenant.
#[derive(Debug)]
pub struct OpenStackProject<'a> {
    /// Where it is.
    pub cloud: &'a OpenStackCloud,
    /// Its id.
    pub id: String,
    /// Its name, and the user's.
    pub name: String,
    /// The user's id.
    pub user: String,
    /// The user's password. The domain is `Default`.
    pub password: String,
    /// How many servers were made by [`servers`](Self::servers).
    pub(crate) many: AtomicUsize,
}

/// Instead of a user and a password.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplicationCredential {
    /// Its id.
    pub id: String,
    /// Its name, which is good together with the user's.
    pub name: String,
    /// Its secret.
    pub secret: String,
}

/// A network with one subnet.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenStackNetwork {
    /// The network's id.
    pub id: String,
    /// The network's name.
    pub name: String,
    /// The subnet's id.
    pub subnet: String,
}

impl<'a> OpenStackProject<'a> {
    pub(crate) fn new(cloud: &'a OpenStackCloud, made: &Value) -> Self {
        let word = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
        Self {
            cloud,
            id: word("project"),
            name: word("name"),
            user: word("user"),
            password: word("password"),
            many: AtomicUsize::new(0),
        }
    }

    /// A new application credential of the user.
    ///
    /// # Errors
    ///
    /// When Keystone refuses.
    pub async fn application_credential(&self, name: &str) -> Result<ApplicationCredential> {
        let asked = json!({ "user": self.user, "project": self.id, "name": name });
        let made = self.cloud.stage(Service::Identity, "credential", asked).await?;
        Ok(ApplicationCredential {
            id: text(&made, "/id")?,
            name: text(&made, "/name")?,
            secret: text(&made, "/secret")?,
        })
    }

    /// What a service answers the user: status and document.
    ///
    /// # Errors
    ///
    /// When it does not answer, or not in JSON.
    pub async fn ask(&self, service: Service, method: Method, path: &str, body: Value) -> Result<(StatusCode, Value)> {
        let account = Account {
            name: self.name.clone(),
            password: self.password.clone(),
            project: self.name.clone(),
        };
        let token = self.cloud.token(&account).await?;
        self.cloud.ask_as(&token, service, method, path, body).await
    }

    /// The calls made in this project, in their order, by whoever it was, without those that got a token.
    ///
    /// # Errors
    ///
    /// When the service does not answer.
    pub async fn calls(&self, service: Service) -> Result<Vec<OpenStackCall>> {
        let answer = self
            .cloud
            .stage(service, "calls", json!({ "project": self.id }))
            .await?;
        let calls = answer["calls"].as_array().context("the calls are no list")?;
        let word = |call: &Value, name: &str| call[name].as_str().unwrap_or_default().to_owned();
        let call = |call| OpenStackCall {
            method: word(call, "method"),
            target: word(call, "target"),
            status: call["status"]
                .as_u64()
                .and_then(|status| u16::try_from(status).ok())
                .unwrap_or_default(),
        };
        Ok(calls.iter().map(call).collect())
    }

    /// A network with a subnet, which may be of either family.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn network(&self, name: &str, cidr: &str) -> Result<OpenStackNetwork> {
        let network = json!({ "network": { "name": name, "project_id": self.id } });
        let made = self.cloud.post(Service::Network, "/v2.0/networks", network).await?;
        let id = text(&made, "/network/id")?;
        let name = name.to_owned();
        let subnet = self.subnet(&id, &format!("{name}-subnet"), cidr).await?;
        Ok(OpenStackNetwork { id, name, subnet })
    }

    /// A further subnet of a network; gives its id.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn subnet(&self, network: &str, name: &str, cidr: &str) -> Result<String> {
        let version = if cidr.contains(':') { 6 } else { 4 };
        let subnet = json!({ "subnet": {
            "network_id": network, "name": name, "cidr": cidr, "ip_version": version, "project_id": self.id,
        } });
        let made = self.cloud.post(Service::Network, "/v2.0/subnets", subnet).await?;
        text(&made, "/subnet/id")
    }

    /// A router between these networks and the public one; gives its id.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn router(&self, networks: &[&OpenStackNetwork]) -> Result<String> {
        let public = self.cloud.public_network().await?;
        let router = json!({ "router": {
            "name": "router", "project_id": self.id, "external_gateway_info": { "network_id": public.id },
        } });
        let made = self.cloud.post(Service::Network, "/v2.0/routers", router).await?;
        let id = text(&made, "/router/id")?;
        for network in networks {
            let path = format!("/v2.0/routers/{id}/add_router_interface");
            let interface = json!({ "subnet_id": network.subnet });
            self.cloud.put(Service::Network, &path, interface).await?;
        }
        Ok(id)
    }

    /// Ports are ACTIVE; sets one to another status, such as `DOWN`.
    ///
    /// # Errors
    ///
    /// When Neutron does not answer.
    pub async fn port_status(&self, port: &str, status: &str) -> Result<()> {
        let asked = json!({ "ports": [port], "status": status });
        self.cloud.stage(Service::Network, "port-status", asked).await.map(drop)
    }

    /// Ends all tokens the user has. Those issued from now on are good.
    ///
    /// # Errors
    ///
    /// When Keystone does not answer.
    pub async fn revoke_tokens(&self) -> Result<()> {
        let asked = json!({ "user": self.user });
        self.cloud.stage(Service::Identity, "revoke", asked).await.map(drop)
    }

    /// Tokens issued to the user from now on live so many seconds.
    ///
    /// # Errors
    ///
    /// When Keystone does not answer.
    pub async fn token_lifetime(&self, seconds: u32) -> Result<()> {
        let asked = json!({ "user": self.user, "seconds": seconds });
        self.cloud.stage(Service::Identity, "lifetime", asked).await.map(drop)
    }

    /// Changes of load balancers of this project take so many seconds (0.3 before); without a number, they never end.
    ///
    /// # Errors
    ///
    /// When Octavia does not answer.
    pub async fn pace(&self, seconds: Option<f64>) -> Result<()> {
        let asked = json!({ "project": self.id, "seconds": seconds });
        self.cloud.stage(Service::LoadBalancer, "pace", asked).await.map(drop)
    }

    /// The next so many changes of load balancers of this project end in ERROR.
    ///
    /// # Errors
    ///
    /// When Octavia does not answer.
    pub async fn fail_balancers(&self, times: u32) -> Result<()> {
        let asked = json!({ "project": self.id, "times": times });
        self.cloud.stage(Service::LoadBalancer, "fate", asked).await.map(drop)
    }

    /// Sets the provisioning status of a load balancer, such as `ERROR`.
    ///
    /// # Errors
    ///
    /// When there is no such load balancer.
    pub async fn balancer_status(&self, balancer: &str, provisioning: &str) -> Result<()> {
        let asked = json!({ "balancer": balancer, "provisioning": provisioning });
        self.cloud.stage(Service::LoadBalancer, "status", asked).await.map(drop)
    }

    /// Deletes a load balancer and all below it, as somebody else does.
    ///
    /// # Errors
    ///
    /// When there is no such load balancer.
    pub async fn vanish_balancer(&self, balancer: &str) -> Result<()> {
        let asked = json!({ "balancer": balancer });
        self.cloud.stage(Service::LoadBalancer, "vanish", asked).await.map(drop)
    }

    /// The load balancers of this project, as Octavia lists them.
    ///
    /// # Errors
    ///
    /// When Octavia does not answer.
    pub async fn balancers(&self) -> Result<Vec<Value>> {
        self.list(Service::LoadBalancer, "/v2.0/lbaas/loadbalancers", "loadbalancers")
            .await
    }

    /// A list of this project: `list(Service::Network, "/v2.0/floatingips", "floatingips")`.
    ///
    /// # Errors
    ///
    /// When the service does not answer.
    pub async fn list(&self, service: Service, path: &str, name: &str) -> Result<Vec<Value>> {
        let path = format!("{path}?project_id={}", self.id);
        let answer = self.cloud.get(service, &path).await?;
        Ok(answer[name]
            .as_array()
            .with_context(|| format!("no {name} in {answer}"))?
            .clone())
    }

    /// Sets a quota: `quota(Service::Network, "floatingip", 0)`, `quota(Service::LoadBalancer, "load_balancer", 1)`,
    /// `quota(Service::BlockStorage, "gigabytes", 5)`.
    ///
    /// # Errors
    ///
    /// When the service knows no such quota.
    pub async fn quota(&self, service: Service, what: &str, limit: i64) -> Result<()> {
        let (path, key) = match service {
            Service::LoadBalancer => (format!("/v2.0/lbaas/quotas/{}", self.id), "quota"),
            Service::BlockStorage => (format!("/v3/os-quota-sets/{}", self.id), "quota_set"),
            _ => (format!("/v2.0/quotas/{}", self.id), "quota"),
        };
        self.cloud
            .put(service, &path, json!({ key: { what: limit } }))
            .await
            .map(drop)
    }
}
