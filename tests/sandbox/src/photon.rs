//! Photon Controller, by a stand-in after its API's model.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::small_cloud_files::photon_files;
use cloudwit_test_support::stand_in::StandIn;
use serde_json::json;

use crate::cloud::{Cloud, Machine, Route};

/// The project `nodes`.
pub struct Photon(StandIn);

impl Cloud for Photon {
    const PROVIDER: &'static str = "photon";
    const NAME: &'static str = "Photon (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("photon", &[]).await.map(Self)
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
        photon_files(&self.0, "", deployment).await
    }

    fn looks(&self) -> Vec<String> {
        vec![format!("curl {}/open/v1/projects/p-1/vms", self.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self.0.call("add_machine", json!({ "name": node })).await?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("no such field");
        let (id, ip) = (text("id")?, text("ip")?);
        Ok(Machine {
            provider_id: format!("photon://{id}"),
            system_uuid: id.clone(),
            labels: vec![("node.kubernetes.io/instance-type", "small-1".to_owned())],
            addresses: vec![ip.clone()],
            ip,
            id,
            node,
        })
    }

    async fn delete_machine(&self, machine: &Machine) -> Result<()> {
        self.0.call("delete", json!({ "id": machine.id })).await.map(drop)
    }

    async fn routes(&self) -> Result<Option<Vec<Route>>> {
        Ok(None)
    }

    async fn balancers(&self) -> Result<Option<Vec<usize>>> {
        Ok(None)
    }
}
