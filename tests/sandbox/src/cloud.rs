//! The simulated cloud from its administrator's side (`/control`), as far as the story needs it.

use anyhow::{Context, Result, bail, ensure};
use cloudwit_sim_cloud::{LoadBalancer, Machine, Route};
use reqwest::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What Cloudwit made in the cloud.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inventory {
    pub load_balancers: Vec<LoadBalancer>,
    pub routes: Vec<Route>,
}

/// A client of the simulated cloud.
pub struct Cloud {
    http: Client,
    url: String,
}

impl Cloud {
    /// A client for the cloud at this URL.
    pub fn new(url: &str) -> Result<Self> {
        let http = Client::builder().no_proxy().build().context("making an HTTP client")?;
        Ok(Self {
            http,
            url: url.to_owned(),
        })
    }

    /// Makes a machine.
    pub async fn create_machine(&self, name: &str) -> Result<Machine> {
        let made: Vec<Machine> = self
            .call("machines", Some(json!({"machines": [{"name": name}]})))
            .await?;
        made.into_iter().next().context("the simulated cloud made no machine")
    }

    /// Deletes a machine.
    pub async fn delete_machine(&self, id: &str) -> Result<()> {
        let answer: Value = self.call("machines/delete", Some(json!({"machines": [id]}))).await?;
        ensure!(
            answer["changed"] == 1,
            "the simulated cloud deleted no machine {id}: {answer}"
        );
        Ok(())
    }

    /// What is there.
    pub async fn inventory(&self) -> Result<Inventory> {
        self.call("state", None).await
    }

    /// Reads, or changes something with a body.
    async fn call<T: DeserializeOwned>(&self, path: &str, body: Option<Value>) -> Result<T> {
        let url = format!("{}/control/{path}", self.url);
        let request = match body {
            Some(body) => self
                .http
                .post(&url)
                .header("content-type", "application/json")
                .body(body.to_string()),
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
