//! What upstream's controller left behind is taken over as it is: Nodes, and Services with their rules.

use cloudwit_test_support::objects::provider_id;
use cloudwit_test_support::scenes::rig::CLEANUP_FINALIZER;
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::scene::{ALL, Scene};

impl Scene {
    /// As upstream made it: an address, a rule with the machines, a firewall rule; a finalizer and an address in the Service.
    async fn left_behind(&self, service: &Service, machines: &[String]) -> (Value, String) {
        let account = self.does("account", json!({})).await;
        let made = json!({ "command": "associateIpAddress", "projectid": account["project"], "networkid": account["network"] });
        let address = self.does("command", made).await["ipaddress"].clone();
        let port = &service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0];
        let name = format!("a{}", service.uid().unwrap().replace('-', ""));
        let rule = json!({
            "command": "createLoadBalancerRule", "algorithm": "roundrobin", "name": format!("{}-tcp-{}", &name[..32], port.port),
            "privateport": port.node_port.unwrap().to_string(), "publicport": port.port.to_string(), "networkid": account["network"],
            "publicipid": address["id"], "protocol": "tcp", "openfirewall": "false", "cidrlist": "0.0.0.0/0",
        });
        let rule = self.does("command", rule).await["loadbalancer"]["id"].clone();
        let assign =
            json!({ "command": "assignToLoadBalancerRule", "id": rule, "virtualmachineids": machines.join(",") });
        self.does("command", assign).await;
        let open = json!({
            "command": "createFirewallRule", "ipaddressid": address["id"], "protocol": "tcp", "cidrlist": "0.0.0.0/0",
            "startport": port.port.to_string(), "endport": port.port.to_string(),
        });
        self.does("command", open).await;
        let (name, how) = (service.name_any(), PatchParams::default());
        let finalizer = Patch::Merge(json!({ "metadata": { "finalizers": [CLEANUP_FINALIZER] } }));
        self.services().patch(&name, &how, &finalizer).await.unwrap();
        let status =
            Patch::Merge(json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address["ipaddress"] }] } } }));
        self.services().patch_status(&name, &how, &status).await.unwrap();
        (rule, address["ipaddress"].as_str().unwrap().to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_nodes_of_upstream_stay_as_they_are() {
    let mut scene = Scene::new().await;
    let mut machines = Vec::new();
    for (name, scheme) in [("one", "external-cloudstack"), ("two", "cloudstack")] {
        let machine = scene.does("add_machine", json!({ "name": name })).await;
        let id = machine["id"].as_str().unwrap().to_owned();
        let node = NodeBuilder::new(name)
            .provider_id(&format!("{scheme}://{id}"))
            .initialised();
        node.ready(Some(true)).create(&scene.client).await.unwrap();
        machines.push(id);
    }
    let service = ServiceBuilder::new("web").create(&scene.client).await.unwrap();
    let (rule, ip) = scene.left_behind(&service, &machines).await;
    scene.cloud.forget_calls().await.unwrap();
    scene.start(&[ALL]).await;
    scene
        .settled("its address is marked", || async {
            match scene.calls("createTags").await {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    scene
        .settled("it is ensured", || async {
            match scene.calls("listLoadBalancerRuleInstances").await {
                0 => Err("not yet".into()),
                _ => Ok(()),
            }
        })
        .await;
    assert_eq!(scene.writes().await, 1, "the mark, and nothing else");
    let rules = scene.has("rules").await;
    assert_eq!((rules.len(), &rules[0]["id"]), (1, &rule));
    assert_eq!(scene.shown_address("web").await, Some(ip));
    let two = scene.node("two").await.unwrap();
    assert_eq!(
        provider_id(&two),
        Some(format!("cloudstack://{}", machines[1]).as_str())
    );
    scene.leaves_nothing("web").await;
}
