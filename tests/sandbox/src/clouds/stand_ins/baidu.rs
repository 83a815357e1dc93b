//! Baidu AI Cloud, by a stand-in that Baidu's own SDK judges.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::baidu::baidu_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine, text};
use crate::clouds::{Machine, Route};

/// The stand-in's account.
pub struct Baidu;

impl StandInCloud for Baidu {
    const PROVIDER: &'static str = "baidu";
    const NAME: &'static str = "Baidu AI Cloud (a stand-in)";
    const OPERATIONS_TAKE: Option<f64> = Some(0.2);

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        baidu_files(cloud, &json!({}), deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "kind", "blbs")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "internalIp")?);
        let provider_id = format!("cce://{id}");
        let labels = labels("bcc.g5.c2m8", Some(("cn-bj-a", "bj")));
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }

    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "kind": "machines", "id": machine.id })
    }

    async fn routes(cloud: &StandIn) -> Result<Option<Vec<Route>>> {
        let text = |rule: &Value, field: &str| rule[field].as_str().unwrap_or_default().to_owned();
        let rules = cloud.resources(json!({ "kind": "rules" })).await?;
        let shown = rules.iter().map(|rule| Route {
            destination: text(rule, "destinationAddress"),
            by: text(rule, "nexthopId"),
        });
        Ok(Some(shown.collect()))
    }

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let blbs = cloud.resources(json!({ "kind": "blbs" })).await?;
        let size = |blb: &Value| blb["backends"].as_object().map_or(0, serde_json::Map::len);
        Ok(Some(blbs.iter().map(size).collect()))
    }
}
