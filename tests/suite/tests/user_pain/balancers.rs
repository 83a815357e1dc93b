//! Theme 4: load balancers lost, stuck, or drifting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloudwit_controllers::{Controller, Options};
use cloudwit_sim_cloud::{BalancerState, Fault, FaultKind, Operation};
use cloudwit_test_support::{NodeBuilder, ServiceBuilder};
use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use kube::client::Body;
use kube::{Api, Client, ResourceExt};
use reqwest::Method;
use serde_json::json;

use crate::harness::{Running, until};
use crate::stack::*;

fn run(stack: &Stack) -> Running {
    let provider = stack.sim.provider.clone();
    stack.alone.run(Controller::ServiceLb, provider, quick([]))
}

/// With looks for drift so often that a test can wait for them.
fn run_watchful(stack: &Stack) -> Running {
    let mut options: Options = quick([Controller::ServiceLb]);
    options.service.drift_period = Some(Duration::from_millis(200));
    options.service.drift_per_minute = 6000;
    stack.run(options)
}

/// Ports of a load balancer.
async fn ports(stack: &Stack, service: &str) -> Vec<u16> {
    let balancer = stack.balancer(service).await;
    let ports = balancer.iter().flat_map(|balancer| &balancer.spec.ports);
    ports.map(|port| port.port).collect()
}

/// Machines that a load balancer sends traffic to.
async fn targets(stack: &Stack, service: &str) -> Vec<String> {
    let balancer = stack.balancer(service).await;
    balancer.map(|balancer| balancer.spec.targets).unwrap_or_default()
}

