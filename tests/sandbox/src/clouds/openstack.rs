//! OpenStack, by its own services: a project with a network, a router and an account.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::openstack::project::{OpenStackNetwork, OpenStackProject};
use cloudwit_test_support::clouds::openstack::servers::{FLAVOR, OpenStackServer, ZONE};
use cloudwit_test_support::clouds::openstack::{OpenStackCloud, REGION, Service};
use cloudwit_test_support::files::openstack::openstack_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use tokio::sync::Mutex;

use crate::clouds::{Cloud, Machine, Route, list};

/// A project of the cluster.
pub struct OpenStack {
    project: OpenStackProject<'static>,
    network: OpenStackNetwork,
    router: String,
    servers: Mutex<Vec<OpenStackServer>>,
}

impl Cloud for OpenStack {
    const PROVIDER: &'static str = "openstack";
    const NAME: &'static str = "OpenStack (Keystone, Neutron, Nova, Octavia)";

    async fn start(_: &Deployment) -> Result<Self> {
        let project = OpenStackCloud::shared().await.project().await?;
        let network = project.network("nodes", "10.1.0.0/16").await?;
        let router = project.router(&[&network]).await?;
        Ok(Self {
            project,
            network,
            router,
            servers: Mutex::default(),
        })
    }

    fn url(&self) -> String {
        self.project.cloud.auth_url()
    }

    fn log(&self) -> PathBuf {
        self.project.cloud.log()
    }

    fn runs(&self) -> bool {
        self.project.cloud.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        openstack_files(&self.project, &self.network, &self.router, deployment).await
    }

    fn looks(&self) -> Vec<String> {
        let (project, url) = (&self.project, self.url());
        vec![
            format!("export OS_AUTH_URL={url} OS_REGION_NAME={REGION} OS_IDENTITY_API_VERSION=3"),
            format!(
                "export OS_USERNAME={0} OS_PASSWORD={1} OS_PROJECT_NAME={0}",
                project.name, project.password
            ),
            "export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default".to_owned(),
            "openstack server list; openstack loadbalancer list".to_owned(),
        ]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let server = self.project.server(&self.network, &format!("sandbox-{number}")).await?;
        let machine = Machine {
            id: server.id.clone(),
            node: server.name.clone(),
            system_uuid: server.id.clone(),
            ip: server.address.clone(),
            provider_id: server.provider_id(),
            labels: vec![
                ("node.kubernetes.io/instance-type", FLAVOR.to_owned()),
                ("topology.kubernetes.io/zone", ZONE.to_owned()),
                ("topology.kubernetes.io/region", REGION.to_owned()),
            ],
            addresses: vec![server.address.clone()],
        };
        self.servers.lock().await.push(server);
        Ok(machine)
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let servers = self.servers.lock().await;
        let server = servers.iter().find(|server| server.id == machine.id);
        self.project
            .delete_server(server.with_context(|| format!("there is no server {}", machine.id))?)
            .await
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        let path = format!("/v2.0/routers/{}", self.router);
        let answer = self.project.cloud.get(Service::Network, &path).await?;
        let word = |route: &serde_json::Value, name: &str| route[name].as_str().unwrap_or_default().to_owned();
        let routes = list(&answer["router"], "routes")?.iter();
        let route = |route| Route {
            destination: word(route, "destination"),
            by: word(route, "nexthop"),
        };
        Ok(Some(routes.map(route).collect()))
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let mut sizes = Vec::new();
        for balancer in self.project.balancers().await? {
            let mut members = 0;
            for pool in list(&balancer, "pools")? {
                let path = format!("/v2.0/lbaas/pools/{}/members", pool["id"].as_str().unwrap_or_default());
                let answer = self.project.cloud.get(Service::LoadBalancer, &path).await?;
                members = members.max(list(&answer, "members")?.len());
            }
            sizes.push(members);
        }
        Ok(Some(sizes))
    }
}
