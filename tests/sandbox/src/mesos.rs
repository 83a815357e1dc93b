//! Apache Mesos behind DC/OS, by a stand-in after their documents.

use std::path::PathBuf;

use anyhow::{Context, Result};
use cloudwit_test_support::deployment::{CloudFiles, Deployment};
use cloudwit_test_support::small_cloud_files::mesos_files;
use cloudwit_test_support::stand_in::StandIn;
use serde_json::json;

use crate::cloud::{Cloud, Machine, Route};

/// Masters on one port.
pub struct Mesos(StandIn);

impl Cloud for Mesos {
    const PROVIDER: &'static str = "mesos";
    const NAME: &'static str = "Mesos (a stand-in)";

    async fn start(_: &Deployment) -> Result<Self> {
        StandIn::start("mesos", &[]).await.map(Self)
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
        mesos_files(&self.0, "", deployment).await
    }

    fn looks(&self) -> Vec<String> {
        vec![format!("curl {}/master/slaves", self.url())]
    }

    async fn create_machine(&self, number: u8) -> Result<Machine> {
        let node = format!("sandbox-{number}");
        let made = self
            .0
            .call(
                "add_machine",
                json!({ "name": node, "zone": "north-1", "region": "north" }),
            )
            .await?;
        let text = |field: &str| made[field].as_str().map(str::to_owned).context("no such field");
        let (id, ip) = (text("id")?, text("ip")?);
        Ok(Machine {
            provider_id: format!("mesos://{id}"),
            system_uuid: id.clone(),
            labels: vec![
                ("node.kubernetes.io/instance-type", "mesos-agent".to_owned()),
                ("topology.kubernetes.io/zone", "north-1".to_owned()),
                ("topology.kubernetes.io/region", "north".to_owned()),
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