fn port(number: u16) -> serde_json::Value {
    json!({ "spec": { "ports": [{ "name": "http", "port": number }] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_743_error_during_change_deletes_nothing() {
    let stack = Stack::start().await;
    let _running = run(&stack);
    let address = stack.ready_service("web-743").await;
    let id = stack.balancer("web-743").await.unwrap().id;
    stack
        .cloud
        .set_faults([Fault::status(500).on(Operation::UpdateLoadBalancer).times(1)]);
    stack.patch_service("web-743", port(8080)).await;
    let told = stack.told("web-743", "SyncLoadBalancerFailed").await;
    assert!(told.contains("500"), "{told}");
    assert_eq!(stack.address("web-743").await.as_ref(), Some(&address));
    until("the change is made in the end", || async {
        ports(&stack, "web-743").await == [8080]
    })
    .await;
    assert_eq!(stack.balancer("web-743").await.unwrap().id, id);
    assert_eq!(stack.wait_for_address("web-743").await, address);
    assert_eq!(stack.requests(&[Operation::DeleteLoadBalancer]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_35056_new_process_with_errors_keeps_balancer() {
    let stack = Stack::start().await;
    let running = run(&stack);
    let address = stack.ready_service("web-35056").await;
    let id = stack.balancer("web-35056").await.unwrap().id;
    running.stop().await;
    stack.cloud.reset_counters();
    let list = |fault: Fault| fault.on(Operation::ListLoadBalancers).times(1);
    stack.cloud.set_faults([list(Fault::status(404))]);
    let _running = run(&stack);
    stack.told("web-35056", "SyncLoadBalancerFailed").await;
    assert_eq!(stack.address("web-35056").await.as_ref(), Some(&address));
    until("it is looked at again", || async {
        stack.requests(&[Operation::ListLoadBalancers]) >= 2
    })
    .await;
    stack.ready_service("marker-35056").await;
    assert_eq!(stack.balancer("web-35056").await.unwrap().id, id);
    assert_eq!(stack.address("web-35056").await, Some(address));
    assert_eq!(
        stack.requests(&[Operation::CreateLoadBalancer]),
        1,
        "that of the marker"
    );
    assert_eq!(stack.requests(&[Operation::DeleteLoadBalancer]), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_53451_service_deleted_offline_leaves_no_balancer() {
    let stack = Stack::start().await;
    let running = run(&stack);
    stack.ready_service("web-53451").await;
    running.stop().await;
    stack.delete_service("web-53451").await;
    let waits = stack.service("web-53451").await.unwrap();
    assert_eq!(
        waits.finalizers(),
        [CLEANUP],
        "the finalizer keeps it until somebody cleans up"
    );
    let _running = run(&stack);
    until("the Service is gone", || stack.service_is_gone("web-53451")).await;
    assert!(stack.cloud.load_balancers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_78124_leader_change_during_delete_leaks_nothing() {
    let stack = Stack::start().await;
    let running = run(&stack);
    stack.ready_service("before-78124").await;
    stack.ready_service("after-78124").await;
    // The first leader ends while its delete is under way: once before the cloud has done it, once after.
    let delete = |kind| Fault::new(kind).on(Operation::DeleteLoadBalancer).times(1);
    stack.cloud.set_faults([delete(FaultKind::Hang)]);
    stack.delete_service("before-78124").await;
    until("the delete is under way", || async {
        stack.requests(&[Operation::DeleteLoadBalancer]) >= 1
    })
    .await;
    running.stop().await;
    let second = run(&stack);
    until("the next leader deletes it", || stack.service_is_gone("before-78124")).await;
    stack.cloud.set_faults([delete(FaultKind::CutAfter)]);
    stack.delete_service("after-78124").await;
    until("the cloud has done it", || async {
        stack.cloud.load_balancers().is_empty()
    })
    .await;
    second.stop().await;
    let _third = run(&stack);
    until("and the one after finds nothing left to do", || {
        stack.service_is_gone("after-78124")
    })
    .await;
    assert!(stack.cloud.load_balancers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn kubernetes_78954_type_change_across_restart_leaks_nothing() {
    let stack = Stack::start().await;
    let running = run(&stack);
    stack.ready_service("web-78954").await;
    running.stop().await;
    stack
        .patch_service("web-78954", json!({ "spec": { "type": "ClusterIP" } }))
        .await;
    let _running = run(&stack);
    until("finalizer and address are gone", || async {
        let service = stack.service("web-78954").await.unwrap();
        service.finalizers().is_empty() && stack.address("web-78954").await.is_none()
    })
    .await;
    assert!(stack.cloud.load_balancers().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn gcp_981_deletion_during_finalizer_write_ends_cleanly() {
    let mut stack = Stack::start().await;
    let mut service = ServiceBuilder::new("dying-981").build();
    service.metadata.finalizers = Some(vec!["example.com/keep".into()]);
    stack
        .alone
        .services()
        .create(&Default::default(), &service)
        .await
        .unwrap();
    let (admin, patches) = (stack.alone.client.clone(), Arc::new(AtomicUsize::new(0)));
    let (real, count) = (admin.clone(), patches.clone());
    let racing = tower::service_fn(move |request: http::Request<Body>| {
        let (real, count) = (real.clone(), count.clone());
        async move {
            if request.method() == http::Method::PATCH && request.uri().path().contains("/dying-981/") {
                // Somebody deletes it between the controller's look and its write.
                count.fetch_add(1, Ordering::Relaxed);
                let services: Api<Service> = Api::default_namespaced(real.clone());
                services.delete("dying-981", &DeleteParams::default()).await?;
            }
            real.send(request).await
        }
    });
    stack.alone.client = Client::new(racing, "default");
    let _running = run(&stack);
    stack.alone.client = admin;
    until("it is dying", || async {
        stack
            .service("dying-981")
            .await
            .is_some_and(|service| service.metadata.deletion_timestamp.is_some())
    })
    .await;
    // The first failure would be tried again within five seconds; a Service that fails once takes as long.
    stack.told("dying-981", "SyncLoadBalancerFailed").await;
    stack
        .cloud
        .set_faults([Fault::status(500).on(Operation::CreateLoadBalancer).times(1)]);
    stack.ready_service("marker-981").await;
    assert_eq!(patches.load(Ordering::Relaxed), 1, "no endless tries");
    let service = stack.service("dying-981").await.unwrap();
    assert_eq!(service.finalizers(), ["example.com/keep"]);
    assert_eq!(
        stack.requests(&[Operation::CreateLoadBalancer]),
        2,
        "those of the marker"
    );
    stack
        .patch_service("dying-981", json!({ "metadata": { "finalizers": null } }))
        .await;
    until("it is gone", || stack.service_is_gone("dying-981")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_1931_missing_balancer_does_not_hold_its_service() {
    let stack = Stack::start().await;
    let _running = run(&stack);
    stack.ready_service("web-1931").await;
    let id = stack.balancer("web-1931").await.unwrap().id;
    stack
        .by_hand(Method::DELETE, &format!("load-balancers/{id}"), json!(null))
        .await;
    stack.delete_service("web-1931").await;
    until("the Service is gone", || stack.service_is_gone("web-1931")).await;
    let events = stack.events("web-1931").await;
    assert!(!events.iter().any(|event| event.contains("Failed")), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_1597_manually_deleted_balancer_is_rebuilt_live() {
    let stack = Stack::start().await;
    let _running = run_watchful(&stack);
    stack.ready_service("web-1597").await;
    let id = stack.balancer("web-1597").await.unwrap().id;
    stack
        .by_hand(Method::DELETE, &format!("load-balancers/{id}"), json!(null))
        .await;
    let told = stack.told("web-1597", "LoadBalancerDrifted").await;
    assert!(told.contains("not found"), "{told}");
    until("the status has the new address", || async {
        let balancer = stack.balancer("web-1597").await;
        balancer.is_some_and(|balancer| balancer.address.is_some()) && {
            let shown = stack.address("web-1597").await;
            shown == stack.balancer("web-1597").await.unwrap().address
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn oci_196_manually_deleted_balancer_part_is_recreated() {
    let stack = Stack::start().await;
    let _running = run_watchful(&stack);
    let address = stack.ready_service("web-196").await;
    let mut balancer = stack.balancer("web-196").await.unwrap();
    let right = balancer.spec.clone();
    // Another listener than the Service asks for; nothing that the load balancer's address would show.
    balancer.spec.ports[0].port = 9;
    let path = format!("load-balancers/{}", balancer.id);
    let changed = stack.by_hand(Method::PUT, &path, json!(balancer.spec)).await;
    // What it answers: the next look may be over before anybody else has looked.
    assert_eq!(changed["spec"]["ports"][0]["port"], 9, "{changed}");
    until("it is made right", || async {
        stack.balancer("web-196").await.unwrap().spec == right
    })
    .await;
    assert_eq!(stack.balancer("web-196").await.unwrap().id, balancer.id);
    assert_eq!(stack.address("web-196").await, Some(address));
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_2962_members_refresh_without_annotation_change() {
    let stack = Stack::start().await;
    stack.member("node-2962-a", Some(true)).await;
    let _running = run_watchful(&stack);
    stack.ready_service("web-2962").await;
    stack.member("node-2962-b", Some(true)).await;
    until("the new Node is a member", || async {
        targets(&stack, "web-2962").await == ["vm-1", "vm-2"]
    })
    .await;
    let id = stack.balancer("web-2962").await.unwrap().id;
    let none = json!({ "targets": [] });
    let changed = stack
        .by_hand(Method::PUT, &format!("load-balancers/{id}/targets"), none)
        .await;
    assert_eq!(changed["spec"]["targets"], json!([]), "{changed}");
    until("members that were removed by hand are back", || async {
        targets(&stack, "web-2962").await == ["vm-1", "vm-2"]
    })
    .await;
    // All is right now: looks go on and cost reads, and nothing is written.
    stack.cloud.reset_counters();
    until("many looks", || async {
        stack.requests(&[Operation::ListLoadBalancers]) >= 20
    })
    .await;
    let asked = stack.cloud.counters();
    assert_eq!(asked.total(), asked.requests(Operation::ListLoadBalancers), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_1595_a_balancer_that_takes_an_hour_delays_none() {
    let stack = Stack::start().await;
    stack.cloud.set_balancer_build_time(Duration::from_secs(3600));
    let _running = run(&stack);
    stack.create_service("slow-1595").await;
    let told = stack.told("slow-1595", "EnsuringLoadBalancer: Waiting: ").await;
    assert!(told.contains("the cloud builds load balancer"), "{told}");
    stack.cloud.set_balancer_build_time(Duration::ZERO);
    for number in 0..5 {
        stack.ready_service(&format!("quick-1595-{number}")).await;
    }
    let slow = stack.balancer("slow-1595").await.unwrap();
    assert_eq!(slow.state, BalancerState::Building);
    assert_eq!(stack.address("slow-1595").await, None);
    stack.cloud.finish_load_balancers();
    stack.wait_for_address("slow-1595").await;
    assert_eq!(stack.balancer("slow-1595").await.unwrap().id, slow.id);
    let events = stack.events("slow-1595").await;
    let waits = events.iter().filter(|event| event.contains("Waiting")).count();
    assert_eq!(waits, 1, "it is told once, not at each look: {events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_2858_balancer_has_first_nodes_and_ports_are_cheap() {
    let stack = Stack::start().await;
    stack.member("node-2858-0", Some(true)).await;
    stack.cloud.set_balancer_build_time(Duration::from_secs(3600));
    let _running = run(&stack);
    let many = |number: u16| json!({ "name": format!("p{number}"), "port": number });
    let many: Vec<_> = (1000..1020).map(many).collect();
    let service =
        ServiceBuilder::new("web-2858").spec(|spec| spec.ports = serde_json::from_value(json!(many)).unwrap());
    service.create(&stack.alone.client).await.unwrap();
    stack.told("web-2858", "EnsuringLoadBalancer: Waiting: ").await;
    let began = Instant::now();
    for number in 1..20 {
        stack.member(&format!("node-2858-{number}"), Some(true)).await;
    }
    assert_eq!(stack.address("web-2858").await, None);
    stack.cloud.finish_load_balancers();
    stack.wait_for_address("web-2858").await;
    stack.told("web-2858", "EnsuredLoadBalancer").await;
    let reasons = stack.alone.event_reasons("web-2858").await;
    let ensured = reasons.iter().filter(|reason| *reason == "EnsuredLoadBalancer");
    assert_eq!(ensured.count(), 1, "{reasons:?}");
    until("the others follow", || async {
        targets(&stack, "web-2858").await.len() == 20
    })
    .await;
    let counters = stack.cloud.counters();
    assert_eq!(ports(&stack, "web-2858").await.len(), 20);
    assert_eq!(counters.requests(Operation::CreateLoadBalancer), 1);
    let later = stack.requests(&[Operation::UpdateLoadBalancer, Operation::UpdateTargets]);
    // What is being built is looked at once a second, and Nodes are gathered for three quarters of one: where they join slowly there are more changes.
    let most = 3 + 2 * began.elapsed().as_secs();
    assert!(later <= most, "{later} changes for nineteen Nodes that joined together");
}

#[tokio::test(flavor = "multi_thread")]
async fn openstack_1304_one_failure_fails_one_balancer_only() {
    let stack = Stack::start().await;
    let _running = run(&stack);
    for number in 0..5 {
        stack.ready_service(&format!("web-1304-{number}")).await;
    }
    let fault = Fault::status(500).on(Operation::UpdateTargets).times(1);
    stack.cloud.set_faults([fault]);
    stack.cloud.reset_counters();
    stack.member("node-1304", Some(true)).await;
    let given = || {
        let balancers = stack.cloud.load_balancers();
        balancers
            .iter()
            .filter(|balancer| balancer.spec.targets == ["vm-1"])
            .count()
    };
    until("all five have it", || async { given() == 5 }).await;
    assert_eq!(
        stack.requests(&[Operation::UpdateTargets]),
        6,
        "the fifth was tried again, and alone"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn azure_1194_departed_nodes_leave_pool_with_rule_change() {
    let stack = Stack::start().await;
    for name in ["stays-1194", "leaves-1194", "excluded-1194"] {
        stack.member(name, Some(true)).await;
    }
    let _running = run(&stack);
    stack.ready_service("web-1194").await;
    assert_eq!(targets(&stack, "web-1194").await.len(), 3);
    stack.set_ready("leaves-1194", Some(false)).await;
    let exclude =
        json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "true" } } });
    tokio::join!(
        stack.delete_node("leaves-1194"),
        stack.patch_node("excluded-1194", exclude),
        stack.patch_service("web-1194", port(8080)),
    );
    until("rules and pool are right", || async {
        ports(&stack, "web-1194").await == [8080] && targets(&stack, "web-1194").await == ["vm-1"]
    })
    .await;
    // One that comes back under its name with another machine is in with that one.
    let id = format!("sim://{}", stack.machine("leaves-1194"));
    let again = NodeBuilder::new("leaves-1194").initialised().provider_id(&id);
    again.create(&stack.alone.client).await.unwrap();
    until("it is back", || async {
        targets(&stack, "web-1194").await == ["vm-1", "vm-4"]
    })
    .await;
}
