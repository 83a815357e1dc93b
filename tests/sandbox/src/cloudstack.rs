//! CloudStack, by a stand-in that two clients of others judge.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::cloudstack_files::cloudstack_files;
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::stand_in::StandIn;
use serde_json::json;

use crate::cloud::{Cloud, Machine, Route, list};

/// The stand-in's project `demo`.
pub struct CloudStack(StandIn);

impl Cloud for CloudStack {
    const PROVIDER: &'static str = "cloudstack";
    const NAME: &'static str = "CloudStack (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("cloudstack", &[]).await.map(Self)
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
        cloudstack_files(&self.0, "region = north", deployment).await
    }

    fn looks(&self) -> Vec<String> {
        let body = r#"{"kind": "rules"}"#;
        vec![format!("curl -d '{body}' {}/test/do/resources", self.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self.0.call("add_machine", json!({ "name": node })).await?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("no such field");
        let (id, ip) = (text("id")?, text("ip")?);
        Ok(Machine {
            provider_id: format!("external-cloudstack://{id}"),
            system_uuid: id.clone(),
            labels: vec![
                ("node.kubernetes.io/instance-type", "SmallInstance".to_owned()),
                ("topology.kubernetes.io/zone", "zone-1".to_owned()),
                ("topology.kubernetes.io/region", "north".to_owned()),
            ],
            addresses: vec![ip.clone()],
            ip,
            id,
            node,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        let arguments = json!({ "kind": "machines", "id": machine.id });
        self.0.call("delete", arguments).await.map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        Ok(None)
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let rules = self.0.resources(json!({ "kind": "rules" })).await?;
        // One rule for each port, all on one address; a machine counts when it is behind all of them.
        let mut sizes = BTreeMap::new();
        for rule in &rules {
            let machines = list(rule, "machines")?.len();
            let size = sizes.entry(rule["publicip"].to_string()).or_insert(machines);
            *size = machines.min(*size);
        }
        Ok(Some(sizes.into_values().collect()))
    }
}
