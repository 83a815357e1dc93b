//! The simulated cloud as a process of its own, so that its work is not counted as that of anybody who is measured.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cloudwit_sim_cloud::{Counters, LoadBalancer, Machine};
use cloudwit_test_support::programs::child::Child;
use cloudwit_test_support::scenes::deployment::TOKEN;
use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long it may take to start.
const START: Duration = Duration::from_secs(20);

/// A running cloud. Dropping it ends the process.
#[derive(Debug)]
pub struct Cloud {
    url: String,
    client: reqwest::Client,
    process: Child,
}

/// What is in it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Content {
    /// All load balancers.
    pub load_balancers: Vec<LoadBalancer>,
}

impl Cloud {
    /// Starts it. Each request takes so long; load balancers are active at once.
    ///
    /// # Errors
    ///
    /// When it does not start; with the end of its log.
    pub fn start(programs: &Path, log: &Path, latency: Duration) -> Result<Self> {
        let flags = [
            format!("--token={TOKEN}"),
            format!("--latency-ms={}", latency.as_millis()),
            "--balancer-build-ms=0".to_owned(),
        ];
        let process = Child::start(&programs.join("cloudwit-sim-cloud"), &flags, log)?;
        let port = process.said("PORT=", START)?;
        Ok(Self {
            url: format!("http://127.0.0.1:{port}"),
            client: reqwest::Client::new(),
            process,
        })
    }

    /// The URL of its API.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds so many machines, named `PREFIX-0` and so on.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn add_machines(&self, prefix: &str, count: usize) -> Result<Vec<Machine>> {
        self.ask(
            Method::POST,
            "machines",
            Some(json!({ "prefix": prefix, "count": count })),
        )
        .await
    }

    /// What was asked of it since the last [`reset_counters`](Self::reset_counters).
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn counters(&self) -> Result<Counters> {
        self.ask(Method::GET, "counters", None).await
    }

    /// Forgets what was asked of it.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn reset_counters(&self) -> Result<()> {
        self.ask::<Counters>(Method::DELETE, "counters", None).await?;
        Ok(())
    }

    /// What is in it.
    ///
    /// # Errors
    ///
    /// When it does not answer.
    pub async fn content(&self) -> Result<Content> {
        self.ask(Method::GET, "state", None).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Value>) -> Result<T> {
        let mut request = self.client.request(method, format!("{}/control/{path}", self.url));
        if let Some(body) = body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let answer = request
            .send()
            .await
            .with_context(|| format!("asking the cloud for {path}; its log ends:\n{}", self.process.log_end()))?;
        let status = answer.status();
        let text = answer.text().await.context("reading what the cloud answers")?;
        ensure!(status.is_success(), "the cloud answered {status} to {path}: {text}");
        serde_json::from_str(&text).with_context(|| format!("the cloud's answer to {path}: {text}"))
    }
}
