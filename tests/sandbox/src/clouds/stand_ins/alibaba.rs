//! Alibaba Cloud, by a stand-in that its two SDKs judge.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::alibaba::alibaba_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine, text};
use crate::clouds::{Machine, Route, list};

/// The stand-in's account.
pub struct Alibaba;

impl StandInCloud for Alibaba {
    const PROVIDER: &'static str = "alibaba";
    const NAME: &'static str = "Alibaba Cloud (a stand-in)";
    const OPERATIONS_TAKE: Option<f64> = Some(0.1);

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        alibaba_files(cloud, &json!({}), deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "kind", "groups")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let labels = labels("ecs.g7.large", Some(("cn-hangzhou-g", "cn-hangzhou")));
        let provider_id = format!("cn-hangzhou.{id}");
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }

    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "kind": "machines", "id": machine.id })
    }

    async fn routes(cloud: &StandIn) -> Result<Option<Vec<Route>>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = cloud.resources(json!({ "kind": "routes" })).await?;
        let shown = entries.iter().map(|entry| Route {
            destination: text(&entry["DestinationCidrBlock"]),
            by: text(&entry["NextHops"]["NextHop"][0]["NextHopId"]),
        });
        Ok(Some(shown.collect()))
    }

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let groups = cloud.resources(json!({ "kind": "groups" })).await?;
        // One server group for each port, of one load balancer.
        let sizes: Result<Vec<usize>> = groups.iter().map(|group| Ok(list(group, "servers")?.len())).collect();
        sizes.map(Some)
    }
}
