//! CloudStack, by a stand-in that two clients of others judge.

use std::collections::BTreeMap;

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::cloudstack::cloudstack_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine, text};
use crate::clouds::{Machine, list};

/// The stand-in's project `demo`.
pub struct CloudStack;

impl StandInCloud for CloudStack {
    const PROVIDER: &'static str = "cloudstack";
    const NAME: &'static str = "CloudStack (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        cloudstack_files(cloud, "region = north", deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "kind", "rules")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("external-cloudstack://{id}");
        let labels = labels("SmallInstance", Some(("zone-1", "north")));
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }

    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "kind": "machines", "id": machine.id })
    }

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let rules = cloud.resources(json!({ "kind": "rules" })).await?;
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
