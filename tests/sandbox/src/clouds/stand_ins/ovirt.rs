//! oVirt, by a stand-in that its own SDK judges.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::ovirt_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::Value;

use crate::clouds::Machine;
use crate::clouds::stand_ins::{StandInCloud, labels, plain_machine, text};

/// An engine with one data centre.
pub struct Ovirt;

impl StandInCloud for Ovirt {
    const PROVIDER: &'static str = "ovirt";
    const NAME: &'static str = "oVirt (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        ovirt_files(cloud, "", deployment).await
    }

    fn look(url: &str) -> String {
        let password = "-u 'admin@internal:a pass&word+of 100%'";
        format!("curl {password} -H 'Accept: application/json' {url}/ovirt-engine/api/vms")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("ovirt:///{id}");
        let labels = labels("ovirt-2c-4g", Some(("Default", "North")));
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }
}
