//! Photon Controller, by a stand-in after its API's model.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::photon_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::Value;

use crate::clouds::Machine;
use crate::clouds::stand_ins::{StandInCloud, labels, plain_machine, text};

/// The project `nodes`.
pub struct Photon;

impl StandInCloud for Photon {
    const PROVIDER: &'static str = "photon";
    const NAME: &'static str = "Photon (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        photon_files(cloud, "", deployment).await
    }

    fn look(url: &str) -> String {
        format!("curl {url}/open/v1/projects/p-1/vms")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("photon://{id}");
        Ok(plain_machine(node, (id, ip), provider_id, labels("small-1", None)))
    }
}
