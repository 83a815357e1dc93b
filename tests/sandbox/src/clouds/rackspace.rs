//! Rackspace's cloud, by Rackspace's own mimic. It has no routes.

use std::net::IpAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::mimic::{API_KEY, Mimic, REGION, RackspaceAccount};
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::Value;

use crate::clouds::{Cloud, Machine, Route};

/// The user whose account has the machines.
const USER: &str = "sandbox";

/// A mimic of the sandbox's own.
pub struct Rackspace {
    mimic: Mimic,
}

impl Rackspace {
    async fn account(&self) -> Result<RackspaceAccount<'_>> {
        self.mimic.account(USER).await
    }
}

impl Cloud for Rackspace {
    const PROVIDER: &'static str = "rackspace";
    const NAME: &'static str = "Rackspace (mimic)";

    async fn start(_: &Deployment) -> Result<Self> {
        Ok(Self {
            mimic: Mimic::start().await?,
        })
    }

    fn url(&self) -> String {
        self.mimic.cloud.url().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.mimic.cloud.log()
    }

    fn runs(&self) -> bool {
        self.mimic.cloud.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        self.account().await?.files(deployment)
    }

    fn looks(&self) -> Vec<String> {
        let body = format!(
            r#"{{"auth": {{"RAX-KSKEY:apiKeyCredentials": {{"username": "{USER}", "apiKey": "{API_KEY}"}}}}}}"#
        );
        vec![
            format!(
                "curl {}/identity/v2.0/tokens --data '{body}'  # the token, and where the services are",
                self.url()
            ),
            format!("curl {}/test/calls  # what was requested", self.url()),
        ]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let account = self.account().await?;
        let id = account.server(&node).await?;
        let server = account.look(&id).await?;
        let addresses = ["private", "public"].into_iter().flat_map(|network| {
            let places = server["addresses"][network].as_array().into_iter().flatten();
            // As Kubernetes writes them: mimic's IPv6 addresses have zeros in front.
            places.filter_map(|place| Some(place["addr"].as_str()?.parse::<IpAddr>().ok()?.to_string()))
        });
        let addresses: Vec<String> = addresses.collect();
        Ok(Machine {
            provider_id: format!("rackspace://{id}"),
            node,
            system_uuid: id.clone(),
            id,
            labels: vec![
                ("node.kubernetes.io/instance-type", "general1-1".to_owned()),
                ("topology.kubernetes.io/region", REGION.to_owned()),
            ],
            ip: addresses.first().cloned().context("a server without addresses")?,
            addresses,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        self.account().await?.end(&machine.id).await
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        Ok(None)
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let balancers = self.account().await?.balancers().await?;
        let nodes = |balancer: &Value| balancer["nodes"].as_array().map_or(0, Vec::len);
        Ok(Some(balancers.iter().map(nodes).collect()))
    }
}
