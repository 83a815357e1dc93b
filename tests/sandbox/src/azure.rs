//! Azure, by a stand-in that Microsoft's own clients judge.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::azure_files::azure_files;
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::stand_in::StandIn;
use serde_json::{Value, json};

use crate::cloud::{Cloud, Machine, Route};

/// The stand-in's resource group `demo`.
pub struct Azure(StandIn);

/// A list below the properties.
fn items<'a>(resource: &'a Value, list: &str) -> &'a [Value] {
    resource["properties"][list].as_array().map_or(&[], Vec::as_slice)
}

impl Cloud for Azure {
    const PROVIDER: &'static str = "azure";
    const NAME: &'static str = "Azure (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("azure", &[]).await.map(Self)
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
        azure_files(&self.0, &json!({}), deployment).await
    }

    fn looks(&self) -> Vec<String> {
        let body = r#"{"kind": "loadBalancers"}"#;
        vec![format!("curl -d '{body}' {}/test/do/resources", self.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self.0.call("add_machine", json!({ "name": node })).await?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("no such field");
        let (id, ip) = (text("id")?, text("ip")?);
        Ok(Machine {
            provider_id: format!("azure://{}", id.replace("/DEMO/", "/demo/")),
            system_uuid: format!("azure-{number}"),
            labels: vec![
                ("node.kubernetes.io/instance-type", "Standard_D2s_v3".to_owned()),
                ("topology.kubernetes.io/zone", "westeurope-1".to_owned()),
                ("topology.kubernetes.io/region", "westeurope".to_owned()),
            ],
            addresses: vec![ip.clone()],
            ip,
            id,
            node,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        self.0.call("delete", json!({ "path": machine.id })).await.map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        let tables = self.0.resources(json!({ "kind": "routeTables" })).await?;
        let routes = tables.iter().flat_map(|table| items(table, "routes"));
        let shown = routes.map(|route| {
            let text = |field: &str| route["properties"][field].as_str().unwrap_or_default().to_owned();
            Route {
                destination: text("addressPrefix"),
                by: text("nextHopIpAddress"),
            }
        });
        Ok(Some(shown.collect()))
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        let balancers = self.0.resources(json!({ "kind": "loadBalancers" })).await?;
        let pools = balancers.iter().flat_map(|one| items(one, "backendAddressPools"));
        let sizes = pools.map(|pool| items(pool, "loadBalancerBackendAddresses").len());
        Ok(Some(sizes.collect()))
    }
}
