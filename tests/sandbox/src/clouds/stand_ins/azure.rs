//! Azure, by a stand-in that Microsoft's own clients judge.

use anyhow::Result;
use cloudwit_test_support::clouds::stand_in::StandIn;
use cloudwit_test_support::files::azure::azure_files;
use cloudwit_test_support::scenes::deployment::{CloudFiles, Deployment};
use serde_json::{Value, json};

use crate::clouds::stand_ins::{StandInCloud, labels, look_at_resources, plain_machine, text};
use crate::clouds::{Machine, Route};

/// The stand-in's resource group `demo`.
pub struct Azure;

/// A list below the properties.
fn items<'a>(resource: &'a Value, list: &str) -> &'a [Value] {
    resource["properties"][list].as_array().map_or(&[], Vec::as_slice)
}

impl StandInCloud for Azure {
    const PROVIDER: &'static str = "azure";
    const NAME: &'static str = "Azure (a stand-in)";

    async fn files(cloud: &StandIn, deployment: &Deployment) -> Result<CloudFiles> {
        azure_files(cloud, &json!({}), deployment).await
    }

    fn look(url: &str) -> String {
        look_at_resources(url, "kind", "loadBalancers")
    }

    fn machine(node: &str, made: &Value) -> Result<Machine> {
        let (id, ip) = (text(made, "id")?, text(made, "ip")?);
        let provider_id = format!("azure://{}", id.replace("/DEMO/", "/demo/"));
        let labels = labels("Standard_D2s_v3", Some(("westeurope-1", "westeurope")));
        Ok(Machine {
            system_uuid: format!("azure-{node}"),
            ..plain_machine(node, (id, ip), provider_id, labels)
        })
    }

    fn deleted_machine(machine: &Machine) -> Value {
        json!({ "path": machine.id })
    }

    async fn routes(cloud: &StandIn) -> Result<Option<Vec<Route>>> {
        let tables = cloud.resources(json!({ "kind": "routeTables" })).await?;
        let routes = tables.iter().flat_map(|table| items(table, "routes"));
        let shown = routes.map(|route| {
            let text = |field: &str| route["properties"][field].as_str().unwrap_or_default().to_owned();
            Route {
                destination: text("addressPrefix"),
                by: text("nextHopIpAddress"),
            }
        });
        Ok(Some(shown.collect()))
    }

    async fn balancers(cloud: &StandIn) -> Result<Option<Vec<usize>>> {
        let balancers = cloud.resources(json!({ "kind": "loadBalancers" })).await?;
        let pools = balancers.iter().flat_map(|one| items(one, "backendAddressPools"));
        let sizes = pools.map(|pool| items(pool, "loadBalancerBackendAddresses").len());
        Ok(Some(sizes.collect()))
    }
}
