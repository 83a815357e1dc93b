//! Google Compute Engine, by a stand-in that Google's own client judges.

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::gce::gce_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine};
use crate::clouds::{Machine, Route};

/// Where all machines are.
const ZONE: &str = "us-central1-a";

/// The stand-in's project `demo`.
pub struct Gce;

impl StandInCloud for Gce {
    const PROVIDER: &'static str = "gce";
    const NAME: &'static str = "Google Compute Engine (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        gce_files(cloud, "", deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "collection", "forwardingRules")
    }

    fn new_machine(node: &str) -> Value {
        json!({ "name": node, "zone": ZONE, "tags": ["node"] })
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let ip = |path: &str| {
            let text = made.pointer(path).and_then(Value::as_str);
            text.map(str::to_owned).context("no address")
        };
        let internal = ip("/networkInterfaces/0/networkIP")?;
        let labels = labels("e2-standard-2", Some((ZONE, "us-central1")));
        let provider_id = format!("gce://demo/{ZONE}/{node}");
        let mut machine = plain_machine(node, (node.to_owned(), internal), provider_id, labels);
        machine
            .addresses
            .push(ip("/networkInterfaces/0/accessConfigs/0/natIP")?);
        Ok(machine)
    }

    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "path": format!("projects/demo/zones/{ZONE}/instances/{}", machine.id) })
    }

    async fn routes(cloud: &StandIn) -> Result<Option<Vec<Route>>> {
        let text = |route: &Value, field: &str| route[field].as_str().unwrap_or_default().to_owned();
        let routes = cloud.resources(json!({ "collection": "routes" })).await?;
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

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let rules = cloud.resources(json!({ "collection": "forwardingRules" })).await?;
        if rules.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let pools = cloud.resources(json!({ "collection": "targetPools" })).await?;
        let sizes = pools
            .iter()
            .map(|pool| pool["instances"].as_array().map_or(0, Vec::len));
        Ok(Some(sizes.collect()))
    }
}
