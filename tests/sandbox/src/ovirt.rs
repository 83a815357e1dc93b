//! oVirt, by a stand-in that its own SDK judges.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::small_cloud_files::ovirt_files;
use cloudwit_test_support::stand_in::StandIn;
use serde_json::json;

use crate::cloud::{Cloud, Machine, Route};

/// An engine with one data centre.
pub struct Ovirt(StandIn);

impl Cloud for Ovirt {
    const PROVIDER: &'static str = "ovirt";
    const NAME: &'static str = "oVirt (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("ovirt", &[]).await.map(Self)
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
        ovirt_files(&self.0, "", deployment).await
    }

    fn looks(&self) -> Vec<String> {
        let password = "-u 'admin@internal:a pass&word+of 100%'";
        vec![format!(
            "curl {password} -H 'Accept: application/json' {}/ovirt-engine/api/vms",
            self.url()
        )]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self.0.call("add_machine", json!({ "name": node })).await?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("no such field");
        let (id, ip) = (text("id")?, text("ip")?);
        Ok(Machine {
            provider_id: format!("ovirt:///{id}"),
            system_uuid: id.clone(),
            labels: vec![
                ("node.kubernetes.io/instance-type", "ovirt-2c-4g".to_owned()),
                ("topology.kubernetes.io/zone", "Default".to_owned()),
                ("topology.kubernetes.io/region", "North".to_owned()),
            ],
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
