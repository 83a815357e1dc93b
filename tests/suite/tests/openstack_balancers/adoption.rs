//! What upstream's provider left behind: a load balancer with its names, tags and descriptions, and a Service with its annotations and status.

use cloudwit_test_support::ServiceBuilder;
use cloudwit_test_support::clouds::openstack::Service as Cloud;
use http::Method;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::stage::{LBAAS, Stage, annotation, ingress, word};

/// Makes what upstream makes for the Service, with the account of the project; gives the load balancer's id and the floating IP.
async fn by_upstream(stage: &Stage, cluster: &str, service: &Service) -> (String, String) {
    let name = format!("kube_service_{cluster}_default_web");
    let subnet = &stage.scene.network.subnet;
    let node_port = service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0]
        .node_port
        .unwrap();
    let members: Vec<Value> = stage
        .servers
        .iter()
        .map(|server| json!({ "name": server.name, "address": server.address, "protocol_port": node_port, "subnet_id": subnet }))
        .collect();
    let monitor = json!({ "name": format!("monitor_0_{name}"), "type": "TCP", "delay": 5, "timeout": 3, "max_retries": 1, "max_retries_down": 3 });
    let pool = json!({ "name": format!("pool_0_{name}"), "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": members, "healthmonitor": monitor });
    let listener = json!({
        "name": format!("listener_0_{name}"), "protocol": "TCP", "protocol_port": 80, "connection_limit": -1,
        "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000, "timeout_tcp_inspect": 0,
        "allowed_cidrs": ["0.0.0.0/0"], "tags": [name], "default_pool": pool,
    });
    let about = format!("Kubernetes external service default/web from cluster {cluster}");
    let balancer = json!({ "loadbalancer": {
        "name": name, "description": about, "provider": "amphora", "vip_subnet_id": subnet, "tags": [name], "listeners": [listener],
    } });
    let project = &stage.scene.project;
    let made = project
        .ask(
            Cloud::LoadBalancer,
            Method::POST,
            &format!("{LBAAS}/loadbalancers"),
            balancer,
        )
        .await
        .unwrap();
    assert_eq!(made.0, 201, "{}", made.1);
    stage.shows("it is ACTIVE", |shown| shown.balancers.len() == 1).await;
    let public = &project.cloud.public_network().await.unwrap().id;
    let about = format!("Floating IP for Kubernetes external service default/web from cluster {cluster}");
    let floating = json!({ "floatingip": {
        "floating_network_id": public, "port_id": made.1["loadbalancer"]["vip_port_id"], "description": about,
    } });
    let (status, floating) = project
        .ask(Cloud::Network, Method::POST, "/v2.0/floatingips", floating)
        .await
        .unwrap();
    assert_eq!(status, 201, "{floating}");
    let (id, address) = (
        word(&made.1["loadbalancer"]["id"]),
        word(&floating["floatingip"]["floating_ip_address"]),
    );
    stage.annotate("web", "load-balancer-id", json!(id)).await;
    stage.annotate("web", "load-balancer-address", json!(address)).await;
    let kept = json!({ "metadata": { "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] } });
    stage.patch("web", kept).await;
    let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": address, "ipMode": "VIP" }] } } });
    stage
        .services()
        .patch_status("web", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    (id, address)
}

/// Waits until Cloudwit has looked at everything of the load balancer since then.
async fn looked_at(stage: &Stage, before: usize) {
    stage
        .scene
        .settled("the load balancer was looked at", || async {
            let calls = stage.calls().await.neutron;
            let asked = calls
                .iter()
                .skip(before)
                .filter(|call| call.contains("/security-groups?name="))
                .count();
            if asked > 0 { Ok(()) } else { Err(format!("{calls:#?}")) }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn upstream_leftover_is_kept_unwritten_and_deleted_with_service() {
    let mut stage = Stage::new("create-monitor = true\n").await;
    stage.kill();
    let service = stage.create(ServiceBuilder::new("web")).await;
    let (id, address) = by_upstream(&stage, "lab", &service).await;
    let before = stage.calls().await;
    stage.start();
    looked_at(&stage, before.neutron.len()).await;
    assert_eq!(stage.writes(&before).await, Vec::<String>::new());
    let kept = stage.service("web").await;
    assert_eq!(
        (annotation(&kept, "load-balancer-id"), kept.uid()),
        (Some(id.clone()), service.uid())
    );
    assert_eq!(ingress(&kept)[0].ip, Some(address));
    assert_eq!(stage.shown().await.id(), id);
    stage.delete("web").await;
    stage.clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn balancer_of_former_cluster_name_is_renamed() {
    let mut stage = Stage::new("create-monitor = true\n").await;
    stage.kill();
    let service = stage.create(ServiceBuilder::new("web")).await;
    let (id, address) = by_upstream(&stage, "old_name", &service).await;
    stage.start();
    let name = "kube_service_lab_default_web";
    let shown = stage
        .shows("everything has the new name", |shown| {
            let all = shown
                .balancers
                .iter()
                .chain(&shown.listeners)
                .chain(&shown.pools)
                .chain(&shown.monitors);
            let tags = shown
                .balancers
                .iter()
                .chain(&shown.listeners)
                .all(|part| part["tags"] == json!([name]));
            tags && all.map(|part| word(&part["name"])).all(|part| part.ends_with(name))
        })
        .await;
    assert_eq!((shown.id(), shown.address()), (id, address));
    stage.delete("web").await;
    stage.clean().await;
}
