//! Apache Mesos behind DC/OS, by a stand-in after their documents.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::mesos_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::Machine;
use crate::clouds::stand_ins::{StandInCloud, labels, plain_machine, text};

/// Masters on one port.
pub struct Mesos;

impl StandInCloud for Mesos {
    const PROVIDER: &'static str = "mesos";
    const NAME: &'static str = "Mesos (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        mesos_files(cloud, "", deployment).await
    }

    fn look(url: &str) -> String {
        format!("curl {url}/master/slaves")
    }

    fn new_machine(node: &str) -> Value {
        json!({ "name": node, "zone": "north-1", "region": "north" })
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("mesos://{id}");
        let labels = labels("mesos-agent", Some(("north-1", "north")));
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }
}
