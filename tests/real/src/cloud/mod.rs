//! The simulated cloud, from its administrator's side.

pub(crate) mod balancers;
pub(crate) mod client;
mod health;
mod request;
pub(crate) mod traffic;

use anyhow::{Context, Result, bail};
use cloudwit_sim_cloud::{Counters, Disk, DiskSnapshot, LoadBalancer, Machine, Route};
use reqwest::{Client, Method};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::volumes::ZONE;

/// A client of the simulated cloud.
#[derive(Debug, Clone)]
pub struct Cloud {
    http: Client,
    url: String,
}

/// What there is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// All machines, stopped ones too.
    pub machines: Vec<Machine>,
    /// All load balancers, those too that are still being built.
    pub load_balancers: Vec<LoadBalancer>,
    /// All routes, those whose machine is gone too.
    pub routes: Vec<Route>,
    /// All disks.
    pub disks: Vec<Disk>,
    /// All snapshots of disks.
    pub snapshots: Vec<DiskSnapshot>,
}

impl Cloud {
    /// The one at this URL.
    pub fn new(url: String) -> Result<Self> {
        let http = Client::builder().no_proxy().build().context("making an HTTP client")?;
        Ok(Self { http, url })
    }

    /// All there is.
    pub async fn state(&self) -> Result<State> {
        self.read("state").await
    }

    /// Makes a machine with this name and address, in the zone that disks move in.
    pub async fn create(&self, name: &str, address: &str) -> Result<()> {
        let machine = json!({ "name": name, "zone": ZONE, "addresses": [{ "network": "private", "ip": address }] });
        self.post("machines", &json!({ "machines": [machine] })).await
    }

    /// Ends a machine for good.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.post("machines/delete", &json!({ "machines": [name] })).await
    }

    /// Switches a machine off.
    pub async fn stop(&self, name: &str) -> Result<()> {
        self.post("machines/stop", &json!({ "machines": [name] })).await
    }

    /// Switches a machine on again.
    pub async fn start(&self, name: &str) -> Result<()> {
        self.post("machines/start", &json!({ "machines": [name] })).await
    }

    /// Lets every request of a provider fail, or none.
    pub async fn fail(&self, all: bool) -> Result<()> {
        let fault = json!({ "fault": { "kind": "status", "status": 503 } });
        let faults = if all { vec![fault] } else { Vec::new() };
        self.send(Method::PUT, "faults", &json!(faults)).await
    }

    /// What providers asked for since the last reset of the counters.
    pub async fn counters(&self) -> Result<Counters> {
        self.read("counters").await
    }

    /// Counts from zero again.
    pub async fn reset_counters(&self) -> Result<()> {
        self.send(Method::DELETE, "counters", &Value::Null).await
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let url = format!("{}/control/{path}", self.url);
        let response = self.http.get(&url).send().await.with_context(|| url.clone())?;
        let text = response.text().await.with_context(|| url.clone())?;
        serde_json::from_str(&text).with_context(|| format!("{url}: cannot read {text}"))
    }

    async fn post(&self, path: &str, body: &Value) -> Result<()> {
        self.send(Method::POST, path, body).await
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<()> {
        let url = format!("{}/control/{path}", self.url);
        let request = self
            .http
            .request(method, &url)
            .header("content-type", "application/json");
        let response = request
            .body(body.to_string())
            .send()
            .await
            .with_context(|| url.clone())?;
        let status = response.status();
        if !status.is_success() {
            bail!("{url}: {status} {}", response.text().await.unwrap_or_default());
        }
        Ok(())
    }
}
