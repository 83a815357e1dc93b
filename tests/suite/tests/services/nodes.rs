//! Nodes that come, flap and go, as targets.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn flapping_nodes_cost_no_call_and_real_changes_one_each() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    for index in 0..10 {
        node(&alone, &format!("node-{index}")).await;
    }
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    for round in 0..4 {
        for index in 0..10 {
            let status = if round % 2 == 0 { "False" } else { "True" };
            let condition = json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
            let name = format!("node-{index}");
            alone
                .nodes()
                .patch_status(&name, &PatchParams::default(), &Patch::Strategic(condition))
                .await
                .unwrap();
        }
    }
    for name in ["node-a", "node-b", "node-c"] {
        node(&alone, name).await;
    }
    until("the new nodes are targets", || async {
        cloud.only().unwrap().targets.len() == 13
    })
    .await;
    // On a slow machine the three do not come together, and the first one is told at once.
    let given = cloud.count("update");
    assert!((1..=3).contains(&given), "ten flapping nodes cost none: {given}");

    let id = json!({ "spec": { "providerID": "fake://1" } });
    alone
        .nodes()
        .patch("node-0", &PatchParams::default(), &Patch::Merge(id))
        .await
        .unwrap();
    until("a provider id counts", || async { cloud.count("update") == given + 1 }).await;
    let label = json!({ "metadata": { "labels": { "node.kubernetes.io/exclude-from-external-load-balancers": "" } } });
    alone
        .nodes()
        .patch("node-1", &PatchParams::default(), &Patch::Merge(label))
        .await
        .unwrap();
    until("the excluded node is out", || async {
        cloud.only().unwrap().targets.len() == 12
    })
    .await;
    alone.nodes().delete("node-2", &DeleteParams::default()).await.unwrap();
    until("the deleted node is out", || async {
        cloud.only().unwrap().targets.len() == 11
    })
    .await;
    assert_eq!((cloud.count("update"), cloud.count("ensure")), (given + 3, 1));
    let updates = (given + 3) as f64;
    until("the updates are counted", || async {
        running.metric("service_controller_loadbalancer_sync_total ") == updates
    })
    .await;
    until("the passes are measured", || async {
        running.metric("service_controller_nodesync_latency_seconds_count ") >= updates
    })
    .await;
    assert!(!cloud.overlapped());
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_balancer_is_recreated_on_node_change() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let _running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    cloud.lose_all();
    node(&alone, "node-1").await;
    until("it is built again", || async {
        cloud.only().is_some_and(|balancer| balancer.targets == ["node-1"])
    })
    .await;
    assert!(
        !alone
            .event_reasons("web")
            .await
            .contains(&"UpdateLoadBalancerFailed".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_update_of_nodes_is_reported_counted_and_tried_again() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let running = run(&alone, &cloud);
    create(&alone, "web").await;
    until("the address is there", || has_address(&alone, "web")).await;
    cloud.fail_next("update", other("pool is locked"));
    node(&alone, "node-1").await;
    until("the second try succeeds", || async {
        cloud.only().unwrap().targets == ["node-1"]
    })
    .await;
    assert_eq!((cloud.count("update"), cloud.count("ensure")), (2, 1));
    assert_eq!(running.metric("service_controller_nodesync_error_total "), 1.0);
    until("the Events tell", || async {
        let reasons = alone.event_reasons("web").await;
        ["UpdateLoadBalancerFailed", "UpdatedLoadBalancer"]
            .iter()
            .all(|reason| reasons.iter().any(|found| found == reason))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn services_cost_two_writes_and_one_call_with_200_nodes() {
    let alone = alone().await;
    let cloud = Arc::new(FakeBalancers::new());
    let nodes = (0..200).map(|index| node_named(&alone, format!("node-{index}")));
    futures::stream::iter(nodes).buffer_unordered(16).collect::<()>().await;
    let services = (0..500).map(|index| ServiceBuilder::new(&format!("web-{index}")).create(&alone.client));
    futures::stream::iter(services)
        .buffer_unordered(16)
        .map(|created| drop(created.unwrap()))
        .collect::<()>()
        .await;
    let began = Instant::now();
    let running = run(&alone, &cloud);
    let writes = r#"cloudwit_api_writes_total{resource="services/status",verb="patch",result="ok"}"#;
    let all_written = || async { running.metric(writes) >= 1000.0 };
    eventually(Duration::from_secs(300), "all are ready", all_written).await;
    println!(
        "500 Services, 200 Nodes, one worker: {:.1} s",
        began.elapsed().as_secs_f64()
    );
    settle(&alone, "marker").await;
    until("the marker's writes are counted", || async {
        running.metric(writes) >= 1002.0
    })
    .await;
    assert_eq!(running.metric(writes), 1002.0);
    assert_eq!((cloud.count("ensure"), cloud.count("update")), (501, 0));
    assert!(cloud.balancers().iter().all(|balancer| balancer.targets.len() == 200));
}
