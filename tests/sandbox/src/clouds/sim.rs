//! The simulated cloud, from its administrator's side (`/control`).

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use cloudwit_sim_cloud::{LoadBalancer, Machine as SimMachine, Network, Route as SimRoute};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::clouds::{Cloud, Machine, Route};

/// A client of the simulated cloud, which runs as a process.
pub struct Sim {
    process: Child,
    http: Client,
    url: String,
}

/// What Cloudwit made in the cloud.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inventory {
    load_balancers: Vec<LoadBalancer>,
    routes: Vec<SimRoute>,
}

impl Cloud for Sim {
    const PROVIDER: &'static str = "sim";
    const NAME: &'static str = "the simulated cloud";

    async fn start(deployment: &Deployment) -> Result<Self> {
        let (process, url) = deployment.start_cloud()?;
        let http = Client::builder().no_proxy().build().context("making an HTTP client")?;
        Ok(Self { process, http, url })
    }

    fn url(&self) -> String {
        self.url.clone()
    }

    fn log(&self) -> PathBuf {
        self.process.log().to_owned()
    }

    fn runs(&self) -> bool {
        self.process.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        deployment.sim_files(&self.url)
    }

    fn looks(&self) -> Vec<String> {
        vec![format!("the cloud as a page:   {}", self.url)]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let asked = json!({ "machines": [{ "name": format!("sandbox-{number}") }] });
        let made: Vec<SimMachine> = self.call("machines", Some(asked)).await?;
        let machine = made.into_iter().next().context("the simulated cloud made no machine")?;
        let mut private = machine
            .addresses
            .iter()
            .filter(|address| address.network == Network::Private);
        let private = private
            .next()
            .with_context(|| format!("machine {} has no private address", machine.name))?;
        Ok(Machine {
            ip: private.ip.clone(),
            provider_id: format!("sim://{}", machine.id),
            system_uuid: machine.id.clone(),
            labels: vec![
                ("node.kubernetes.io/instance-type", machine.kind.clone()),
                ("topology.kubernetes.io/zone", machine.zone.clone()),
                ("topology.kubernetes.io/region", machine.region.clone()),
            ],
            addresses: machine.addresses.iter().map(|address| address.ip.clone()).collect(),
            id: machine.id,
            node: machine.name,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let answer: Value = self
            .call("machines/delete", Some(json!({ "machines": [machine.id] })))
            .await?;
        ensure!(
            answer["changed"] == 1,
            "the simulated cloud deleted no machine {}: {answer}",
            machine.id
        );
        Ok(())
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        let inventory: Inventory = self.call("state", None).await?;
        let used = inventory.routes.into_iter().filter(|route| !route.blackhole);
        let route = |route: SimRoute| Route {
            destination: route.spec.destination,
            by: route.spec.machine,
        };
        Ok(Some(used.map(route).collect()))
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let inventory: Inventory = self.call("state", None).await?;
        Ok(Some(
            inventory
                .load_balancers
                .iter()
                .map(|balancer| balancer.spec.targets.len())
                .collect(),
        ))
    }
}

impl Sim {
    /// Reads, or changes something with a body.
    async fn call<T: DeserializeOwned>(&self, path: &str, body: Option<Value>) -> Result<T> {
        let url = format!("{}/control/{path}", self.url);
        let request = match body {
            Some(body) => {
                let post = self.http.post(&url).header("content-type", "application/json");
                post.body(body.to_string())
            }
            None => self.http.get(&url),
        };
        let response = request.send().await.with_context(|| url.clone())?;
        let status = response.status();
        let text = response.text().await.with_context(|| url.clone())?;
        if !status.is_success() {
            bail!("{url}: {status} {text}");
        }
        serde_json::from_str(&text).with_context(|| format!("{url}: cannot read {text}"))
    }
}
