//! The life of a load balancer without anything going wrong.

use cloudwit_test_support::ServiceBuilder;
use serde_json::json;

use crate::stage::{Stage, annotation, ingress, word};

const ALL: &str = "create-monitor = true\nmanage-security-groups = true\n";

#[tokio::test(flavor = "multi_thread")]
async fn balancer_is_created_kept_changed_and_deleted_cleanly() {
    let mut stage = Stage::new(ALL).await;
    let service = stage.create(ServiceBuilder::new("web")).await;
    let address = stage.exposed("web").await;
    let shown = stage.shown().await;
    assert_eq!(shown.balancers[0]["name"], "kube_service_lab_default_web");
    assert_eq!(shown.balancers[0]["tags"], json!(["kube_service_lab_default_web"]));
    assert_eq!(
        shown.balancers[0]["description"],
        "Kubernetes external service default/web from cluster lab"
    );
    assert_eq!(shown.listeners[0]["name"], "listener_0_kube_service_lab_default_web");
    assert_eq!((shown.ports(), shown.monitors.len()), (vec!["TCP 80".into()], 1));
    let members: Vec<String> = stage
        .servers
        .iter()
        .map(|server| format!("{} {}", server.name, server.address))
        .collect();
    assert_eq!(shown.members.values().next(), Some(&members));
    assert_eq!(shown.address(), address);
    assert_eq!(
        shown.floating[0]["description"],
        "Floating IP for Kubernetes external service default/web from cluster lab"
    );
    let written = stage.service("web").await;
    assert_eq!(ingress(&written)[0].ip_mode.as_deref(), Some("VIP"));
    stage
        .scene
        .settled("id and address are written back", || async {
            let service = stage.service("web").await;
            let found = (
                annotation(&service, "load-balancer-id"),
                annotation(&service, "load-balancer-address"),
            );
            if found == (Some(shown.id()), Some(address.clone())) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await;
    opened(&stage, &service).await;

    // A restart ensures all again.
    stage.kill();
    let before = stage.calls().await;
    stage.start();
    stage
        .scene
        .settled("it was looked at again", || async {
            let calls = stage.calls().await;
            let new = calls.neutron.iter().skip(before.neutron.len());
            let looked = new.filter(|call| call.contains("/security-groups?name=")).count();
            if looked > 0 { Ok(()) } else { Err(String::new()) }
        })
        .await;
    assert_eq!(stage.writes(&before).await, Vec::<String>::new());

    changes(&stage).await;
    stage.delete("web").await;
    stage.clean().await;
    for server in &stage.servers {
        let groups = &port(&stage, &server.port).await["security_groups"];
        assert!(!groups.to_string().contains("lb-sg"), "{groups}");
    }
}

async fn port(stage: &Stage, id: &str) -> serde_json::Value {
    let network = cloudwit_test_support::clouds::openstack::Service::Network;
    stage
        .scene
        .project
        .cloud
        .get(network, &format!("/v2.0/ports/{id}"))
        .await
        .unwrap()["port"]
        .clone()
}

/// The node port is open on the ports of both servers.
async fn opened(stage: &Stage, service: &k8s_openapi::api::core::v1::Service) {
    let groups = stage.groups().await;
    let node_port = service.spec.as_ref().unwrap().ports.as_ref().unwrap()[0]
        .node_port
        .unwrap();
    assert_eq!(groups.len(), 1);
    let rules: Vec<_> = groups[0]["security_group_rules"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|rule| rule["direction"] == "ingress")
        .collect();
    assert_eq!(rules.len(), 1, "{rules:?}");
    assert_eq!(
        (&rules[0]["port_range_min"], &rules[0]["remote_ip_prefix"]),
        (&json!(node_port), &json!("10.1.0.0/16"))
    );
    for server in &stage.servers {
        let port = port(stage, &server.port).await;
        assert!(
            port["security_groups"].as_array().unwrap().contains(&groups[0]["id"]),
            "{port}"
        );
    }
}

async fn changes(stage: &Stage) {
    let two =
        json!([{ "name": "http", "port": 80, "protocol": "TCP" }, { "name": "dns", "port": 53, "protocol": "UDP" }]);
    stage.patch("web", json!({ "spec": { "ports": two } })).await;
    let both = |shown: &crate::stage::Shown| {
        shown.ports() == ["TCP 80", "UDP 53"] && shown.pools.len() == 2 && shown.monitors.len() == 2
    };
    let shown = stage
        .shows("there is a listener with pool and monitor for the new port", both)
        .await;
    assert!(
        shown.monitors.iter().any(|monitor| monitor["type"] == "UDP-CONNECT"),
        "{shown:#?}"
    );

    stage.annotate("web", "connection-limit", json!("77")).await;
    stage.annotate("web", "timeout-client-data", json!("1234")).await;
    stage
        .shows("limits and timeouts are those of the annotations", |shown| {
            shown
                .listeners
                .iter()
                .all(|listener| listener["connection_limit"] == 77 && listener["timeout_client_data"] == 1234)
        })
        .await;

    stage.annotate("web", "x-forwarded-for", json!("true")).await;
    stage
        .shows(
            "the TCP port speaks HTTP, and the old listener with its pool is gone",
            |shown| {
                let http = shown.listeners.iter().find(|listener| listener["protocol"] == "HTTP");
                http.is_some_and(|listener| listener["insert_headers"] == json!({ "X-Forwarded-For": "true" }))
                    && shown.ports() == ["HTTP 80", "UDP 53"]
                    && shown.pools.len() == 2
                    && shown.monitors.len() == 2
            },
        )
        .await;

    stage
        .patch(
            "web",
            json!({ "spec": { "ports": [{ "name": "http", "port": 81, "protocol": "TCP" }] } }),
        )
        .await;
    stage
        .shows("only the new port is left", |shown| {
            shown.ports() == ["HTTP 81"] && shown.pools.len() == 1 && shown.monitors.len() == 1
        })
        .await;

    let gone = &stage.servers[1];
    let label = json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    let patch = kube::api::Patch::Merge(label);
    stage
        .scene
        .nodes()
        .patch(&gone.name, &Default::default(), &patch)
        .await
        .unwrap();
    let left = &stage.servers[0];
    let expected = vec![format!("{} {}", left.name, left.address)];
    stage
        .shows("the excluded Node is no member any more", |shown| {
            shown.members.values().all(|members| *members == expected)
        })
        .await;
    stage
        .scene
        .settled("its port is closed", || async {
            let groups = stage.groups().await;
            let port = port(stage, &gone.port).await;
            let open = port["security_groups"].as_array().unwrap().contains(&groups[0]["id"]);
            if open { Err(port.to_string()) } else { Ok(()) }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serial_provider_receives_one_call_at_a_time() {
    let stage =
        Stage::new("provider-requires-serial-api-calls = true\ncreate-monitor = true\ncascade-delete = false\n").await;
    stage.create(ServiceBuilder::new("web")).await;
    stage.exposed("web").await;
    let shown = stage.shown().await;
    let posts: Vec<String> = stage
        .calls()
        .await
        .octavia
        .into_iter()
        .filter(|call| call.starts_with("POST"))
        .collect();
    let of = |what: &str| {
        posts
            .iter()
            .filter(|call| call.contains(&format!("{what} 201")))
            .count()
    };
    assert_eq!(
        (
            of("/loadbalancers"),
            of("/listeners"),
            of("/pools"),
            of("/members"),
            of("/healthmonitors")
        ),
        (1, 1, 1, 2, 1),
        "{posts:#?}"
    );
    assert_eq!(shown.members.values().next().unwrap().len(), 2);
    let description = word(&shown.balancers[0]["description"]);
    assert!(description.contains("default/web"), "{description}");
    stage.delete("web").await;
    stage.clean().await;
    let deletes = stage
        .calls()
        .await
        .octavia
        .into_iter()
        .filter(|call| call.starts_with("DELETE"));
    assert!(
        deletes.clone().any(|call| call.contains("/pools/")),
        "{:?}",
        deletes.collect::<Vec<_>>()
    );
}
