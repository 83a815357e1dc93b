//! Rancher 1.x, by a stand-in that checks recorded schema documents and its own client reads.

use anyhow::{Context, Result};
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::small_clouds::rancher_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::Machine;
use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine, text};

/// The environment `nodes`.
pub struct Rancher;

impl StandInCloud for Rancher {
    const PROVIDER: &'static str = "rancher";
    const NAME: &'static str = "Rancher (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        rancher_files(cloud, "", deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "kind", "loadBalancerService")
    }

    fn new_machine(node: &str) -> Value {
        let labels = json!({ "io.rancher.host.zone": "rack-7", "io.rancher.host.region": "north" });
        json!({ "name": node, "labels": labels })
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("rancher://{id}");
        let labels = labels("rancher", Some(("rack-7", "north")));
        Ok(plain_machine(node, (id, ip), provider_id, labels))
    }

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let found = cloud.resources(json!({ "kind": "loadBalancerService" })).await?;
        let behind = |one: &Value| {
            let rules = one["lbConfig"]["portRules"]
                .as_array()
                .context("a load balancer without rules")?;
            let mut services: Vec<&str> = rules.iter().filter_map(|rule| rule["serviceId"].as_str()).collect();
            services.sort_unstable();
            services.dedup();
            Ok(services.len())
        };
        found.iter().map(behind).collect::<Result<_>>().map(Some)
    }
}
