//! Google Compute Engine, by a stand-in that Google's own client judges.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::gce_files::gce_files;
use cloudwit_test_support::stand_in::StandIn;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Machine, Route};

/// Where all machines are.
const ZONE: &str = "us-central1-a";

/// The stand-in's project `demo`.
pub struct Gce(StandIn);

impl Cloud for Gce {
    const PROVIDER: &'static str = "gce";
    const NAME: &'static str = "Google Compute Engine (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("gce", &[]).await.map(Self)
    }

    fn url(&self) -> String {
        self.0.url().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.0.log()
    }

    fn runs(&self) -> bool {
        self.0.runs()
    }

    async fn files(&self, deployment: &Deployment) -> Result<CloudFiles> {
        gce_files(&self.0, "", deployment).await
    }

    fn looks(&self) -> Vec<String> {
        let body = r#"{"collection": "forwardingRules"}"#;
        vec![format!("curl -d '{body}' {}/test/do/resources", self.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let asked = json!({ "name": node, "zone": ZONE, "tags": ["node"] });
        let made = self.0.call("add_machine", asked).await?;
        let ip = |path: &str| {
            made.pointer(path)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .context("no address")
        };
        let internal = ip("/networkInterfaces/0/networkIP")?;
        Ok(Machine {
            provider_id: format!("gce://demo/{ZONE}/{node}"),
            system_uuid: format!("gce-{number}"),
            labels: vec![
                ("node.kubernetes.io/instance-type", "e2-standard-2".to_owned()),
                ("topology.kubernetes.io/zone", ZONE.to_owned()),
                ("topology.kubernetes.io/region", "us-central1".to_owned()),
            ],
            addresses: vec![internal.clone(), ip("/networkInterfaces/0/accessConfigs/0/natIP")?],
            ip: internal,
            id: node.clone(),
            node,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let path = format!("projects/demo/zones/{ZONE}/instances/{}", machine.id);
        self.0.call("delete", json!({ "path": path })).await.map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        let text = |route: &Value, field: &str| route[field].as_str().unwrap_or_default().to_owned();
        let routes = self.0.resources(json!({ "collection": "routes" })).await?;
        let shown = routes.iter().map(|route| Route {
            destination: text(route, "destRange"),
            by: text(route, "nextHopInstance")
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
        });
        Ok(Some(shown.collect()))
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let rules = self.0.resources(json!({ "collection": "forwardingRules" })).await?;
        if rules.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let pools = self.0.resources(json!({ "collection": "targetPools" })).await?;
        let sizes = pools
            .iter()
            .map(|pool| pool["instances"].as_array().map_or(0, Vec::len));
        Ok(Some(sizes.collect()))
    }
}
