//! What upstream's controller left behind is taken over as it is: Nodes in both forms of id, and Services with their load balancers.

use cloudwit_test_support::NodeBuilder;
use cloudwit_test_support::files::alibaba::CLUSTER_ID;
use cloudwit_test_support::objects::provider_id;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::scene::{ALL, CLB_API, NLB, NLB_API, Scene, name_of};

/// A Service with this finalizer alone.
fn finalizers(of: &str) -> Value {
    json!({ "metadata": { "finalizers": [of] } })
}

fn name_and_ports(service: &Service) -> (String, i64) {
    let uid = service.uid().unwrap().replace('-', "");
    let port = &service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0];
    (format!("a{}", &uid[..31]), i64::from(port.node_port.unwrap()))
}

impl Scene {
    /// A Node as it was initialised by upstream's controller.
    async fn was_there(&self, name: &str, scheme: &str) -> String {
        let id = self.does("add_machine", json!({ "name": name })).await["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let node = NodeBuilder::new(name)
            .provider_id(&format!("{scheme}cn-hangzhou.{id}"))
            .initialised();
        node.ready(Some(true)).create(&self.client).await.unwrap();
        id
    }

    /// A Classic one as upstream made it: tags, a server group with the machines, a listener.
    async fn left_classic(&self, service: &Service, machines: &[&String]) -> String {
        let (name, node_port) = name_and_ports(service);
        let create = json!({
            "LoadBalancerName": name, "AddressType": "internet", "InstanceChargeType": "PayByCLCU", "DeleteProtection": "on",
            "ModificationProtectionStatus": "ConsoleProtection", "Tag.1.Key": "kubernetes.do.not.delete", "Tag.1.Value": name,
            "Tag.2.Key": "ack.aliyun.com", "Tag.2.Value": CLUSTER_ID,
        });
        let balancer = self.command(CLB_API, "CreateLoadBalancer", create).await;
        let id = &balancer["LoadBalancerId"];
        let group_name = name_of(node_port, "web");
        let servers: Vec<Value> = machines
            .iter()
            .map(|machine| json!({ "ServerId": machine, "Port": node_port, "Weight": 100, "Type": "ecs", "Description": group_name }))
            .collect();
        let group = json!({ "LoadBalancerId": id, "VServerGroupName": group_name, "BackendServers": Value::from(servers).to_string() });
        let group = self.command(CLB_API, "CreateVServerGroup", group).await;
        let listener = json!({
            "LoadBalancerId": id, "ListenerPort": 80, "Bandwidth": -1, "Description": name_of(80, "web"), "Scheduler": "rr",
            "VServerGroupId": group["VServerGroupId"],
        });
        self.command(CLB_API, "CreateLoadBalancerTCPListener", listener).await;
        let start = json!({ "LoadBalancerId": id, "ListenerPort": 80, "ListenerProtocol": "tcp" });
        self.command(CLB_API, "StartLoadBalancerListener", start).await;
        self.patch("web", finalizers("service.k8s.alibaba/resources")).await;
        let status = json!({ "loadBalancer": { "ingress": [{ "ip": balancer["Address"] }] } });
        self.patch_status("web", status).await;
        balancer["Address"].as_str().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_and_nodes_of_upstream_stay_as_they_are() {
    let mut scene = Scene::new().await;
    let (one, two) = (
        scene.was_there("one", "").await,
        scene.was_there("two", "alicloud://").await,
    );
    let web = scene.serves("web", None, &[]).await;
    let ip = scene.left_classic(&web, &[&one, &two]).await;
    scene.cloud.forget_calls().await.unwrap();
    scene.run(&[ALL]).await;
    scene.called("slb:DescribeLoadBalancerListeners", 1).await;
    scene
        .settled("it is ensured", || async {
            let service = scene.services().get("web").await.unwrap();
            match service.finalizers().len() {
                2 => Ok(()),
                other => Err(format!("{other} finalizers")),
            }
        })
        .await;
    assert_eq!(scene.writes().await, Vec::<String>::new(), "all is as it has to be");
    assert_eq!(scene.shown_address("web").await, Some(ip));
    for (name, id) in [
        ("one", format!("cn-hangzhou.{one}")),
        ("two", format!("alicloud://cn-hangzhou.{two}")),
    ] {
        let node = scene.node(name).await.unwrap();
        assert_eq!(provider_id(&node), Some(id.as_str()));
    }
    // The finalizer of a controller that is gone would keep the Service for ever.
    scene.leaves_nothing("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_half_made_network_load_balancer_is_completed() {
    let mut scene = Scene::new().await;
    scene.was_there("one", "").await;
    let web = scene.serves("web", Some(NLB), &[]).await;
    let (name, _) = name_and_ports(&web);
    // Without tags: its maker died before.
    let create = json!({
        "LoadBalancerName": name, "AddressType": "Internet", "VpcId": "vpc-nodes", "ZoneMappings.1.ZoneId": "cn-hangzhou-g",
        "ZoneMappings.1.VSwitchId": "vsw-1", "ZoneMappings.2.ZoneId": "cn-hangzhou-h", "ZoneMappings.2.VSwitchId": "vsw-2",
    });
    let made = scene.command(NLB_API, "CreateLoadBalancer", create).await;
    scene.patch("web", finalizers("service.k8s.alibaba/nlb")).await;
    scene.run(&[ALL]).await;
    let running = |all: &[Value]| all.len() == 1 && all[0]["ListenerStatus"] == "Running";
    scene.comes("its listener runs", "nlb-listeners", running).await;
    let all = scene.has("nlbs").await;
    assert_eq!((all.len(), &all[0]["LoadBalancerId"]), (1, &made["LoadbalancerId"]));
    let tag = json!({ "Key": "kubernetes.do.not.delete", "Value": name });
    assert!(all[0]["Tags"].as_array().unwrap().contains(&tag), "{}", all[0]);
    scene.leaves_nothing("web").await;
}
